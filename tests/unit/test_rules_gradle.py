"""Gradle projects: build files, JDKs, goals, plans, and a distribution that is out of reach."""

from pathlib import Path

import pytest

from autoinstall.agents.rules.ecosystems.gradle import GradleEcosystem
from autoinstall.agents.rules.ecosystems.gradle.knowledge import knowledge, order
from autoinstall.agents.rules.ecosystems.gradle.plan import ranked
from autoinstall.agents.rules.ecosystems.gradle.project import project_of
from autoinstall.agents.rules.ecosystems.jdk import LOOK_UP, Present
from autoinstall.agents.rules.scope import out_of_scope
from autoinstall.errors import RegistryUnreachable
from autoinstall.outputs.summaries import summarise
from autoinstall.tree import Tree
from tests.conftest import written
from tests.unit.rules_contexts import context_of, goals_of, plan_of

WRAPPER = "distributionBase=GRADLE_USER_HOME\ndistributionUrl=https\\://dist.example/gradle-{version}-bin.zip\n"
PROJECT = {
    "gradlew": "#!/bin/sh\n",
    "gradle/wrapper/gradle-wrapper.properties": WRAPPER.format(version="8.5"),
    "settings.gradle.kts": 'rootProject.name = "thing"\ninclude("core", ":tools:cli")\n// include("gone")\n',
    "build.gradle.kts": "plugins { checkstyle }\n",
    "gradle.properties": "version=1.4.2\n",
    "core/build.gradle.kts": "java { toolchain { languageVersion = JavaLanguageVersion.of(17) } }\n"
    "tasks.compileJava { options.release = 11 }\n",
    "core/src/main/java/a/Core.java": "package a;\n\npublic class Core { }\n",
    "core/src/test/java/a/CoreTest.java": "package a;\n\nclass CoreTest { @Test void a() {} }\n",
    "core/src/test/kotlin/a/FarTest.kt": 'package a\n\nclass FarTest { @Test fun a() { get("https://forge.net") } }\n',
    "core/src/test/java/a/OffTest.java": "@Disabled class OffTest { @Test void a() {} }\n",
    "tools/cli/cli.gradle": "application { mainClass = 'a.Main' }\n",
    "tools/cli/src/main/java/a/Main.java": 'package a;\n\npublic class Main { String h = "--help"; }\n',
}
PRESENT = "path /usr/bin\narchitecture amd64\njavac bash: javac: command not found\nopenjdk-17-jdk-headless\n"


def test_a_build_of_several_projects(tmp_path: Path) -> None:
    project = project_of(Tree(written(tmp_path, PROJECT)))
    assert project is not None
    assert [(module.path, module.directory) for module in project.modules] == [
        ("", ""),
        (":core", "core"),
        (":tools:cli", "tools/cli"),
    ]
    assert (project.name, project.version, project.gradle) == ("thing", "1.4.2", "8.5")
    assert project.distribution == "https://dist.example/gradle-8.5-bin.zip"
    assert (project.level, project.toolchains) == (11, (17,))
    assert project.modules[2].main == "a.Main"


def test_goals(tmp_path: Path) -> None:
    goals = goals_of(GradleEcosystem(), context_of(tmp_path, PROJECT))
    whole = next(goal for command, goal in goals.items() if "cleanTest test --continue" in command)
    assert whole.min_pass_rate == 0.9
    single = [command for command in goals if "--tests" in command]
    assert ":core:cleanTest :core:test --tests a.CoreTest" in single[0]
    assert not any("OffTest" in command for command in single)
    assert '"thing"' in goals["sh gradlew --console=plain projects"].description
    assert '"1.4.2"' in goals["sh gradlew --console=plain -q properties"].description
    assert '"Gradle 8.5"' in goals["sh gradlew --console=plain --version"].description
    assert "sh gradlew --console=plain checkstyleMain" in goals
    assert "sh gradlew --console=plain -q :tools:cli:run --args=--help" in goals
    assert '"a.Core"' in goals["javap -cp core/build/classes/java/main a.Core"].description


def test_tests_are_counted_by_their_reports() -> None:
    line = '<testsuite name="a.CoreTest" tests="5" skipped="1" failures="2" errors="0"'
    (counts,) = summarise(f"BUILD SUCCESSFUL in 3s\n{line}\n{line.replace('2', '0')}\n")
    assert (counts.passed, counts.failed, counts.skipped) == (6, 2, 2)


