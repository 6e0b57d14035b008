"""The set-up of a Ruby project: gems of the registry where it answers, or Debian's packages of them."""

import re
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Context, Plan, Step
from autoinstall.agents.rules.debian import contents, versions
from autoinstall.agents.rules.ecosystems.goals import SUBMODULES
from autoinstall.agents.rules.ecosystems.needs import Need, Provision, fits, shown
from autoinstall.agents.rules.ecosystems.ruby.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.ruby.project import Project, needs_of, project_of
from autoinstall.agents.rules.ecosystems.scripting import inside
from autoinstall.agents.rules.registries import answers, unreachable
from autoinstall.agents.rules.system_packages import apt_install
from autoinstall.sandbox.contract import WORKSPACE, Sandbox

GEMFILE = "/opt/ruby/Gemfile"
"""Names the gems that Debian's packages brought: what bundler sets up in place of the project's own."""

ALWAYS = "ruby rake bundler ruby-minitest ruby-test-unit ruby-rspec ruby-rexml"
COMPILERS = "ruby-dev gcc g++ make libc6-dev"
_NAME = "ruby"
_SPECIFICATIONS = r"usr/[^ ]*/specifications/(default/)?"


def make(context: Context, sandbox: Sandbox) -> Plan:
    project = project_of(context.tree)
    if project is None:
        return Plan(steps=(), exhausted=True)
    needs = needs_of(context.tree, project)
    provision = served(needs, sandbox)
    steps = [SUBMODULES] if context.tree.has(".gitmodules") else []
    if project.gemfile and answers(_NAME, sandbox):
        return Plan(steps=(*steps, *_from_registry(project), *_extensions(project)), exhausted=True)
    if provision.unserved:
        raise unreachable(_NAME, provision.unserved)
    steps += _from_debian(provision)
    env = {"BUNDLE_GEMFILE": GEMFILE} if project.gemfile else {}
    if project.siblings:
        # As bundler does with gems that the Gemfile names by their path.
        env["RUBYLIB"] = ":".join(f"{WORKSPACE}/{directory}/lib" for directory in project.siblings)
    return Plan(steps=(*steps, *_extensions(project)), env=env, exhausted=True)


def provide(context: Context, sandbox: Sandbox) -> None:
    """Raises:
    RegistryUnreachable: the project needs gems that Debian does not have, and RubyGems does not answer.
    """
    project = project_of(context.tree)
    if project is None:
        return
    provision = served(needs_of(context.tree, project), sandbox)
    if provision.unserved and not answers(_NAME, sandbox):
        raise unreachable(_NAME, provision.unserved)


def served(needs: tuple[Need, ...], sandbox: Sandbox) -> Provision:
    """Debian's packages for the gems, by their names, then by the specifications in them."""
    table = knowledge().packages
    named = {need.name: table.get(need.name, package_name(need.name)) for need in needs}
    known = versions(sandbox, named.values())
    found = {name: (package, known[package]) for name, package in named.items() if package in known}
    others = [need.name for need in needs if need.hard and need.name not in found]
    if others:
        names = "|".join(re.escape(name) for name in others)
        for entry in contents(sandbox, rf"{_SPECIFICATIONS}({names})-[0-9][^ ]*\.gemspec"):
            match = re.search(r"/([^/]+)-(\d[^/]*)\.gemspec$", entry.path)
            if match and match[1] in others and entry.package != "jruby":
                found[match[1]] = (entry.package, match[2])
    packages: dict[str, None] = {}
    unserved: list[str] = []
    for need in needs:
        package, version = found.get(need.name, ("", ""))
        if package and (fits(need, version) or not need.hard):
            packages[package] = None
        elif need.hard:
            unserved.append(shown(need, version))
    return Provision(packages=tuple(packages), unserved=tuple(unserved))


def package_name(gem: str) -> str:
    """Debian's rule: a_gem is in ruby-a-gem."""
    name = gem.lower().replace("_", "-")
    return name if name.startswith("ruby-") else f"ruby-{name}"


def _from_debian(provision: Provision) -> Iterator[Step]:
    names = " ".join([*ALWAYS.split(), *provision.packages])
    yield Step(
        command=apt_install(names),
        why="Gems as Debian packages them",
        fallback=(f"for name in {names}; do apt-get install -y --no-install-recommends $name; done; ruby --version",),
        timeout=1200,
    )
    listed = "gem list --no-versions --quiet | sed -n 's/^\\([A-Za-z][A-Za-z0-9_.-]*\\)$/gem \"\\1\", require: false/p'"
    yield Step(
        command=f"mkdir -p {GEMFILE.rpartition('/')[0]} && {listed} | grep -v '\"bundler\"' >{GEMFILE} && "
        f"BUNDLE_GEMFILE={GEMFILE} bundle install --local --quiet",
        why="A Gemfile of what is installed, in place of the project's own, which names gems that are not to be had",
        optional=True,
    )


def _from_registry(project: Project) -> Iterator[Step]:
    yield Step(command=apt_install(f"{ALWAYS} {COMPILERS}"), why="Ruby with what compiles extensions", timeout=900)
    yield Step(
        command=inside(project.directory, "bundle install --jobs 4 --retry 1"),
        why=f"Gems that {project.manifest} names",
        timeout=1800,
    )


def _extensions(project: Project) -> Iterator[Step]:
    """C extensions are built beside the library, as `rake compile` does."""
    if not project.extensions:
        return
    yield Step(command=apt_install(f"{COMPILERS} rake-compiler"), why="What compiles extensions", optional=True)
    builds = [
        f"(cd {path.rpartition('/')[0]} && ruby extconf.rb && make && "
        "find . -name '*.so' -exec cp {} $OLDPWD/lib/ ';')"
        for path in project.extensions
    ]
    yield Step(
        command=inside(project.directory, f"{project.prefix}rake compile"),
        why="Builds the extensions",
        fallback=(inside(project.directory, " && ".join(builds)),),
        optional=True,
        timeout=900,
    )
