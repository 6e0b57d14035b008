"""Goals of Ruby projects."""

import posixpath
import re
import shlex
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Candidate, Context
from autoinstall.agents.rules.ecosystems.goals import candidate, evidence_at
from autoinstall.agents.rules.ecosystems.ruby.project import Project, project_of, undeclared, version_of
from autoinstall.agents.rules.ecosystems.scripting import files_of, inside, single_tests, suite, syntax_check
from autoinstall.tree import Tree
from autoinstall.values import Category

MAX_PROGRAMS = 3
_FAILS = (0, 1)
_TASK = re.compile(r"""(?m)TestTask\.(?:new|create)\b(?:[ (]+(?::|['"])(?P<name>[\w:-]+))?""")
_TEST_TASK = re.compile(r"""(?m)^\s*task[ (]+(?::test\b|test:|['"]test['"])""")


def candidates(context: Context) -> Iterator[Candidate]:
    project = project_of(context.tree)
    if project is None:
        return
    tree = context.tree
    yield from _suites(tree, project)
    yield from _single(tree, project)
    yield from _sources(tree, project)
    yield from _gem(tree, project)
    yield from _programs(tree, project)
    yield from _bundle(tree, project)


def _suites(tree: Tree, project: Project) -> Iterator[Candidate]:
    tested = project.specs or project.tests
    if not tested:
        return
    where = evidence_at(tree, project.at(tested[0]), "describe" if project.specs else "class ")
    suites: list[tuple[str, int]] = []
    if project.specs:
        suites.append((f"{project.prefix}rspec", 96))
    if project.tests:
        suites.append((_all_tests(tree, project), 90 if project.specs else 92))
        task = _test_task(tree.read(project.at(project.rakefile))) if project.rakefile else ""
        if task:
            # A Rakefile that needs further gems may not even load.
            weight = 80 if undeclared(tree, project, project.rakefile) else 97
            suites.append((f"{project.prefix}rake {task}", weight))
    for command, weight in suites:
        yield suite(inside(project.directory, command), where, fails=_FAILS, weight=weight)


def _test_task(rakefile: str) -> str:
    """The task that runs all tests, `test` where it is there; empty where no task does."""
    names = [match["name"] or "test" for match in _TASK.finditer(rakefile)]
    return "test" if names and ("test" in names or _TEST_TASK.search(rakefile)) else (names or [""])[0]


def _helper(tree: Tree, project: Project) -> str:
    """The option that loads the tests' helper, where they leave that to whoever runs them."""
    for path in ("spec/spec_helper.rb", "test/test_helper.rb", "test/helper.rb"):
        name = posixpath.basename(path).removesuffix(".rb")
        if tree.has(project.at(path)) and not any(name in tree.read(project.at(item)) for item in project.tests[:20]):
            return f" -r ./{path}"
    return ""


def _all_tests(tree: Tree, project: Project) -> str:
    """Every test file in one process, without Rake."""
    folder = project.tests[0].split("/")[0]
    names = {posixpath.basename(path) for path in project.tests}
    forms = {
        "test_*": any(name.startswith("test_") for name in names),
        "*_test": any(name.endswith("_test.rb") for name in names),
        "spec_*": any(name.startswith("spec_") for name in names),
        "*_spec": any(name.endswith("_spec.rb") for name in names),
    }
    wanted = ",".join(form for form, used in forms.items() if used)
    # Those start servers of many kinds, as they are loaded; where one is not to be had, no test at all would run.
    less = ".grep_v(/integration/)" if any("integration" in path for path in project.tests) else ""
    code = f'Dir["./{folder}/**/{{{wanted}}}.rb"].sort{less}.each {{ |file| require file }}'
    return f"{project.prefix}ruby -Ilib -I{folder}{_helper(tree, project)} -e '{code}'"


def _single(tree: Tree, project: Project) -> Iterator[Candidate]:
    tested = project.specs or project.tests
    helper = _helper(tree, project)

    def runs(path: str) -> str:
        command = "rspec" if project.specs else f"ruby -Ilib -I{path.split('/', maxsplit=1)[0]}{helper}"
        return f"{project.prefix}{command} {shlex.quote(path)}"

    needle = "describe" if project.specs else "class "
    yield from single_tests(tree, project.directory, tested, runs, fails=_FAILS, needle=needle)