@pytest.mark.parametrize(
    ("gradle", "level", "suite", "expected"),
    [
        ("8.5", 11, (11, 17, 21), 21),
        ("8.4", 11, (11, 17, 21), 17),
        ("6.9", 8, (11, 17), 11),
        ("6.9", 8, (17,), 17),
        ("9.1", 17, (11, 17, 25), 25),
        ("9.0.0", 8, (11, 17), 17),
    ],
)
def test_the_jdk_is_one_that_gradle_runs_on(
    tmp_path: Path, gradle: str, level: int, suite: tuple[int, ...], expected: int
) -> None:
    files = {
        **PROJECT,
        "gradle/wrapper/gradle-wrapper.properties": WRAPPER.format(version=gradle),
        "core/build.gradle.kts": f"tasks.compileJava {{ options.release = {level} }}\n",
    }
    context = context_of(tmp_path, files)
    project = project_of(context.tree)
    assert project is not None
    assert ranked(context, project, Present(suite=suite))[0][0] == expected


def test_the_wrapper_brings_its_own_gradle(tmp_path: Path) -> None:
    made = plan_of(GradleEcosystem(), context_of(tmp_path, PROJECT), {LOOK_UP: PRESENT})
    commands = [step.command for step in made.steps]
    assert any("openjdk-17-jdk-headless" in command for command in commands)
    assert not any("install -y --no-install-recommends gradle" in command for command in commands)
    assert commands.index("sh gradlew --console=plain --version") < commands.index(
        "sh gradlew --console=plain testClasses"
    )
    assert made.env == {"JAVA_HOME": "/usr/lib/jvm/java-17-openjdk-amd64"}


def test_without_a_wrapper_it_is_debians(tmp_path: Path) -> None:
    context = context_of(tmp_path, {"build.gradle": "apply plugin: 'java'\n"})
    commands = [step.command for step in plan_of(GradleEcosystem(), context, {LOOK_UP: PRESENT}).steps]
    assert any("apt-get install -y --no-install-recommends gradle" in command for command in commands)
    assert "gradle --console=plain testClasses" in commands


def test_a_distribution_out_of_reach_is_told_at_once(tmp_path: Path) -> None:
    context = context_of(tmp_path, PROJECT)
    with pytest.raises(RegistryUnreachable, match=r"dist\.example/gradle-8\.5-bin\.zip"):
        goals_of(GradleEcosystem(), context, {"curl -sfIL": (6, "")})
    with pytest.raises(RegistryUnreachable):
        plan_of(GradleEcosystem(), context, {"curl -sfIL": (6, ""), LOOK_UP: PRESENT})


def test_builds_of_examples_are_none_of_the_repository(tmp_path: Path) -> None:
    assert not GradleEcosystem().detect(
        Tree(written(tmp_path, {"examples/build.gradle": "", "buildSrc/build.gradle": ""}))
    )


def test_a_project_of_the_android_sdk_is_out_of_scope(tmp_path: Path) -> None:
    files = {"build.gradle": "", "app/build.gradle": "apply plugin: 'com.android.application'\n", "app/A.java": "a"}
    assert "Android SDK" in out_of_scope(Tree(written(tmp_path / "a", files)))
    assert out_of_scope(Tree(written(tmp_path / "b", {**files, "setup.py": ""}))) == ""
    catalogue = {**files, "app/build.gradle": "plugins {\n  alias(libs.plugins.android.application)\n}\n"}
    assert "Android SDK" in out_of_scope(Tree(written(tmp_path / "c", catalogue)))


def test_a_module_for_android_among_others_leaves_a_project_in_scope(tmp_path: Path) -> None:
    files = {
        "build.gradle.kts": 'plugins {\n    id("com.android.library") apply false\n}\n',
        "core/build.gradle.kts": "plugins { java }\n",
        "more/build.gradle.kts": "plugins { java }\n",
        "android/build.gradle.kts": 'plugins { id("com.android.library") }\n',
        "core/A.java": "a",
    }
    assert out_of_scope(Tree(written(tmp_path, files))) == ""


def test_versions_in_the_table_rise() -> None:
    lines = [(order(item.gradle), item.jdk) for item in knowledge().line]
    assert lines == sorted(lines)
