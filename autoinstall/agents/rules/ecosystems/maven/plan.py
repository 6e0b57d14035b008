"""The set-up of a Maven project."""

import re
from collections.abc import Iterator

from autoinstall.agents.rules.contract import Context, Plan, Step
from autoinstall.agents.rules.ecosystems.goals import SUBMODULES
from autoinstall.agents.rules.ecosystems.jdk import Present, installation, look_up, named_in_ci
from autoinstall.agents.rules.ecosystems.maven.knowledge import knowledge, mvn
from autoinstall.agents.rules.ecosystems.maven.pom import Project, project_of
from autoinstall.sandbox.contract import Sandbox

HOME = "/opt/maven"
SETTINGS = "/root/.m2/settings.xml"
_BUILD_SECONDS = 2400.0
_SUITES_MAVEN = 8
"""The line 3.8 is the newest that every suite has."""
_SETTINGS_FILE = (
    "<settings><profiles><profile><id>environment</id><properties></properties></profile></profiles>"
    "<activeProfiles><activeProfile>environment</activeProfile></activeProfiles></settings>"
)


def make(context: Context, sandbox: Sandbox) -> Plan:
    """The plan of `context.attempt`; attempts differ by the JDK, where there is another."""
    project = project_of(context.tree)
    if project is None:
        return Plan(steps=(), exhausted=True)
    present = look_up(sandbox)
    has_maven = "Apache Maven" in sandbox.run("mvn -v", timeout=60).output
    jdks, reason = ranked(context, project, present)
    jdk = jdks[min(context.attempt, len(jdks)) - 1] if jdks else 0
    # Maven's wrapper would download one of its own.
    tools = installation(jdk, present, reason, () if has_maven else ("maven",), check="mvn")
    steps = [*tools, *_own_maven(context, project)]
    steps.append(Step(command=_settings(project, jdk), why="Properties of the environment, apart from the project's"))
    if context.tree.has(".gitmodules"):
        steps.append(SUBMODULES)
    steps += _build(project)
    home = f"{HOME}/bin:"
    env = {"PATH": home + present.path.removeprefix(home)} if present.path else {}
    if present.home(jdk):
        env["JAVA_HOME"] = present.home(jdk)
    return Plan(steps=tuple(steps), env=env, exhausted=context.attempt >= max(len(jdks), 1))


def ranked(context: Context, project: Project, present: Present) -> tuple[tuple[int, ...], str]:
    """JDKs that can be had, likeliest first, and why: one that the CI names, else the oldest that compiles it all."""
    to_be_had = present.to_be_had
    able = {jdk.version: jdk.least for jdk in knowledge().jdk}
    level = project.level
    named = named_in_ci(context)
    fit = [jdk for jdk in to_be_had if jdk >= level and able.get(jdk, 8) <= (level or 8)]
    fit += [jdk for jdk in to_be_had if jdk >= level and jdk not in fit]
    fit += [jdk for jdk in reversed(to_be_had) if jdk not in fit]
    best = [jdk for jdk in fit if jdk in named and jdk >= level][-1:]
    reason = (
        "named in the CI configuration" if best else f"compiles for Java {level}" if level else "what the suite has"
    )
    return tuple(dict.fromkeys((*best, *fit))), reason


def _own_maven(context: Context, project: Project) -> Iterator[Step]:
    """The Maven that the project insists on, or that projects of its time expect, out of Maven's own repository."""
    wrapper = context.tree.read(".mvn/wrapper/maven-wrapper.properties")
    asked = re.search(r"apache-maven-(\d+\.\d+\.\d+)-bin", wrapper)
    options = knowledge().options
    expected = options.newer if context.repository.commit_date.date() >= options.newer_from else ""
    match = re.match(r"3\.(\d+)", (asked[1] if asked else "") or project.root.maven or expected)
    if not match or int(match[1]) <= _SUITES_MAVEN:
        return
    artifact = f"org.apache.maven:apache-maven:{options.newer}:zip:bin"
    unpack = f"{options.fetcher}:unpack -Dartifact={artifact} -DoutputDirectory=/opt"
    move = f"rm -rf {HOME} && mv /opt/apache-maven-{options.newer} {HOME}"
    yield Step(
        command=f"cd / && {mvn(unpack)} && {move} && {HOME}/bin/mvn -v",
        why=f"Maven {match[0]} is what the project, or its time, is built with; the suite's may be older",
        optional=True,
        timeout=600,
    )


def _settings(project: Project, jdk: int) -> str:
    able = next((item for item in knowledge().jdk if item.version == jdk), None)
    properties = ""
    if able is not None and 0 < project.level < able.least:
        names = ("source", "target", "release")
        properties = "".join(f"<maven.compiler.{name}>{able.least}</maven.compiler.{name}>" for name in names)
    content = _SETTINGS_FILE.replace("<properties>", f"<properties>{properties}")
    return f"mkdir -p {SETTINGS.rpartition('/')[0]} && echo '{content}' > {SETTINGS}"


def _build(project: Project) -> Iterator[Step]:
    # `dependency:go-offline` misses what plugins resolve as they run, so the real phases are gone through.
    if not project.jars:
        yield Step(
            command=project.inside(mvn("test-compile")),
            why=f"Compiles the project and its tests ({project.root.manifest})",
            timeout=_BUILD_SECONDS,
        )
    yield Step(
        command=project.inside(mvn("package -DskipTests")),
        why="Builds the modules, which need the jars of others"
        if project.jars
        else "Fetches the plugins of the later phases",
        timeout=_BUILD_SECONDS,
        optional=not project.jars,
    )
