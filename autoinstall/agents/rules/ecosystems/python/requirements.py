"""Reads requirement files, lists and conda environments into PEP 508 strings that an index can serve."""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import yaml
from packaging.requirements import InvalidRequirement, Requirement

from autoinstall.tree import Tree

_MAX_INCLUDES = 40
_COMMENT = re.compile(r"(^|\s)#.*$")
_QUOTED = re.compile(r"^(['\"])(.*)\1$")
_HASH = re.compile(r"\s--hash[= ]\S+|\s--(?:config-settings?|global-option|install-option)[= ]\S+")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+(?:\[[^\]]*\])?)")
_DIRECT = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*(?:\[[^\]]*\])?)\s*@\s*(\S+)(\s*;.*)?$")
_VCS = re.compile(r"^(?:git|hg|svn|bzr)\+|^(?:https?|ssh|git|file)://|^git@")
_WHEEL = re.compile(r"/([A-Za-z0-9_.]+)-(\d[^-/]*)-[^/]*\.whl")
_SDIST = re.compile(r"/([A-Za-z0-9_.-]+?)-(\d[^/-]*)\.(?:tar\.gz|zip)")
_REPOSITORY = re.compile(r"/([A-Za-z0-9_.-]+?)(?:\.git)?(?:@[^/]*)?(?:#.*)?$")
_CONDA = re.compile(r"^(?:[\w.-]+::)?(?P<name>[A-Za-z0-9_.-]+)\s*(?P<spec>.*)$")


@dataclass
class Parsed:
    """What a list of requirement lines came to; fields as in `RequirementSet`."""

    requirements: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    own_extras: list[str] = field(default_factory=list)

    def extend(self, other: "Parsed") -> None:
        self.requirements += other.requirements
        self.paths += other.paths
        self.dropped += other.dropped
        self.own_extras += other.own_extras


def parse_file(tree: Tree, path: str, *, seen: set[str] | None = None) -> Parsed:
    """A requirements file with everything that it includes."""
    seen = seen if seen is not None else set()
    path = posixpath.normpath(path)
    parsed = Parsed()
    if path in seen or len(seen) >= _MAX_INCLUDES:
        return parsed
    seen.add(path)
    text = tree.read(path).replace("\\\r\n", " ").replace("\\\n", " ")
    parsed.extend(parse_lines(text.splitlines(), tree, posixpath.dirname(path), seen=seen))
    return parsed


def parse_lines(lines: Iterable[str], tree: Tree, base: str, *, seen: set[str] | None = None) -> Parsed:
    """Requirement lines as pip, tox and install commands write them.

    Args:
        base: directory that relative references start from.
    """
    parsed = Parsed()
    for raw in lines:
        line = _QUOTED.sub(r"\2", _HASH.sub("", _COMMENT.sub("", raw)).strip())
        if not line:
            continue
        option = re.match(r"^(-r|--requirement|-c|--constraint|-e|--editable)(?:\s*=\s*|\s+|(?=[\w.{/]))(.+)$", line)
        if option:
            _option(parsed, option[1], option[2].strip().strip("'\""), tree=tree, base=base, seen=seen)
        elif not line.startswith("-"):
            _plain(parsed, line, tree, base)
    return parsed


def _option(parsed: Parsed, option: str, value: str, *, tree: Tree, base: str, seen: set[str] | None) -> None:
    if option in ("-e", "--editable"):
        _plain(parsed, value, tree, base)
        return
    path = _resolve(base, value)
    if path is None or not tree.has(path):
        return
    if option in ("-r", "--requirement"):
        parsed.extend(parse_file(tree, path, seen=seen if seen is not None else set()))


def _plain(parsed: Parsed, line: str, tree: Tree, base: str) -> None:
    direct = _DIRECT.match(line)
    if direct:
        parsed.dropped.append(line)
        parsed.requirements.append(direct[1] + (direct[3] or ""))
        return
    if _VCS.match(line):
        parsed.dropped.append(line)
        name = name_of_url(line)
        if name:
            parsed.requirements.append(name)
        return
    if line.startswith((".", "/", "{toxinidir}", "{tox_root}")) or ("/" in line and ";" not in line):
        _local(parsed, line, tree, base)
        return
    cleaned = None if line.endswith((".txt", ".in", ".py")) else _clean(line)
    if cleaned:
        parsed.requirements.append(cleaned)
    else:
        parsed.dropped.append(line)


