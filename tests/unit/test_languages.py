"""Which language a repository counts as."""

import pytest
from llm_stage import make_checkout

from autoinstall.languages import language_of


@pytest.mark.parametrize(
    ("names", "language"),
    [
        (("contracts/A.sol", "contracts/B.sol", "deploy.sh"), "solidity"),
        (("a.c", "a.h", "b.cc", "c.cc"), "c++"),
        (("a.sh", "b.sh", "vendor/a.go", "vendor/b.go", "vendor/c.go"), "shell"),
    ],
)
def test_the_language_with_the_most_files_of_the_projects_own(tmp_path, names, language):
    tree = make_checkout(tmp_path, **{name.replace("/", "__"): "" for name in names})
    for name in ("src/name.py", "tests/test_name.py"):
        (tmp_path / name).unlink()
    assert language_of(tree) == language
