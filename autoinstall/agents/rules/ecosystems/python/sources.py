"""Gathers everything that says what the project and its tests need, sorted by what the targets need first."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from packaging.requirements import Requirement

from autoinstall.agents.rules.contract import Context, EvidenceCommand, Source
from autoinstall.agents.rules.ecosystems.python.environments import TestEnvironment, install_lines, test_environments
from autoinstall.agents.rules.ecosystems.python.knowledge import heavy_distributions
from autoinstall.agents.rules.ecosystems.python.locks import Lock, read_lock
from autoinstall.agents.rules.ecosystems.python.manifests import find_projects, requirement_files, role_of
from autoinstall.agents.rules.ecosystems.python.model import PythonProject, RequirementSet, SetRole, requirement_name
from autoinstall.agents.rules.ecosystems.python.requirements import parse_conda, parse_lines
from autoinstall.agents.rules.ecosystems.python.suite import Suite, find_suite
from autoinstall.values import Evidence

_INSTALL = re.compile(r"(?:^|\s)(?:uv\s+)?(?:pip3?|python3? -m pip)\s+install\s+(?P<arguments>.+)$")


class Sources:
    """All evidence of one checkout, read once.

    `projects` are those that get installed, outermost first; `main` is the one that goals are about.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.tree = context.tree

    @cached_property
    def projects(self) -> tuple[PythonProject, ...]:
        return find_projects(self.tree)

    @property
    def main(self) -> PythonProject:
        return self.projects[0]

    @cached_property
    def lock(self) -> Lock | None:
        return read_lock(self.tree, self.main.root)

    @cached_property
    def environments(self) -> tuple[TestEnvironment, ...]:
        return test_environments(self.tree)

    @cached_property
    def suite(self) -> Suite | None:
        return find_suite(
            self.context, self.environments, {name for project in self.projects for name in project.packages}
        )

    @cached_property
    def files(self) -> list[RequirementSet]:
        return requirement_files(self.tree) + list(self._conda())

    @cached_property
    def sets(self) -> tuple[RequirementSet, ...]:
        """Every set of requirements that was found, whatever it is for."""
        own = [item for project in self.projects for item in project.sets]
        environments = [item.requirements for item in self.environments]
        return (*own, *self.files, *environments, *self._ci())

    def test_extras(self) -> tuple[str, ...]:
        """Extras of the main project that its tests are installed with."""
        own = {item.name: item for item in self.main.sets if item.extra}
        wanted = [name for name, item in own.items() if item.role is SetRole.TEST]
        for environment in self.environments:
            if environment.requirements.role is SetRole.TEST:
                wanted += [name for name in environment.extras if name in own]
        for item in self._ci_extras():
            wanted += [name for name in item if name in own and own[name].role in (SetRole.TEST, SetRole.EXTRA)]
        if not self._tests_have_a_runner:
            wanted += [name for name, item in own.items() if item.role is SetRole.DEV]
        return tuple(dict.fromkeys(wanted))

    def test_sets(self) -> tuple[RequirementSet, ...]:
        """What tests are run with beside the project's own extras, most telling first.

        Sets for development come along only where those for tests do not bring a test runner: they pin and build much
        that no test needs.
        """
        found = [item for item in self.sets if not item.extra and self._is_for_tests(item)]
        if not self._tests_have_a_runner:
            found += [item for item in self.sets if not item.extra and item.role is SetRole.DEV and item not in found]
        # The plain files at the root are what an application, or a checkout without a package, runs on.
        return (*found, *(item for item in self.files if item.role is SetRole.RUNTIME))

    def _is_for_tests(self, item: RequirementSet) -> bool:
        groups = {name for env in self.environments if env.requirements.role is SetRole.TEST for name in env.groups}
        return item.role is SetRole.TEST or item.name in groups

    @cached_property
    def _tests_have_a_runner(self) -> bool:
        names = {requirement_name(line) for item in self.sets if self._is_for_tests(item) for line in item.requirements}
        return bool(names & _RUNNERS)

    def other_extras(self) -> tuple[str, ...]:
        """Optional features of the main project, that some of its tests may exercise."""
        taken = set(self.test_extras())
        return tuple(
            item.name
            for item in self.main.sets
            if item.extra
            and item.role is SetRole.EXTRA
            and item.name not in taken
            and not any(requirement_name(line) in heavy_distributions() for line in item.requirements)
        )

    def dropped(self) -> tuple[str, ...]:
        """References to repositories and archives that were replaced by releases of an index."""
        return tuple(dict.fromkeys(line for item in (*self.main.sets, *self.test_sets()) for line in item.dropped))

    def declared(self, distribution: str) -> str | None:
        """The requirement by which the project itself names a distribution, in any of its sets; None if it does not."""
        for item in self.sets:
            for line in item.requirements:
                if requirement_name(line) == distribution:
                    return str(Requirement(line))
        return None

    def local_paths(self) -> tuple[str, ...]:
        """Directories of the checkout that are installed beside the main project."""
        roots = {project.root for project in self.projects if project.installable}
        named = [path for item in (*self.main.sets, *self.test_sets()) for path in item.paths if path in roots]
        if not self.main.installable:
            named += [project.root for project in self.projects if project.installable]
        return tuple(dict.fromkeys(path for path in named if path != self.main.root or not self.main.installable))

    def _conda(self) -> Iterator[RequirementSet]:
        for path in self.tree.match("**/environment*.y*ml"):
            if path.count("/") > 2:
                continue
            parsed = parse_conda(self.tree, path)
            role = role_of(
                posixpath.basename(path), SetRole.RUNTIME if path.startswith("environment.") else SetRole.EXTRA
            )
            if parsed.requirements:
                yield RequirementSet(
                    name=path,
                    role=role,
                    requirements=tuple(parsed.requirements),
                    paths=tuple(parsed.paths),
                    dropped=tuple(parsed.dropped),
                    evidence=Evidence(path=path, line=1, text="conda environment"),
                )

    def _ci(self) -> Iterator[RequirementSet]:
        """What CI installs beside the project; not in jobs whose tests run in an environment that a tool makes."""
        apart = {_job(found) for found in self.context.findings.commands if _MAKES_ITS_OWN.search(found.command)}
        for found, arguments in self._ci_installs():
            if _job(found) in apart:
                continue
            parsed = parse_lines(install_lines(arguments), self.tree, found.working_directory, seen=set())
            names = [line for line in parsed.requirements if requirement_name(line) not in _NOISE]
            if names:
                role = role_of(f"{found.section} {found.command}", SetRole.EXTRA)
                where = role_of(f"{found.section} {found.evidence.path}", SetRole.TEST)
                lint_only = where in (SetRole.LINT, SetRole.DOCS, SetRole.RELEASE)
                yield RequirementSet(
                    name=found.evidence.path,
                    role=SetRole.LINT if lint_only else role,
                    requirements=tuple(names),
                    dropped=tuple(parsed.dropped),
                    evidence=found.evidence,
                )

    def _ci_extras(self) -> Iterator[list[str]]:
        elsewhere = (SetRole.LINT, SetRole.DOCS, SetRole.RELEASE)
        for found, arguments in self._ci_installs():
            if role_of(f"{found.section} {found.evidence.path}", SetRole.TEST) in elsewhere:
                continue
            for match in re.finditer(r"(?:^|\s)[\"']?\.(?:/)?\[([\w, .-]+)\]", arguments):
                yield [name.strip() for name in match[1].split(",")]

    def _ci_installs(self) -> Iterator[tuple[EvidenceCommand, str]]:
        for found in self.context.findings.commands:
            match = _INSTALL.search(found.command)
            where = f"{found.section} {found.evidence.path}"
            if match and found.source in (Source.CI, Source.MAKEFILE, Source.CONTAINER) and not _VARIANT.search(where):
                yield found, match["arguments"]


