"""Goals of Perl distributions."""

import re
import shlex
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Candidate, Context
from autoinstall.agents.rules.ecosystems.goals import SUITE_SECONDS, candidate, evidence_at
from autoinstall.agents.rules.ecosystems.perl.distribution import (
    Distribution,
    distribution_of,
    module_name,
    version_of,
)
from autoinstall.agents.rules.ecosystems.scripting import inside, single_tests, suite, syntax_check
from autoinstall.tree import Tree
from autoinstall.values import Category

MAX_MODULES = 3
MAX_SCRIPTS = 3
_FAILS = (0, *range(1, 126))
"""prove exits with the number of failed files."""


def candidates(context: Context) -> Iterator[Candidate]:
    distribution = distribution_of(context.tree)
    if distribution is None:
        return
    tree = context.tree
    yield from _tests(tree, distribution)
    yield from _build(tree, distribution)
    yield from _modules(tree, distribution)
    yield from _scripts(tree, distribution)
    critic = next((name for name in (".perlcriticrc", "perlcriticrc") if tree.has(distribution.at(name))), "")
    if critic and distribution.modules:
        yield candidate(
            inside(distribution.directory, f"perlcritic --profile {critic} --gentle --count lib"),
            "reads the modules and counts the violations of the project's policies in at least 1 line",
            Category.LINT,
            40,
            evidence_at(tree, distribution.at(critic)),
            exit_codes=(0, 2),
        )


def _tests(tree: Tree, distribution: Distribution) -> Iterator[Candidate]:
    if not distribution.tests:
        return
    where = evidence_at(tree, distribution.at(distribution.tests[0]), "use Test")
    library = "-b" if distribution.compiled else "-l"
    # As `make test` does, which says less of what failed; a suite that sleeps is not to be run in both ways.
    makes = {"Makefile.PL": "make && prove -b -r t", "Build.PL": "./Build && prove -b -r t"}
    yield suite(
        inside(distribution.directory, makes.get(distribution.builder, f"prove {library} -r t")),
        where,
        fails=_FAILS,
        says="builds the distribution and runs its tests" if distribution.builder else "runs the tests",
    )
    certain = [path for path in distribution.tests if "skip_all" not in tree.read(distribution.at(path))]
    yield from single_tests(
        tree,
        distribution.directory,
        certain,
        lambda path: f"prove {library} -v {shlex.quote(path)}",
        fails=_FAILS,
        needle="use Test",
        says="runs the tests of one file by name",
    )


def _build(tree: Tree, distribution: Distribution) -> Iterator[Candidate]:
    if not distribution.builder:
        return
    where = evidence_at(tree, distribution.at(distribution.builder))
    made, made_by = ("Makefile", "make") if distribution.builder == "Makefile.PL" else ("Build", "./Build")
    told = '"Makefile for"' if made == "Makefile" else '"Build"'
    yield candidate(
        inside(distribution.directory, f"perl {distribution.builder}"),
        f'looks for what the distribution needs and writes {made}: {told} is named, and no "Warning: prerequisite"',
        Category.SETUP,
        70,
        where,
    )
    stage = "/tmp/stage"  # noqa: S108 (a path inside the sandbox)
    option = f"DESTDIR={stage}" if made == "Makefile" else f"--destdir {stage}"
    least = max(int(len(distribution.modules) * 0.9), 1)
    yield candidate(
        inside(
            distribution.directory, f"{made_by} && {made_by} install {option} >/dev/null && find {stage} -name '*.pm'"
        ),
        f"builds and installs the distribution below a directory of its own: at least {least} lines name its modules",
        Category.BUILD,
        78,
        where,
        timeout=SUITE_SECONDS,
    )
    yield candidate(
        inside(distribution.directory, f"perl {distribution.builder} && {made_by}"),
        f"configures and builds the distribution; {told} is named, {made_by} stops at no error",
        Category.BUILD,
        62,
        where,
        timeout=SUITE_SECONDS,
    )


def _modules(tree: Tree, distribution: Distribution) -> Iterator[Candidate]:
    library = "-Mblib" if distribution.compiled else "-Ilib"
    if distribution.modules:
        pattern = "'lib/*.pm'" if distribution.modules[0].startswith("lib/") else "'*.pm'"
        yield syntax_check(
            distribution.directory,
            pattern,
            f"perl {library} -c",
            passed="'syntax OK$'",
            count=len(distribution.modules),
            evidence=evidence_at(tree, distribution.at(distribution.modules[0]), "package "),
        )
    telling = sorted(distribution.modules[:20], key=lambda path: not version_of(tree, distribution.at(path)))
    for index, path in enumerate(telling[:MAX_MODULES]):
        name, version = module_name(path), version_of(tree, distribution.at(path))
        where = evidence_at(tree, distribution.at(path), "VERSION" if version else "package ")
        if version:
            code, says = f"print {name}->VERSION", f'and prints its version "{version}"'
        else:
            file = name.replace("::", "/") + ".pm"
            code, says = f"print $INC{{q({file})}}", f'and prints where it lies: "{file}"'
        yield candidate(
            inside(distribution.directory, f"perl {library} -M{name} -e '{code}'"),
            f"loads the module with all that it needs {says}",
            Category.RUN,
            70 - 5 * index,
            where,
        )
    documented = [path for path in distribution.modules if "\n=head1" in tree.read(distribution.at(path))]
    for path in documented[:1]:
        yield candidate(
            inside(distribution.directory, f"podchecker {path}"),
            f'reads the documentation of the module and names it, "{path}"',
            Category.OTHER,
            34,
            evidence_at(tree, distribution.at(path), "=head1"),
            exit_codes=(0, 1),
        )
    if documented:
        yield candidate(
            inside(distribution.directory, f"pod2text {documented[0]}"),
            "lays out the documentation of the module as text in at least 10 lines",
            Category.OTHER,
            30,
            evidence_at(tree, distribution.at(documented[0]), "=head1"),
        )
    if distribution.tests:
        yield candidate(
            inside(distribution.directory, "prove --dry -r t"),
            f"lists the files with tests in at least {max(int(len(distribution.tests) * 0.9), 1)} lines",
            Category.OTHER,
            36,
            evidence_at(tree, distribution.at(distribution.tests[0])),
        )


def _scripts(tree: Tree, distribution: Distribution) -> Iterator[Candidate]:
    library = "-Mblib" if distribution.compiled else "-Ilib"
    for index, path in enumerate(distribution.scripts[:MAX_SCRIPTS]):
        text = tree.read(distribution.at(path))
        run = f"perl {library} {shlex.quote(path)}"
        where = evidence_at(tree, distribution.at(path), "help")
        if re.search(r"\bhelp\b", text) and re.search(r"Getopt::|pod2usage|--help", text):
            yield candidate(
                inside(distribution.directory, f"{run} --help"),
                "the program explains how it is used in at least 2 lines",
                Category.RUN,
                78 - 6 * index,
                where,
                exit_codes=(0, 1, 2, 255),
            )
        else:
            yield candidate(
                inside(distribution.directory, f"{run.replace('perl ', 'perl -c ', 1)}"),
                f'reads the program with all that it uses: "{path} syntax OK"',
                Category.LINT,
                44 - 4 * index,
                where,
            )
