"""Interpreters of the host, taken into a base: every Python minor that a pyenv root has, at /opt/python/X.Y."""

import hashlib
import logging
import re
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import docker

from autoinstall.errors import ImageUnavailable
from autoinstall.sandbox.builder import SILENCE_SECONDS, add_file, build_image, describe
from autoinstall.sandbox.catalogue import Base
from autoinstall.sandbox.contract import Snapshot
from autoinstall.sandbox.engine import connect
from autoinstall.settings import Settings

_logger = logging.getLogger(__name__)

# The run path is mended for the new place, and so are the build-time paths that `sysconfig`, pkg-config and the scripts
# carry: an extension compiled for the interpreter would otherwise look for headers and libraries in the old one.
# On the path is a script, not a link: from 3.12 on, a virtual environment made through a link looks for its standard
# library beside the link. An interpreter that does not work here is left out rather than found broken by an agent.
_DOCKERFILE = r"""
ARG BASE
FROM ${BASE} AS build
ARG BUILD
LABEL autoinstall.build=${BUILD}
COPY python /opt/python
RUN set -eu; for home in /opt/python/*; do \
        minor="$(basename "$home")"; name="python$minor"; old="$(cat "$home/.origin")"; rm "$home/.origin"; \
        find "$home/bin" "$home/lib" -maxdepth 1 -type f \( -name "$name*" -o -name 'libpython*.so*' \) | \
        while read -r file; do \
            if head -c 4 "$file" | grep -q ELF; then \
                strip --strip-unneeded "$file"; patchelf --set-rpath '$ORIGIN/../lib' "$file"; \
            fi; \
        done; \
        grep -rIlF --exclude='*.pyc' "$old" "$home" | xargs -r sed -i "s#$old#$home#g"; \
        find "$home" -name '_sysconfigdata*.pyc' -delete; \
        printf '#!/bin/sh\nexec %s "$@"\n' "$home/bin/$name" > "/usr/local/bin/$name"; \
        chmod 755 "/usr/local/bin/$name"; \
        if "$name" -c 'import ssl, sqlite3, ctypes, zlib' && "$name" -m ensurepip >/dev/null && \
            "$name" -m venv "/tmp/$minor" && "/tmp/$minor/bin/python" -m pip --version >/dev/null; then \
            echo "Python $minor: taken in"; \
        else echo "Python $minor: left out"; rm -rf "$home" "/usr/local/bin/$name"; fi; \
    done
FROM ${BASE}
COPY --from=build /opt/python /opt/python
COPY --from=build /usr/local/bin/python* /usr/local/bin/
"""


@dataclass(frozen=True)
class Interpreter:
    """One interpreter of the host.

    Attributes:
        minor: `3.9`.
        home: its prefix on the host.
    """

    minor: str
    home: Path


def available(settings: Settings, base: Base) -> tuple[Interpreter, ...]:
    """The newest patch release of each Python 3 minor below the settings' directory, without the base's own minor."""
    root = settings.interpreters
    if root is None:
        return ()
    versions = root / "versions"
    newest: dict[str, tuple[int, Path]] = {}
    for home in sorted((versions if versions.is_dir() else root).glob("3.*")):
        match = re.fullmatch(r"(3\.\d+)\.(\d+)", home.name)
        if match is None or not (home / "bin" / f"python{match[1]}").exists():
            continue
        minor, patch = match[1], int(match[2])
        if minor != base.python and patch >= newest.get(minor, (-1, home))[0]:
            newest[minor] = (patch, home)
    found = (Interpreter(minor, home) for minor, (_, home) in newest.items())
    return tuple(sorted(found, key=lambda found: int(found.minor.partition(".")[2])))


def reference(base: Base, plain: Snapshot, settings: Settings) -> str:
    """The name of the base with interpreters, by their identity and the plain base's content."""
    digest = hashlib.sha256(f"{plain.digest}\0{_DOCKERFILE}".encode())
    for interpreter in available(settings, base):
        stat = (interpreter.home / "bin" / f"python{interpreter.minor}").stat()
        digest.update(f"\0{interpreter.home}\0{stat.st_size}\0{stat.st_mtime_ns}".encode())
    return f"{plain.reference.partition(':')[0]}-interpreters:{digest.hexdigest()[:12]}"


def ensure(client: docker.DockerClient, settings: Settings, base: Base, plain: Snapshot) -> Snapshot:
    """`plain` with the settings' interpreters; `plain` itself where they name none that it lacks.

    Raises:
        ImageUnavailable, DiskFull: as `build_image`.
    """
    chosen = available(settings, base)
    if not chosen:
        return plain
    name = reference(base, plain, settings)
    found = describe(client, name)
    if found is not None:
        return found
    _logger.info("Building %s with Python %s", name, ", ".join(interpreter.minor for interpreter in chosen))
    builder = connect(settings, timeout=SILENCE_SECONDS)
    settings.cache.mkdir(parents=True, exist_ok=True)
    try:
        # Some hundred megabytes: on disk, not in memory.
        with tempfile.TemporaryFile(dir=settings.cache) as context:
            with tarfile.open(fileobj=context, mode="w") as archive:
                add_file(archive, "Dockerfile", _DOCKERFILE.encode())
                for interpreter in chosen:
                    _pack(archive, interpreter)
            context.seek(0)
            build_image(builder, context, name, {"BASE": plain.digest}, kind="base")
    finally:
        builder.close()
    built = describe(client, name)
    if built is None:
        raise ImageUnavailable(f"{name} was built, and is gone.", hint="Is something removing images?")
    return built


def _pack(archive: tarfile.TarFile, interpreter: Interpreter) -> None:
    home = f"python/{interpreter.minor}"
    add_file(archive, f"{home}/.origin", str(interpreter.home).encode())
    for part in ("bin", "include", "lib"):
        archive.add(interpreter.home / part, f"{home}/{part}", filter=_kept)


# What was installed into the host's interpreter is the host's business; the interpreters' own tests and static
# libraries are the bulk of their size, and no project needs them, save the helpers in test.support.
_LEFT_OUT = re.compile(
    r"""python/[\d.]+/(
        bin/(?!python).* |
        lib/python[\d.]+/(site-packages|idlelib/idle_test|lib2to3/tests)(/.*)? |
        lib/python[\d.]+/(unittest|distutils|tkinter|ctypes|sqlite3)/tests?(/.*)? |
        lib/python[\d.]+/test/(?!__init__\.py$|support(/|$)).* |
        .*\.a
    )""",
    re.VERBOSE,
)


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if _LEFT_OUT.fullmatch(entry.name):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode |= 0o444 | (0o111 if entry.isdir() or entry.mode & 0o100 else 0)
    return entry