def _job(command: EvidenceCommand) -> tuple[str, str]:
    return command.evidence.path, command.section.partition(":")[0]


_MAKES_ITS_OWN = re.compile(r"^(?:\w+=\S*\s+)*(?:python3? -m )?(?:hatch (?:run|test)|tox|nox)\b(?!.*--version)")
_RUNNERS = frozenset(("pytest", "nose", "stestr", "testtools", "unittest2", "twisted", "django", "zope-testrunner"))

_VARIANT = re.compile(
    r"(?i)(?:^|[-_. /])(?:min|minimum|minimal|oldest|lowest|nightly|upstream|main_branch|windows|macos)(?:[-_. ]|$)"
)
"""Jobs that try other versions than what the project is usually run with."""

_NOISE = frozenset(
    [
        "pip",
        "setuptools",
        "wheel",
        "tox",
        "tox-gh-actions",
        "nox",
        "poetry",
        "pdm",
        "hatch",
        "uv",
        "build",
        "twine",
        "codecov",
        "coveralls",
        "pre-commit",
        "virtualenv",
        "pipenv",
        "flit",
        "tox-uv",
        "tox-travis",
        "conda",
    ]
)


def relaxed(requirement: str) -> str:
    """The requirement with exact pins as lower bounds: what was pinned for an older interpreter may not build or run on
    the one at hand."""
    return re.sub(r"(?<![=!<>~])===?\s*(?=\d[\w.!+]*(?:\s*(?:,|;|$)))", ">=", requirement)


def tidy(requirements: Iterable[str], own: str) -> list[str]:
    """One list of several: a distribution's first requirement with a version stands, the project itself is out."""
    kept: dict[tuple[str, str, str], str] = {}
    specified: set[str] = set()
    lines = list(dict.fromkeys(requirements))
    for line in lines:
        requirement = Requirement(line)
        name = requirement_name(line)
        if name == own or not name:
            continue
        if requirement.specifier:
            specified.add(name)
        key = (name, ",".join(sorted(requirement.extras)), str(requirement.marker or ""))
        if key not in kept or (requirement.specifier and not Requirement(kept[key]).specifier):
            kept[key] = line
    return [
        line
        for (name, extras, marker), line in kept.items()
        if Requirement(line).specifier or extras or marker or name not in specified
    ]