def _sources(tree: Tree, project: Project) -> Iterator[Candidate]:
    ruby = files_of(tree, project.directory, ".rb")
    where = evidence_at(tree, project.at(ruby[0]))
    yield syntax_check(project.directory, "'*.rb'", "ruby -c", passed="'^Syntax OK$'", count=len(ruby), evidence=where)
    if not project.library:
        return
    main = project.at(f"lib/{project.library}.rb")
    version, constant, path = version_of(tree, project)
    load = f'require "{project.library}"'
    ruby_with = f"{project.prefix}ruby -Ilib"
    if version:
        # Some libraries leave the constant to a file of its own.
        also = path.removeprefix("lib/").removesuffix(".rb")
        yield candidate(
            inside(project.directory, f"{ruby_with} -e '{load}; require \"{also}\"; puts {constant}'"),
            f'loads the library with all that it needs and prints its version "{version}"',
            Category.RUN,
            74,
            evidence_at(tree, project.at(path), "VERSION"),
        )
    yield candidate(
        inside(
            project.directory,
            f"{ruby_with} -w -e '{load}; puts $LOADED_FEATURES.grep(/{project.library.split('/')[0]}/)'",
        ),
        f'loads the library with all that it needs and prints its files, "lib/{project.library}.rb" among them',
        Category.RUN,
        62,
        evidence_at(tree, main, "require"),
    )


def _gem(tree: Tree, project: Project) -> Iterator[Candidate]:
    if not project.gemspec:
        return
    where = evidence_at(tree, project.at(project.gemspec), "Specification")
    version, _, _ = version_of(tree, project)
    named = f'the version "{version}" and ' if version else ""
    yield candidate(
        inside(project.directory, f"gem build {project.gemspec} --output /tmp/{project.name}.gem"),
        f'packs the gem: {named}"Successfully built RubyGem" are printed',
        Category.BUILD,
        76,
        where,
    )
    yield candidate(
        inside(project.directory, f"ruby -e 'puts Gem::Specification.load(\"{project.gemspec}\").full_name'"),
        f'reads the specification of the gem and prints its name "{project.name}-{version}"',
        Category.OTHER,
        48,
        where,
    )
    yield candidate(
        inside(project.directory, f"gem build {project.gemspec} --output /tmp/a.gem && gem spec /tmp/a.gem files"),
        f'packs the gem and lists its files, "{f"lib/{project.library}.rb" if project.library else "lib/"}" among them',
        Category.BUILD,
        52,
        where,
    )


def _programs(tree: Tree, project: Project) -> Iterator[Candidate]:
    for index, path in enumerate(project.programs[:MAX_PROGRAMS]):
        text = tree.read(project.at(path)) + "".join(
            tree.read(project.at(item)) for item in files_of(tree, project.directory, ".rb") if "/cli" in item
        )
        run = f"{project.prefix}ruby -Ilib {path}"
        where = evidence_at(tree, project.at(path))
        if re.search(r"OptionParser|optparse|Thor|Slop|--help|GLI", text):
            yield candidate(
                inside(project.directory, f"{run} --help"),
                "the program explains how it is used in at least 2 lines",
                Category.RUN,
                80 - 6 * index,
                where,
                exit_codes=(0, 1),
            )
        else:
            yield candidate(
                inside(project.directory, f"ruby -wc {path}"),
                'reads the program: "Syntax OK" is printed',
                Category.LINT,
                38,
                where,
            )


def _bundle(tree: Tree, project: Project) -> Iterator[Candidate]:
    if project.rakefile and not undeclared(tree, project, project.rakefile):
        yield candidate(
            inside(project.directory, f"{project.prefix}rake --tasks --all"),
            'loads the Rakefile and lists its tasks, "rake" before each, in at least 2 lines',
            Category.OTHER,
            50,
            evidence_at(tree, project.at(project.rakefile), "task"),
        )
    if project.gemfile:
        where = evidence_at(tree, project.manifest, "gem")
        yield candidate(
            inside(project.directory, "bundle check"),
            'finds the gems of the bundle: "dependencies are satisfied" is printed',
            Category.SETUP,
            66,
            where,
        )
        yield candidate(
            inside(project.directory, "bundle list"),
            'lists the gems of the bundle, "rake" among them',
            Category.OTHER,
            36,
            where,
        )
