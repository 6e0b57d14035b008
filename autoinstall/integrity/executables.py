"""The programs that the targets run, and whether one of them is a stub."""

import json
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatch

from autoinstall.commands import SimpleCommand, parse, unwrap
from autoinstall.integrity.changes import Changes
from autoinstall.integrity.files import BINARY, Files, in_workspace, lines, on_path
from autoinstall.integrity.owners import Owners
from autoinstall.integrity.report import Violation, ViolationKind
from autoinstall.integrity.table import integrity_table
from autoinstall.outputs.summaries import PLAIN, summarise
from autoinstall.sandbox.contract import WORKSPACE, TreeEntry
from autoinstall.values import Goal

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_INTERPRETER = re.compile(r"^(?:python|pypy|node|ruby|perl|php|bash|sh|dash|zsh|lua)[\d.]*$")
_VALUED = frozenset({"-W", "-X", "-r", "--require", "--import", "-I", "-o", "-O"})
_NPM_LIFECYCLE = frozenset({"test", "start", "stop", "restart"})
_LITERAL = re.compile(r"""(['"`])(?P<text>.*?)\1""")
_USER_SITES = ("/root/.local", "/home/[^/]+/.local")
_DEBIAN_HOOK = re.compile(
    r"\s*# install the apport exception handler if available\ntry:\n    import apport_python_hook\n"
    r"except ImportError:\n    pass\nelse:\n    apport_python_hook\.install\(\)\s*"
)
"""What Debian's interpreters bring as /etc/python3.N/sitecustomize.py, with a link to it among their modules."""
_HOOKS = frozenset({"sitecustomize.py", "usercustomize.py"})
_MAX_SCRIPT = 64 * 1024
_MAX_NPM_DEPTH = 5


class Executables:
    """Resolves and examines programs of one container.

    Args:
        changes: what is as it was in the initial state is nobody's stub.
        tracked: the checkout's files, relative; already known to be the commit's.
        path: the PATH that the targets run with.
    """

    def __init__(self, files: Files, changes: Changes, tracked: Collection[str], path: str) -> None:
        self.files = files
        self.changes = changes
        self.tracked = tracked
        named = dict.fromkeys(self._directory(part) for part in (path or DEFAULT_PATH).split(":") if part)
        # /bin and /sbin are links to their namesakes below /usr, which come first: every look costs a call.
        self.directories = [part for part in named if part not in {"/bin", "/sbin"} or f"/usr{part}" not in named]
        self._owners = Owners(files, tracked)
        self._written: set[str] = set()

    def check(self, targets: Sequence[Goal]) -> Iterator[Violation]:
        """Every program that a target names, those behind npm scripts, and the runners that a script may call."""
        seen: set[str] = set()
        self._written = {simple.input.strip() for goal in targets for simple in parse(goal.command)} - {""}
        for path in self._programs(targets):
            if path in seen:
                continue
            seen.add(path)
            if not self._is_listed(path):
                continue
            file = self.files.resolve(path)[1]
            if file is not None and (detail := self._complaint(path, file)):
                yield Violation(kind=ViolationKind.STUB, path=path, detail=detail)

    def interpreters(self) -> tuple[str, ...]:
        """Prefixes (/usr, /opt/venv, …) of the Pythons on the PATH, links of virtual environments not followed."""
        found = (on_path(self.files, name, self.directories) for name in ("python", "python3"))
        programs = (self.files.real(path) for path in found if path)
        return tuple(dict.fromkeys(posixpath.dirname(posixpath.dirname(path)) for path in programs))

    def _programs(self, targets: Sequence[Goal]) -> Iterator[str]:
        for goal in targets:
            for command in parse(goal.command):
                yield from self._of(command, "", 0)
        for name in integrity_table().always_resolved:
            if found := on_path(self.files, name, self.directories):
                yield found

    def _of(self, command: SimpleCommand, directory: str, depth: int) -> Iterator[str]:
        if not command.words:
            return
        inner = unwrap(command.words)
        for words in dict.fromkeys((command.words, inner)):
            yield from self._locations(words[0], directory)
        if _INTERPRETER.match(inner[0].rsplit("/", 1)[-1]) and (script := _script(inner[1:])):
            yield posixpath.normpath(posixpath.join(WORKSPACE, directory, script))
        name = _npm_script(inner)
        if name and depth < _MAX_NPM_DEPTH:
            for line in self._npm_lines(name, directory):
                for later in parse(line):
                    yield from self._of(later, directory, depth + 1)

    def _locations(self, program: str, directory: str) -> Iterator[str]:
        if program in integrity_table().builtins:
            return
        if "/" in program:
            yield posixpath.normpath(posixpath.join(WORKSPACE, directory, program))
            return
        local = f"{WORKSPACE}/node_modules/.bin/{program}"
        if self.files.stat(local) is not None:
            yield local
        if found := on_path(self.files, program, self.directories):
            yield found

    def _npm_lines(self, name: str, directory: str) -> Iterable[str]:
        scripts = npm_scripts(self.files, posixpath.normpath(posixpath.join(WORKSPACE, directory)))
        return [str(scripts[key]) for key in (f"pre{name}", name, f"post{name}") if key in scripts]

    def _is_listed(self, path: str) -> bool:
        """Whether the program, or a link on the way to it, is among the changes."""
        ends = (path, self.files.end(path))
        return self._any_listed(ends) or self._any_listed(self.files.chain(path))

    def _any_listed(self, links: Iterable[str]) -> bool:
        return any(self.changes.may_include(self.files.real(link)) for link in links)

    def _complaint(self, path: str, file: TreeEntry) -> str:
        name = posixpath.basename(path)
        inside = in_workspace(file.path)
        if inside is not None and inside in self.tracked:
            return ""
        if file.content.startswith(BINARY):
            return (
                "is a binary where a script belongs"
                if name in integrity_table().runner_scripts and not name.startswith("meson")
                else ""
            )
        if _forges_a_summary(file):
            return "prints a test runner's summary that is written in it"
        if inside is not None and self._is_copy(file):
            return ""
        if file.content.decode("utf-8", "replace").strip() in self._written:
            return ""  # the target's own here-document
        return self._owners.complaint(file)

    def _is_copy(self, file: TreeEntry) -> bool:
        """A build put a tracked script somewhere else."""
        name = posixpath.basename(file.path)
        same_name = (path for path in self.tracked if posixpath.basename(path) == name)
        return any(self._same(path, file) for path in same_name)

    def _same(self, path: str, file: TreeEntry) -> bool:
        entry = self.files.entry(f"{WORKSPACE}/{path}")
        return entry is not None and entry.content == file.content

    @staticmethod
    def _directory(part: str) -> str:
        return posixpath.normpath(posixpath.join(WORKSPACE, part))


