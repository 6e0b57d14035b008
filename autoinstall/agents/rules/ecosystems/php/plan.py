"""The set-up of a PHP project: packages of Packagist where it answers, or Debian's, and composer's autoloader."""

import shlex
from collections.abc import Iterator
from importlib import resources

from autoinstall.agents.rules.contract import Context, Plan, Step
from autoinstall.agents.rules.debian import versions
from autoinstall.agents.rules.ecosystems.goals import SUBMODULES
from autoinstall.agents.rules.ecosystems.needs import Need, Provision, fits, shown
from autoinstall.agents.rules.ecosystems.php.knowledge import knowledge
from autoinstall.agents.rules.ecosystems.php.project import Project, extensions_of, needs_of, project_of
from autoinstall.agents.rules.ecosystems.scripting import inside
from autoinstall.agents.rules.registries import answers, unreachable
from autoinstall.agents.rules.system_packages import apt_install
from autoinstall.sandbox.contract import Sandbox

ALWAYS = "php-cli php-mbstring php-xml composer phpunit"
DOWNLOADS = ("php-curl", "php-zip", "unzip")
"""What composer fetches and unpacks packages with."""

_NAME = "php"
_SCRIPT = "/opt/php/link.php"


class Served(Provision):
    """`linked`: for link.php, a package of Packagist with the version and name of Debian's."""

    linked: tuple[str, ...] = ()


def make(context: Context, sandbox: Sandbox) -> Plan:
    project = project_of(context.tree)
    if project is None:
        return Plan(steps=(), exhausted=True)
    provision = served(needs_of(project), sandbox)
    steps = [SUBMODULES] if context.tree.has(".gitmodules") else []
    if project.composer and answers(_NAME, sandbox):
        return Plan(steps=(*steps, _packages(project, DOWNLOADS), *_from_registry(project)), exhausted=True)
    if provision.unserved:
        raise unreachable(_NAME, provision.unserved)
    steps.append(_packages(project, provision.packages))
    if project.composer:
        steps += _from_debian(project, provision)
    return Plan(steps=tuple(steps), exhausted=True)


def provide(context: Context, sandbox: Sandbox) -> None:
    """Raises:
    RegistryUnreachable: the project needs packages that Debian does not have, and Packagist does not answer.
    """
    project = project_of(context.tree)
    if project is None:
        return
    provision = served(needs_of(project), sandbox)
    if provision.unserved and not answers(_NAME, sandbox):
        raise unreachable(_NAME, provision.unserved)


def served(needs: tuple[Need, ...], sandbox: Sandbox) -> Served:
    """Debian's packages for those of Packagist, by their names."""
    named = {need.name: tuple(package_names(need.name)) for need in needs}
    known = versions(sandbox, (name for names in named.values() for name in names))
    packages: dict[str, None] = {}
    linked: list[str] = []
    unserved: list[str] = []
    for need in needs:
        package = next((name for name in named[need.name] if name in known), "")
        if package and fits(need, known[package]):
            packages[package] = None
            linked.append(f"{need.name}={known[package]}={package}")
        elif need.hard:
            unserved.append(shown(need, known.get(package, "")))
    return Served(packages=tuple(packages), unserved=tuple(unserved), linked=tuple(linked))


def package_names(name: str) -> Iterator[str]:
    """vendor/name is in php-vendor-name, or in php-name."""
    table = knowledge().packages
    if name in table:
        yield table[name]
        return
    vendor, _, rest = name.lower().replace("_", "-").replace(".", "-").partition("/")
    bare = rest.removeprefix("php-")
    yield f"php-{vendor}-{bare}"
    yield f"php-{vendor.removesuffix('php').rstrip('-')}-{bare}"
    yield f"php-{bare}"


def _packages(project: Project, packages: tuple[str, ...]) -> Step:
    table = knowledge().extensions
    extensions = [table.get(name, f"php-{name}") for name in extensions_of(project)]
    names = " ".join(dict.fromkeys([*ALWAYS.split(), *filter(None, extensions), *packages]))
    return Step(
        command=apt_install(names),
        why="PHP, its extensions and libraries as Debian packages them",
        fallback=(f"for name in {names}; do apt-get install -y --no-install-recommends $name; done; php --version",),
        timeout=1200,
    )


def _from_debian(project: Project, provision: Served) -> Iterator[Step]:
    script = resources.files(__package__).joinpath("link.php").read_text(encoding="utf-8")
    linked = " ".join(shlex.quote(item) for item in ("phpunit/phpunit=0=phpunit", *provision.linked))
    yield Step(
        command=f"mkdir -p {_SCRIPT.rpartition('/')[0]} && cat >{_SCRIPT} <<'END'\n{script}END\n"
        + inside(project.directory, f"php {_SCRIPT} {linked}"),
        why="Debian's libraries in the place where composer would install them",
    )
    yield Step(
        command=inside(project.directory, "composer dump-autoload --dev --no-scripts --no-plugins"),
        why=f"The autoloader that {project.manifest} describes",
        timeout=300,
    )


def _from_registry(project: Project) -> Iterator[Step]:
    install = "composer install --no-progress --no-scripts"
    yield Step(
        command=inside(project.directory, install),
        why=f"Packages that {project.manifest} names",
        fallback=(
            inside(project.directory, f"{install} --ignore-platform-reqs"),
            inside(project.directory, "composer update --no-progress --no-scripts --ignore-platform-reqs"),
        ),
        timeout=1200,
    )
