"""Goals of Django projects: what their `manage.py` tells of settings, addresses and migrations."""

import posixpath
import re
import shlex
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Candidate
from autoinstall.agents.rules.ecosystems.goals import candidate, evidence_at
from autoinstall.tree import Tree
from autoinstall.values import Category

_OWN_MIGRATION = re.compile(r"(?:^|/)\w+/migrations/(?P<name>\d{4}_\w+)\.py$")
_ASIDE = re.compile(r"(?i)(?:^|/)(?:tests?|testing|examples?|demo|sandbox|docs?|node_modules|templates?)/")
_ROUTES = "from django.urls import get_resolver as r; print('routes:', len(r().url_patterns))"


def candidates(tree: Tree) -> Iterator[Candidate]:
    """None where no `manage.py` of the project's own is there: libraries have them for their tests and examples."""
    found = (path for path in tree.match("**/manage.py") if not _ASIDE.search(path))
    path = min(found, key=lambda path: (path.count("/"), path), default="")
    if not path or "execute_from_command_line" not in tree.read(path):
        return
    directory = posixpath.dirname(path)
    evidence = evidence_at(tree, path, "execute_from_command_line")

    def manage(arguments: str) -> str:
        command = f"python manage.py {arguments}"
        return f"cd {shlex.quote(directory)} && {command}" if directory else command

    yield candidate(
        manage("check"),
        'loads all applications and their addresses, and finds no error: prints "System check identified"',
        Category.RUN,
        84,
        evidence,
    )
    yield candidate(
        manage(f"shell -c {shlex.quote(_ROUTES)}"),
        'loads the views of all addresses and prints how many of these there are at the top, after "routes:"',
        Category.RUN,
        56,
        evidence,
    )
    own = (match for name in tree.files if name.startswith(directory) if (match := _OWN_MIGRATION.search(name)))
    first = next((match for match in own if not _ASIDE.search(match.string)), None)
    if first is None:
        return
    yield candidate(
        manage("showmigrations --plan"),
        f'lists the migrations in the order in which they are applied, one of them "{first["name"]}"',
        Category.OTHER,
        70,
        evidence_at(tree, first.string, "Migration"),
    )
    yield candidate(
        manage("migrate --noinput"),
        'brings the tables of the database up to date: "Running migrations:" is printed',
        Category.SETUP,
        67,
        evidence_at(tree, first.string, "Migration"),
    )
