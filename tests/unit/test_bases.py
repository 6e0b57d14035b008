"""The base that a repository is set up on, by what it says of versions."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoinstall.agents.contract import Repository
from autoinstall.agents.rules.bases import choose_base, ensure_chosen
from autoinstall.errors import ImageUnavailable
from autoinstall.sandbox.scripted import ScriptedProvider
from autoinstall.settings import Settings
from autoinstall.tree import Tree
from tests.conftest import written

REPOSITORY = Repository(url="https://example.com/o/n", commit="0" * 40, commit_date=datetime(2025, 1, 1, tzinfo=UTC))
POM = "<project><artifactId>a</artifactId><properties><java.version>{}</java.version></properties></project>"
WRAPPER = "distributionUrl=https\\://dist.example/gradle-{}-bin.zip\n"
JAVA = {"src/main/java/A.java": "class A {}"}


def python(specifier: str) -> dict[str, str]:
    return {"pyproject.toml": f'[project]\nname = "a"\nrequires-python = "{specifier}"\n', "a.py": ""}


def gradle(version: str) -> dict[str, str]:
    return {
        **JAVA,
        "gradlew": "",
        "build.gradle": "",
        "gradle/wrapper/gradle-wrapper.properties": WRAPPER.format(version),
    }


@pytest.mark.parametrize(
    ("files", "name", "reason"),
    [
        (python(">=3.8"), "default", ""),
        (python(">=3.12"), "trixie", "pyproject.toml requires Python >=3.12, and bookworm has 3.11"),
        (python(">=3.7,<3.10"), "bullseye", "pyproject.toml requires Python >=3.7,<3.10, and bookworm has 3.11"),
        (python(">=3.99"), "default", ""),
        ({**JAVA, "pom.xml": POM.format(17)}, "default", ""),
        ({**JAVA, "pom.xml": POM.format(21)}, "trixie", "pom.xml asks for Java 21 or later, and bookworm has 17"),
        (gradle("8.5"), "default", ""),
        (gradle("6.9"), "bullseye", "Gradle 6.9 asks for Java 8 to 15, and bookworm has 17"),
        ({"a.c": "", "Makefile": ""}, "default", ""),
    ],
)
def test_the_first_of_the_catalogue_that_has_what_is_asked_for(
    tmp_path: Path, files: Mapping[str, str], name: str, reason: str
) -> None:
    choice = choose_base(REPOSITORY, Tree(written(tmp_path, files)), Settings())
    assert (choice.name, choice.reason) == (name, reason)


def test_interpreters_of_the_host_serve_as_well(tmp_path: Path) -> None:
    tree = Tree(written(tmp_path, python(">=3.12")))
    assert choose_base(REPOSITORY, tree, Settings(interpreters=tmp_path)).name == "default"


def test_the_settings_come_first(tmp_path: Path) -> None:
    tree = Tree(written(tmp_path, python(">=3.12")))
    assert choose_base(REPOSITORY, tree, Settings(base_image="bullseye")).name == "bullseye"
    assert choose_base(REPOSITORY, tree, Settings(bases={"python": "mine:1", "java": "x"})).name == "mine:1"


def test_a_base_that_is_not_to_be_had_gives_way_unless_the_settings_name_it(tmp_path: Path) -> None:
    tree = Tree(written(tmp_path, python(">=3.12")))
    provider = ScriptedProvider({}, missing={"trixie", "mine:1"})
    assert ensure_chosen(provider, REPOSITORY, tree, Settings()).reference == "default"
    with pytest.raises(ImageUnavailable):
        ensure_chosen(provider, REPOSITORY, tree, Settings(bases={"python": "mine:1"}))
