"""The set-up of a Perl distribution: modules from Debian's packages, or from CPAN where it answers."""

import re
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Context, Plan, Step
from autoinstall.agents.rules.debian import contents, versions
from autoinstall.agents.rules.ecosystems.goals import SUBMODULES
from autoinstall.agents.rules.ecosystems.needs import Need, Provision
from autoinstall.agents.rules.ecosystems.perl.distribution import Distribution, distribution_of, needs_of
from autoinstall.agents.rules.registries import answers, unreachable
from autoinstall.agents.rules.system_packages import apt_install
from autoinstall.sandbox.contract import Sandbox

MAX_WISHES = 60
_NAME = "perl"
_PRESENT = (
    'perl -e \'for my $name (@ARGV) {{ (my $file = "$name.pm") =~ s{{::}}{{/}}g; '
    'print "have $name\\n" if grep {{ -e "$_/$file" }} @INC }}\' {names}'
)
_PLACE = r"usr/(share|lib)/([^/]+/)?perl5?/([0-9.]+/)?"


def make(context: Context, sandbox: Sandbox) -> Plan:
    distribution = distribution_of(context.tree)
    if distribution is None:
        return Plan(steps=(), exhausted=True)
    provision, from_cpan = _provision(context, distribution, sandbox)
    steps = [SUBMODULES] if context.tree.has(".gitmodules") else []
    steps += _packages(provision, from_cpan=from_cpan)
    if from_cpan:
        steps.append(
            Step(
                command=distribution_inside(distribution, "cpanm --notest --quiet --installdeps ."),
                why=f"Modules that {distribution.manifest} names and Debian does not have",
                timeout=1800,
            )
        )
    steps += _build(distribution)
    return Plan(steps=tuple(steps), exhausted=True)


def provide(context: Context, sandbox: Sandbox) -> None:
    """Raises:
    RegistryUnreachable: the distribution needs modules that Debian does not have, and CPAN does not answer.
    """
    distribution = distribution_of(context.tree)
    if distribution is not None:
        _provision(context, distribution, sandbox)


def _provision(context: Context, distribution: Distribution, sandbox: Sandbox) -> tuple[Provision, bool]:
    provision = served(needs_of(context.tree, distribution), sandbox)
    from_cpan = bool(provision.unserved) and answers(_NAME, sandbox)
    if provision.unserved and not from_cpan:
        raise unreachable(_NAME, provision.unserved)
    return provision, from_cpan


def served(needs: tuple[Need, ...], sandbox: Sandbox) -> Provision:
    """Debian's packages for the modules: by their names, then by the files in them."""
    hard = [need.name for need in needs if need.hard]
    wishes = [need.name for need in needs if not need.hard][:MAX_WISHES]
    names = [*hard, *wishes]
    if not names:
        return Provision()
    output = sandbox.run(_PRESENT.format(names=" ".join(names)), timeout=60).output
    present = set(re.findall(r"(?m)^have (\S+)$", output))
    missing = [name for name in names if name not in present]
    named = versions(sandbox, [package_name(name) for name in missing])
    packages = {name: package_name(name) for name in missing if package_name(name) in named}
    others = [name for name in missing if name not in packages]
    if others:
        files = {name: name.replace("::", "/") + ".pm" for name in others}
        found = contents(sandbox, f"{_PLACE}({'|'.join(files.values())})".replace(".pm", r"\.pm"))
        for name, file in files.items():
            owners = [entry.package for entry in found if entry.path.endswith(f"/{file}")]
            if owners:
                packages[name] = min(owners, key=lambda item: (not item.startswith("lib"), len(item), item))
    return Provision(
        packages=tuple(dict.fromkeys(packages.values())),
        unserved=tuple(name for name in hard if name in missing and name not in packages),
    )


def package_name(module: str) -> str:
    """Debian's rule: Foo::Bar is in libfoo-bar-perl."""
    return f"lib{module.replace('::', '-').replace('_', '-').lower()}-perl"


def distribution_inside(distribution: Distribution, command: str) -> str:
    return f"cd {distribution.directory} && {command}" if distribution.directory else command


def _packages(provision: Provision, *, from_cpan: bool) -> Iterator[Step]:
    tools = ["perl", "make", *(("cpanminus", "gcc", "libc6-dev") if from_cpan else ())]
    names = " ".join([*tools, *provision.packages])
    yield Step(
        command=apt_install(names),
        why="Perl's modules as Debian packages them",
        fallback=(f"for name in {names}; do apt-get install -y --no-install-recommends $name; done",),
        timeout=1200,
    )


def _build(distribution: Distribution) -> Iterator[Step]:
    if distribution.compiled:
        yield Step(command=apt_install("gcc libc6-dev libperl-dev"), why="A compiler for the parts in C", optional=True)
    commands = {"Makefile.PL": "perl Makefile.PL && make", "Build.PL": "perl Build.PL && ./Build"}
    if distribution.builder:
        yield Step(
            command=distribution_inside(distribution, commands[distribution.builder]),
            why=f"Builds the distribution ({distribution.builder})",
            optional=True,
            timeout=1200,
        )
