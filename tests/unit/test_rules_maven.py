"""Maven projects: POMs, JDKs, goals, plans and remedies."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoinstall.agents.rules.ecosystems.jdk import LOOK_UP, Present, java_version
from autoinstall.agents.rules.ecosystems.maven import MavenEcosystem
from autoinstall.agents.rules.ecosystems.maven.plan import ranked
from autoinstall.agents.rules.ecosystems.maven.pom import project_of
from autoinstall.agents.rules.knowledge import load
from autoinstall.agents.rules.repairs.generic import SymptomTable
from autoinstall.tree import Tree
from tests.conftest import written
from tests.unit.rules_contexts import context_of, goals_of, plan_of, remedies_of

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <!-- a comment -->
  <parent><groupId>com.example</groupId><artifactId>parent</artifactId><version>1.4.2</version></parent>
  <artifactId>thing</artifactId>
  <properties><maven.compiler.source>{level}</maven.compiler.source></properties>
  <build><plugins>
    <plugin><artifactId>maven-checkstyle-plugin</artifactId></plugin>
    <plugin><artifactId>maven-jar-plugin</artifactId>
      <configuration><archive><manifest><mainClass>com.example.Main</mainClass></manifest></archive></configuration></plugin>
  </plugins></build>
</project>
"""
PROJECT = {
    "pom.xml": POM.format(level="1.8"),
    "src/main/java/com/example/Main.java": 'package com.example;\n\npublic class Main { String h = "--help"; }\n',
    "src/test/java/com/example/MainTest.java": "package com.example;\n\nclass MainTest { @Test void a() {} }\n",
    "src/test/java/com/example/FarTest.java": 'class FarTest { @Test void a() { get("https://forge.net"); } }\n',
    "src/test/java/com/example/OffTest.java": "@Disabled class OffTest { @Test void a() {} }\n",
}


def test_goals(tmp_path: Path) -> None:
    goals = goals_of(MavenEcosystem(), context_of(tmp_path, PROJECT))
    assert {"mvn -B -ntp compile", "mvn -B -ntp package -DskipTests", "mvn -B -ntp validate"} <= set(goals)
    assert any("checkstyle:check -Dcheckstyle.failOnViolation=false" in command for command in goals)
    assert goals["mvn -B -ntp test -Dmaven.test.failure.ignore=true"].min_pass_rate == 0.9
    single = [command for command in goals if "-Dtest=" in command]
    assert "-Dtest=MainTest" in single[0]
    assert not any("OffTest" in command for command in single)
    assert '"1.4.2"' in goals["mvn -B -ntp -q help:evaluate -Dexpression=project.version -DforceStdout -N"].description
    assert "java -cp target/classes com.example.Main --help" in goals
    assert '"com.example.Main"' in goals["javap -cp target/classes com.example.Main"].description


def test_modules(tmp_path: Path) -> None:
    root = "<artifactId>all</artifactId><packaging>pom</packaging><modules><module>core</module></modules>"
    files = {"pom.xml": f"<project>{root}</project>", **{f"core/{name}": text for name, text in PROJECT.items()}}
    context = context_of(tmp_path, files)
    project = project_of(context.tree)
    assert project is not None
    assert [pom.directory for pom in project.poms] == ["", "core"]
    assert project.level == 8
    goals = goals_of(MavenEcosystem(), context)
    assert any("test -pl core -am -Dtest=MainTest" in command for command in goals)
    assert "mvn -B -ntp dependency:resolve" not in goals


@pytest.mark.parametrize(
    ("path", "dependency", "needed"),
    [
        ("core/src/main/java9/module-info.java", "", True),
        ("core/src/main/java/module-info.java", "", False),
        ("core/src/test/java/module-info.java", "", False),
        ("core/a.java", "<groupId>${project.groupId}</groupId><classifier>shaded</classifier>", True),
        ("core/a.java", "<groupId>com.example</groupId><classifier>shaded</classifier>", True),
        ("core/a.java", "<groupId>io.other</groupId><classifier>linux</classifier>", False),
    ],
)
def test_modules_that_need_each_others_jars(tmp_path: Path, path: str, dependency: str, needed: bool) -> None:
    root = "<groupId>com.example</groupId><packaging>pom</packaging><modules><module>core</module></modules>"
    depends = f"<dependencies><dependency>{dependency}</dependency></dependencies><build>"
    files = {"pom.xml": f"<project>{root}</project>", **{f"core/{name}": text for name, text in PROJECT.items()}}
    files |= {"core/pom.xml": files["core/pom.xml"].replace("<build>", depends), path: "module m {}"}
    goals = goals_of(MavenEcosystem(), context_of(tmp_path, files))
    phase, other = ("package", "test") if needed else ("test", "package")
    assert f"mvn -B -ntp {phase} -Dmaven.test.failure.ignore=true" in goals
    assert f"mvn -B -ntp {other} -Dmaven.test.failure.ignore=true" not in goals
    assert any(f"{phase} -pl core -am -Dtest=MainTest" in command for command in goals)
    assert ("mvn -B -ntp compile" in goals) is not needed
    steps = [step.command for step in plan_of(MavenEcosystem(), context_of(tmp_path, files)).steps]
    assert ("mvn -B -ntp test-compile" in steps) is not needed
    assert "mvn -B -ntp package -DskipTests" in steps


@pytest.mark.parametrize(("text", "version"), [("1.8", 8), ("17", 17), ("17.0.2", 17), ("${x}", 0), ("", 0)])
def test_java_versions(text: str, version: int) -> None:
    assert java_version(text) == version


