"""How a C program can be asked for its version or usage: read from its sources."""

import re

from autoinstall.tree import Tree

MAX_FILES = 400

_MAIN = re.compile(r"^\s*(?:\w[\w\s*]*\s+)?main\s*\(", re.MULTILINE)
_SOURCES = (".c", ".cc", ".cpp", ".cxx")


def question(tree: Tree, directory: str, name: str) -> tuple[str, str] | None:
    """(option, what it prints) of the program built in `directory`; None where its sources do not tell."""
    text = _main_text(tree, directory, name)
    if not text:
        return None
    if "--version" in text or re.search(r"\{\s*\"version\"", text):
        return "--version", "its version"
    if "--help" in text or re.search(r"\{\s*\"help\"", text):
        return "--help", "its usage"
    options = "".join(re.findall(r"getopt\w*\s*\([^\"]*\"([^\"]*)\"", text))
    if "V" in options:
        return "-V", "its version"
    if re.search(r"\"[^\"\n]*\s-v\s[^\"\n]*\bversion", text):
        return "-v", "its version"
    if "h" in options:
        return "-h", "its usage"
    return None


def _main_text(tree: Tree, directory: str, name: str) -> str:
    """The source that has the program's `main`, preferably the one of its name."""
    prefix = f"{directory}/" if directory else ""
    sources = [path for path in tree.files if path.endswith(_SOURCES) and path.startswith(prefix)][:MAX_FILES]
    mains = [path for path in sources if _MAIN.search(tree.read(path))]
    exact = [path for path in mains if path.rsplit("/", 1)[-1].rsplit(".", 1)[0] in (name, "main")]
    near = [path for path in mains if path.removeprefix(prefix).count("/") == 0]
    chosen = exact or (near if len(near) == 1 else [])
    return "\n".join(tree.read(path) for path in chosen[:2])


STAGE = "/tmp/stage"  # noqa: S108 (a path inside the sandbox)
"""Where goals install to: outside of the work tree."""