def _local(parsed: Parsed, line: str, tree: Tree, base: str) -> None:
    reference, _, extras = line.partition("[")
    path = _resolve(base, reference)
    if path is None:
        parsed.dropped.append(line)
        return
    names = [extra.strip() for extra in extras.rstrip("] ").split(",") if extra.strip()]
    if any(tree.has(posixpath.join(path, name).removeprefix("./")) for name in ("setup.py", "pyproject.toml")):
        parsed.paths.append("" if path == "." else path)
        parsed.own_extras += names
    else:
        parsed.dropped.append(line)


def _resolve(base: str, reference: str) -> str | None:
    reference = re.sub(r"\{(?:toxinidir|tox_root)\}/?", "/", reference.strip())
    joined = posixpath.normpath(posixpath.join("/" + base, reference)).lstrip("/")
    return joined or "."


def _clean(line: str) -> str | None:
    candidate = re.sub(r"\s+", " ", line).strip()
    for form in (candidate, re.sub(r"(?<=[\w\]])\s*=(?!=)\s*(?=\d)", "==", candidate)):
        try:
            return str(Requirement(form))
        except InvalidRequirement:
            continue
    return None


def name_of_url(url: str) -> str | None:
    """The distribution that a VCS or archive URL most likely is, with its version where a file name gives one."""
    egg = _EGG.search(url)
    if egg:
        return egg[1]
    for pattern in (_WHEEL, _SDIST):
        archive = pattern.search(url)
        if archive and "/archive/" not in url:
            return f"{archive[1]}=={archive[2]}"
    repository = _REPOSITORY.search(url.split("#", maxsplit=1)[0].split("/archive/", maxsplit=1)[0].rstrip("/"))
    name = repository[1] if repository else None
    return name.removeprefix("python-") if name and name[0].isalnum() else None


# Conda packages that are no Python distributions, or are part of the interpreter.
_CONDA_ONLY = frozenset(
    [
        "python",
        "pip",
        "conda",
        "mamba",
        "nodejs",
        "gcc",
        "gxx",
        "gfortran",
        "make",
        "cmake",
        "compilers",
        "c-compiler",
        "cxx-compiler",
        "fortran-compiler",
        "mkl",
        "blas",
        "libblas",
        "openblas",
        "hdf5",
        "libgdal",
        "gdal",
        "proj",
        "geos",
        "fftw",
        "openmpi",
        "mpich",
        "git",
        "pandoc",
        "cudatoolkit",
        "cuda",
        "pytorch-cuda",
        "libnetcdf",
        "jq",
        "openjdk",
        "r-base",
        "graphviz",
        "ffmpeg",
        "swig",
        "doxygen",
        "ninja",
        "pkg-config",
        "libstdcxx-ng",
        "bzip2",
    ]
)
_CONDA_NAMES = {
    "pytorch": "torch",
    "pytables": "tables",
    "msgpack-python": "msgpack",
    "python-graphviz": "graphviz",
    "opencv": "opencv-python-headless",
    "matplotlib-base": "matplotlib",
    "seaborn-base": "seaborn",
    "dask-core": "dask",
    "ruamel_yaml": "ruamel.yaml",
    "pyqt": "PyQt5",
    "tensorflow": "tensorflow-cpu",
    "py-xgboost": "xgboost",
    "faiss-cpu": "faiss-cpu",
    "importlib_metadata": "importlib-metadata",
    "typing_extensions": "typing-extensions",
    "conda-lock": "conda-lock",
}


def parse_conda(tree: Tree, path: str) -> Parsed:
    """An environment.yml, as far as an index of Python distributions goes."""
    parsed = Parsed()
    try:
        document = yaml.safe_load(tree.read(path))
    except yaml.YAMLError:
        return parsed
    entries = document.get("dependencies") if isinstance(document, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            lines = [str(line) for line in entry.get("pip") or []]
            seen: set[str] = set()
            parsed.extend(parse_lines(lines, tree, posixpath.dirname(path), seen=seen))
        elif isinstance(entry, str):
            requirement = _conda_requirement(entry)
            if requirement:
                parsed.requirements.append(requirement)
    return parsed


def _conda_requirement(entry: str) -> str | None:
    match = _CONDA.match(entry.strip())
    if not match or match["name"].lower() in _CONDA_ONLY or match["name"].startswith(("lib", "r-", "_")):
        return None
    name = _CONDA_NAMES.get(match["name"].lower(), match["name"])
    spec = match["spec"].strip()
    if spec.startswith("=") and not spec.startswith("=="):
        spec = "==" + spec.lstrip("=").split("=")[0].rstrip(".*") + ".*"
    elif spec.startswith("=="):
        spec = "==" + spec[2:].split("=")[0]
    return _clean(f"{name}{spec}") or _clean(name)