def npm_scripts(files: Files, package: str) -> dict[str, object]:
    """The scripts of a directory's package.json; none where it cannot be read."""
    try:
        scripts = json.loads(files.text(f"{package}/package.json") or "{}").get("scripts", {})
    except (json.JSONDecodeError, AttributeError):
        return {}
    return scripts if isinstance(scripts, dict) else {}


def path_files(files: Files, changes: Changes, prefixes: Sequence[str]) -> Iterator[Violation]:
    """Start-up hooks in the interpreters' own directories: sitecustomize, and path files that run code."""
    table = integrity_table().known_pth
    roots = "|".join([*map(re.escape, prefixes), *_USER_SITES])
    sites = re.compile(
        rf"(?:{roots})/lib/(?:[^/]+/){{0,2}}[^/]*-packages/(?P<name>[^/]+)"
        rf"|(?:(?:{roots})/lib|/etc)/python[^/]*/(?P<hook>[^/]+customize\.py)"
    )
    for path in sorted(changes.paths):
        match = sites.fullmatch(path)
        name = (match["name"] or match["hook"]) if match is not None else ""
        if not name.endswith(".pth") and name not in _HOOKS:
            continue
        if name in _HOOKS:
            if files.stat(path) is not None and not _DEBIAN_HOOK.fullmatch(files.text(path)):
                yield Violation(kind=ViolationKind.STUB, path=path, detail="is run at every start of the interpreter")
            continue
        if name in table.names or any(fnmatch(name, pattern) for pattern in table.patterns):
            continue
        runs_code = any(line.startswith(("import ", "import\t")) for line in lines(files.text(path)))
        if runs_code and not _recorded(files, path):
            yield Violation(kind=ViolationKind.STUB, path=path, detail="runs code at every start of the interpreter")


def _recorded(files: Files, path: str) -> bool:
    site, name = posixpath.split(path)
    records = files.find(site, "-maxdepth", "2", "-name", "RECORD", containing=f"{name},sha256=")
    return any(f"{name},sha256=" in files.text(record) for record, _ in records)


def _script(arguments: Sequence[str]) -> str | None:
    """The file that an interpreter is asked to run; None for -c, -m and the like."""
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word in {"-c", "-e", "-m", "-p", "--eval", "--print", "-"} or re.fullmatch(r"-[a-z]*c", word):
            return None
        elif word in _VALUED:
            skip = True
        elif not word.startswith("-"):
            return word
    return None


def _npm_script(words: Sequence[str]) -> str | None:
    plain = [word for word in words[1:] if not word.startswith("-")]
    if words[0].rsplit("/", 1)[-1] not in {"npm", "pnpm", "yarn", "bun"} or not plain:
        return None
    if plain[0] in {"run", "run-script"}:
        return plain[1] if len(plain) > 1 else None
    if plain[0] == "t":
        return "test"
    return plain[0] if plain[0] in _NPM_LIFECYCLE or not words[0].endswith("npm") else None


def _forges_a_summary(file: TreeEntry) -> bool:
    """Whether a short script has a finished summary among its literals, as no runner does."""
    if len(file.content) > _MAX_SCRIPT:
        return False
    text = file.content.decode("utf-8", "replace").replace("\\n", "\n")
    literals = [part for match in _LITERAL.finditer(text) for part in match["text"].split("\n")]
    bare = [
        re.sub(r"^\s*(?:echo|printf)\s+(?:-\w+\s+)?", "", line).strip("'\"")
        for line in text.splitlines()
        if re.match(r"\s*(?:echo|printf)\b", line)
    ]
    return any(counts.passed and counts.runner != PLAIN for line in (*literals, *bare) for counts in summarise(line))