@pytest.mark.parametrize(
    ("level", "ci", "suite", "expected"),
    [
        ("1.8", "", (11, 17, 21), 11),
        ("17", "", (11, 17, 21), 17),
        ("1.8", "17", (11, 17, 21), 17),
        ("1.5", "", (17,), 17),
        ("21", "", (17,), 17),
        ("1.5", "", (8, 17), 8),
    ],
)
def test_the_jdk(tmp_path: Path, level: str, ci: str, suite: tuple[int, ...], expected: int) -> None:
    workflow = (
        f"jobs:\n  a:\n    steps:\n      - uses: actions/setup-java@v4\n        with:\n          java-version: '{ci}'\n"
    )
    context = context_of(tmp_path, {**PROJECT, "pom.xml": POM.format(level=level), ".github/workflows/a.yml": workflow})
    project = project_of(context.tree)
    assert project is not None
    assert ranked(context, project, Present(suite=suite))[0][0] == expected


PRESENT = "path /usr/bin\narchitecture amd64\njavac bash: javac: command not found\nopenjdk-17-jdk-headless\n"


def _steps(tmp_path: Path, files: dict[str, str]) -> tuple[str, dict[str, str]]:
    made = plan_of(MavenEcosystem(), context_of(tmp_path, files), {LOOK_UP: PRESENT})
    return "\n".join(step.command for step in made.steps), made.env


def test_jdk_and_maven_come_from_debian_and_wrappers_are_passed_over(tmp_path: Path) -> None:
    steps, env = _steps(tmp_path, {**PROJECT, "mvnw": "#!/bin/sh\n"})
    assert "openjdk-17-jdk-headless maven" in steps
    assert "mvnw" not in steps
    assert env["JAVA_HOME"] == "/usr/lib/jvm/java-17-openjdk-amd64"


def test_a_level_that_the_jdk_no_longer_compiles_for_is_raised_outside_of_the_checkout(tmp_path: Path) -> None:
    steps, _ = _steps(tmp_path, {**PROJECT, "pom.xml": POM.format(level="1.5")})
    assert "<maven.compiler.source>7</maven.compiler.source>" in steps
    assert "/root/.m2/settings.xml" in steps


@pytest.mark.parametrize(
    ("wrapper", "taken"),
    [("apache-maven/3.9.6/apache-maven-3.9.6-bin.zip", True), ("apache-maven-3.6.3-bin.zip", False)],
)
def test_a_newer_maven_comes_out_of_mavens_own_repository(tmp_path: Path, wrapper: str, taken: bool) -> None:
    files = {**PROJECT, ".mvn/wrapper/maven-wrapper.properties": f"distributionUrl=https://repo.example/{wrapper}\n"}
    assert ("org.apache.maven:apache-maven:3.9.9:zip:bin" in _steps(tmp_path, files)[0]) is taken


def test_projects_of_a_later_time_expect_a_later_maven(tmp_path: Path) -> None:
    context = context_of(tmp_path, PROJECT, when=datetime(2026, 1, 1, tzinfo=UTC))
    steps = plan_of(MavenEcosystem(), context, {LOOK_UP: PRESENT}).steps
    assert any("org.apache.maven:apache-maven:3.9.9:zip:bin" in step.command for step in steps)


def test_what_is_no_project(tmp_path: Path) -> None:
    written(tmp_path, {"pom.xml": "<html/>", "a/pom.xml": "not xml", "src/test/resources/pom.xml": POM})
    assert not MavenEcosystem().detect(Tree(tmp_path))


def test_entities_are_not_followed(tmp_path: Path) -> None:
    evil = '<!DOCTYPE p [<!ENTITY x SYSTEM "file:///etc/passwd">]><project><artifactId>&x;</artifactId></project>'
    assert project_of(Tree(written(tmp_path, {"pom.xml": evil}))) is None


@pytest.mark.parametrize(
    ("output", "key", "remedy"),
    [
        ("[ERROR] Source option 5 is no longer supported. Use 7 or later.", "source-level:7", "compiler.source>7<"),
        ("Detected Maven Version: 3.8.7 is not in the allowed range [3.9,).", "newer", "apache-maven:3.9.9:zip:bin"),
        ("The plugin a:b:0.18 requires Maven version 3.9 ->", "newer", "/opt/maven"),
        ("Detected JDK version 17 is not in the allowed range [1.8,9)", "enforcer", "enforcer.skip"),
        ("toolchain types:\n[ERROR] jdk [ version='1.8' ]", "toolchain:1.8", "'1.8'"),
        ("java.lang.reflect.InaccessibleObjectException: Unable to make", "closed-modules", "--add-opens"),
        ("java.lang.NoSuchFieldError: Class com.sun.tools.javac.tree.JCTree", "lombok", "lombok.version"),
        ("java.lang.instrument.IllegalClassFormatException: x", "coverage-agent", "jacoco.skip"),
        ("java.lang.OutOfMemoryError: Java heap space", "memory", "-Xmx2g"),
    ],
)
def test_what_maven_says(tmp_path: Path, output: str, key: str, remedy: str) -> None:
    if "toolchain types" in output:
        output = f"Cannot find matching toolchain definitions for the following {output}"
    found = remedies_of("maven_symptoms", context_of(tmp_path, PROJECT), output)
    assert remedy in found[f"symptom:maven-{key}"]


def test_the_tables_of_symptoms_have_keys_of_their_own() -> None:
    tables = ("symptoms", "go_symptoms", "rust_symptoms", "maven_symptoms")
    keys = [item.key for name in tables for item in load(name, SymptomTable).symptoms]
    assert len(keys) == len(set(keys))
