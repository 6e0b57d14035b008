"""Splitting scripts, and telling what a command is about."""

import pytest

from autoinstall.agents.rules.evidence.classify import classify, is_refused, unwrap
from autoinstall.agents.rules.evidence.script import split_chain, split_script
from autoinstall.values import Category


def test_scripts_are_split_and_directories_followed() -> None:
    script = "mkdir build && cd build\nexport A=1\ncmake .. \\\n  -DX=ON\ncd ..\nmake -C build\n"
    found = [(line.command, line.directory, line.offset, line.env) for line in split_script(script)]
    assert found == [
        ("mkdir build", "", 0, {}),
        ("cmake .. -DX=ON", "build", 2, {"A": "1"}),
        ("make -C build", "", 5, {"A": "1"}),
    ]


@pytest.mark.parametrize(
    ("clone", "directory"),
    [
        ("git clone --depth 1 https://example.org/o/thing.git", "thing"),
        ("git clone git@example.org:o/thing", "thing"),
        ("git clone https://example.org/o/thing work", "work"),
    ],
)
def test_what_is_cloned_first_is_the_project(clone: str, directory: str) -> None:
    script = f"{clone}\ncd {directory}\nmake\ngit clone https://example.org/o/dep\ncd dep\nmake install\n"
    made = [line for line in split_script(script) if line.command.startswith("make")]
    assert [(line.command, line.directory) for line in made] == [("make", ""), ("make install", "dep")]


def test_blocks_and_here_documents_are_left_out() -> None:
    script = "for i in 1 2; do\n  make $i\ndone\ncat <<EOF > x\nrm y\nEOF\nhelp() {\n  a\n}\nmake last\n"
    assert [line.command for line in split_script(script)] == ["make last"]


def test_one_line_loops_do_not_swallow_the_rest() -> None:
    script = "for i in 1; do make $i; done\nmake check\n"
    assert [line.command for line in split_script(script)] == ["make check"]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("a && b; c", ["a", "b", "c"]),
        ("echo 'x && y' && z", ["echo 'x && y'", "z"]),
        ("a $(b; c) | d || e", ["a $(b; c) | d || e"]),
        ("a # note", ["a"]),
        ("a '", ["a '"]),
    ],
)
def test_split_chain(line: str, parts: list[str]) -> None:
    assert split_chain(line) == parts


@pytest.mark.parametrize(
    ("command", "bare"),
    [
        ("sudo -E make install", "make install"),
        ("poetry run pytest -q", "pytest -q"),
        ("uv run --frozen ruff check .", "ruff check ."),
        ("FOO=1 BAR='a b' make check", "make check"),
        ("xvfb-run -a npm test", "npm test"),
        ("$ make", "make"),
    ],
)
def test_unwrap(command: str, bare: str) -> None:
    assert unwrap(command) == bare


@pytest.mark.parametrize(
    ("command", "category"),
    [
        ("apt-get install -y cmake", Category.SETUP),
        ("pip install -e .[test]", Category.SETUP),
        ("npm ci", Category.SETUP),
        ("./configure --prefix=/usr", Category.SETUP),
        ("cmake -S . -B build", Category.SETUP),
        ("python -m pytest tests", Category.TEST),
        ("make check", Category.TEST),
        ("npm run test:unit", Category.TEST),
        ("ctest --test-dir build", Category.TEST),
        ("bats test", Category.TEST),
        ("ruff check .", Category.LINT),
        ("npm run lint", Category.LINT),
        ("make", Category.BUILD),
        ("make -j4 all", Category.BUILD),
        ("cmake --build build", Category.BUILD),
        ("npm run build", Category.BUILD),
        ("./prog --help", Category.RUN),
        ("python app.py", Category.RUN),
        ("frobnicate", Category.OTHER),
    ],
)
def test_classify(command: str, category: Category) -> None:
    assert classify(command) is category


@pytest.mark.parametrize(
    "command",
    [
        "twine upload dist/*",
        "npm publish",
        "docker build .",
        "curl -H 'Authorization: ${{ secrets.T }}' x",
        "git push origin main",
        "codecov",
        "echo $GITHUB_TOKEN",
        "pytest path/to/test",
        "pip install <package name>",
    ],
)
def test_refused(command: str) -> None:
    assert is_refused(command)


@pytest.mark.parametrize("command", ["pytest -q", "make check", "npm run build", "ctest --test-dir build"])
def test_not_refused(command: str) -> None:
    assert not is_refused(command)
