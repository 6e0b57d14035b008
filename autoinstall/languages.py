"""Which language a repository is mostly written in, for statistics."""

from collections import Counter
from pathlib import PurePosixPath

from autoinstall.tree import Tree

_LANGUAGES = {
    "c": ("c", "h"),
    "c++": ("cc", "cpp", "cxx", "hpp", "hh"),
    "c#": ("cs",),
    "elixir": ("ex", "exs"),
    "go": ("go",),
    "haskell": ("hs",),
    "java": ("java",),
    "javascript": ("js", "mjs", "cjs", "jsx"),
    "kotlin": ("kt", "kts"),
    "lua": ("lua",),
    "perl": ("pl", "pm", "t"),
    "php": ("php",),
    "python": ("py", "pyx"),
    "r": ("r",),
    "ruby": ("rb",),
    "rust": ("rs",),
    "scala": ("scala", "sc"),
    "shell": ("sh", "bash", "bats"),
    "solidity": ("sol",),
    "swift": ("swift",),
    "typescript": ("ts", "tsx", "mts", "cts"),
    "vue": ("vue",),
}
_BY_SUFFIX = {f".{suffix}": language for language, suffixes in _LANGUAGES.items() for suffix in suffixes}
_NOT_OURS = frozenset({"node_modules", "vendor", "third_party", "external", "dist"})


def language_of(tree: Tree) -> str | None:
    """The language with the most source files outside vendored directories; None where there is none.

    Headers count as C unless C++ sources outnumber C sources.
    """
    counts: Counter[str] = Counter()
    for name in tree.files:
        language = language_of_file(name)
        if language and not _NOT_OURS.intersection(PurePosixPath(name).parts):
            counts[language] += 1
    if not counts:
        return None
    language = counts.most_common(1)[0][0]
    return "c++" if language == "c" and counts["c++"] > counts["c"] / 3 else language


def language_of_file(path: str) -> str | None:
    """The language that the file's suffix stands for."""
    return _BY_SUFFIX.get(PurePosixPath(path).suffix.lower())
