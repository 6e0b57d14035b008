"""What documents, Makefiles, containers and Procfiles say."""

from pathlib import Path

import pytest

from autoinstall.agents.rules.contract import Source
from autoinstall.agents.rules.evidence import collect
from autoinstall.agents.rules.evidence.containers import read_containers
from autoinstall.agents.rules.evidence.makefile import read_makefiles
from autoinstall.agents.rules.evidence.readme import read_documents
from autoinstall.tree import Tree
from autoinstall.values import Category


def _tree(root: Path, files: dict[str, str]) -> Tree:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Tree(root)


README = """\
# Thing

## Development

```console
$ make check
all good
```

```python
import thing
```

## Windows

```sh
make win
```

    make indented
"""


def test_markdown_blocks(tmp_path: Path) -> None:
    found = [
        (item.command, item.evidence.line, item.section)
        for item in read_documents(_tree(tmp_path, {"README.md": README})).commands
    ]
    assert found == [("make check", 6, "Development")]


def test_rst_blocks(tmp_path: Path) -> None:
    text = (
        "Title\n=====\n\nTo test::\n\n    $ pytest -q\n    ok\n\n"
        ".. code-block:: bash\n   :caption: x\n\n   make lint\n\n.. code-block:: python\n\n   make()\n"
    )
    found = [
        (item.command, item.evidence.line) for item in read_documents(_tree(tmp_path, {"README.rst": text})).commands
    ]
    assert found == [("pytest -q", 6), ("make lint", 12)]


def test_agent_files_come_first(tmp_path: Path) -> None:
    block = "```\nmake check\n```\n"
    commands = read_documents(_tree(tmp_path, {"README.md": block, "AGENTS.md": block})).commands
    assert [item.source for item in commands] == [Source.AGENTS, Source.README]


def test_makefile_targets(tmp_path: Path) -> None:
    makefile = "X := 1\nall: lib\n\tcc\nlib check:: x.o\n.PHONY: all\n%.o: %.c\nx.o: x.c\nVAR:=2\n"
    tree = _tree(tmp_path, {"Makefile": makefile, "justfile": "set a := b\nlint:\n  x\ngreet name:\n  y\n"})
    found = [(item.command, item.evidence.line) for item in read_makefiles(tree).commands]
    assert found == [("make all", 2), ("make lib", 4), ("make check", 4), ("just lint", 2)]


def test_dockerfile_compose_and_procfile(tmp_path: Path) -> None:
    tree = _tree(
        tmp_path,
        {
            "Dockerfile": "FROM python:3.11-slim\nENV MODE=prod\nRUN apt-get update && \\\n  # note\n"
            '  apt-get install -y libxml2-dev\nCMD ["gunicorn", "app:app"]\n',
            "docker-compose.yml": "services:\n  db:\n    image: postgres:14\n    environment:\n      - POSTGRES_DB=s\n"
            "    ports: ['5432:5432']\n  web:\n    build: .\n",
            "Procfile": "web: gunicorn app:app --port $PORT\n",
        },
    )
    findings = read_containers(tree)
    assert findings.versions == {"python": ("3.11",)}
    assert findings.env == {"MODE": "prod"}
    assert [(item.image, item.env) for item in findings.services] == [("postgres", {"POSTGRES_DB": "s"})]
    runs = [item.command for item in findings.by_category(Category.RUN)]
    assert runs == ["gunicorn app:app", "gunicorn app:app --port $PORT"]
    assert [item.name for item in collect(tree).requirements] == ["libxml2-dev"]


@pytest.mark.parametrize("text", ["{", "[1]", '{"postCreateCommand": 3}', "// only a note"])
def test_malformed_devcontainers_give_nothing(tmp_path: Path, text: str) -> None:
    assert read_containers(_tree(tmp_path, {".devcontainer/devcontainer.json": text})).commands == ()


def test_devcontainer_with_comments(tmp_path: Path) -> None:
    text = '{\n  // set up\n  "postCreateCommand": "npm ci",\n}\n'
    (command,) = read_containers(_tree(tmp_path, {".devcontainer/devcontainer.json": text})).commands
    assert (command.command, command.evidence.line) == ("npm ci", 3)
