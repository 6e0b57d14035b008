"""The set-up of a Gradle project."""

import shlex

from autoinstall.agents.rules.contract import Context, Plan, Step
from autoinstall.agents.rules.ecosystems.goals import SUBMODULES
from autoinstall.agents.rules.ecosystems.gradle.knowledge import knowledge, order
from autoinstall.agents.rules.ecosystems.gradle.project import Project, project_of
from autoinstall.agents.rules.ecosystems.jdk import Present, installation, look_up, named_in_ci
from autoinstall.agents.rules.system_packages import apt_install
from autoinstall.errors import RegistryUnreachable
from autoinstall.sandbox.contract import Sandbox

BUILD_SECONDS = 2400.0
_ANSWER_SECONDS = 15
_DOWNLOAD_SECONDS = 600.0
_PROPERTIES = "org.gradle.daemon=false\\norg.gradle.vfs.watch=false\\n"
_USER = f"mkdir -p ~/.gradle && printf '{_PROPERTIES}' > ~/.gradle/gradle.properties"


def gradle(project: Project, arguments: str) -> str:
    """A call of Gradle from the root of the checkout."""
    program = "sh gradlew" if project.wrapper else "gradle"
    return project.inside(f"{program} {knowledge().options} {arguments}")


def check_reach(project: Project, sandbox: Sandbox) -> None:
    """Whether the wrapper's Gradle can be had: no package index and no suite has it.

    Raises:
        RegistryUnreachable: it cannot.
    """
    if not project.wrapper:
        return
    address = shlex.quote(project.distribution)
    asked = f"command -v curl >/dev/null || exit 0; curl -sfIL -m {_ANSWER_SECONDS} -o /dev/null {address}"
    if sandbox.run(asked, timeout=_ANSWER_SECONDS + 15).exit_code != 0:
        raise RegistryUnreachable(
            f"Gradle's own distribution does not answer from a sandbox ({project.distribution}), and the project's "
            "wrapper builds with no other.",
            hint="`autoinstall doctor` tells what sandboxes reach.",
        )


def make(context: Context, sandbox: Sandbox) -> Plan:
    """The plan of `context.attempt`; attempts differ by the JDK, where there is another.

    Raises:
        RegistryUnreachable: see `check_reach`.
    """
    project = project_of(context.tree)
    if project is None:
        return Plan(steps=(), exhausted=True)
    check_reach(project, sandbox)
    present = look_up(sandbox)
    jdks, reason = ranked(context, project, present)
    jdk = jdks[min(context.attempt, len(jdks)) - 1] if jdks else 0
    others = [f"openjdk-{version}-jdk-headless" for version in project.toolchains if version in present.suite]
    steps = [*installation(jdk, present, reason, [item for item in others if str(jdk) not in item])]
    if not project.wrapper:
        steps.append(Step(command=f"command -v gradle || {apt_install('gradle')}", why="Gradle itself", timeout=900))
    steps.append(Step(command=_USER, why="No process of Gradle's stays behind after a command"))
    if context.tree.has(".gitmodules"):
        steps.append(SUBMODULES)
    steps += [
        Step(
            command=gradle(project, "--version"),
            why=f"Gradle {project.gradle or 'of the suite'} starts on this JDK; its wrapper downloads it once",
            timeout=_DOWNLOAD_SECONDS,
        ),
        Step(
            command=gradle(project, "testClasses"),
            why=f"Compiles all projects and their tests ({project.manifest})",
            fallback=(gradle(project, "classes"), gradle(project, "assemble")),
            timeout=BUILD_SECONDS,
        ),
        Step(
            command=gradle(project, "assemble"),
            why="Fetches the plugins of the later tasks",
            timeout=BUILD_SECONDS,
            optional=True,
        ),
    ]
    env = {"JAVA_HOME": present.home(jdk)} if present.home(jdk) else {}
    return Plan(steps=tuple(steps), env=env, exhausted=context.attempt >= max(len(jdks), 1))


def bounds(project: Project) -> tuple[int, int]:
    """The oldest and the newest JDK that the project's Gradle runs on and its sources are compiled with."""
    version = order(project.gradle or knowledge().debian)
    newest = max((item.jdk for item in knowledge().line if order(item.gradle) <= version), default=8)
    oldest = max((item.jdk for item in knowledge().least if order(item.gradle) <= version), default=0)
    level = 0 if project.toolchains else project.level  # another JDK compiles then
    return max(oldest, min(level, newest)), newest


def ranked(context: Context, project: Project, present: Present) -> tuple[tuple[int, ...], str]:
    """JDKs that can be had, likeliest first, and why.

    Of those that this Gradle runs on it is one that the CI names, else the newest.
    """
    oldest, newest = bounds(project)
    if not project.wrapper:
        newest = max(present.to_be_had, default=newest)  # Debian's own Gradle runs on Debian's JDKs
    able = [jdk for jdk in present.to_be_had if oldest <= jdk <= newest]
    named = [jdk for jdk in named_in_ci(context) if jdk in able]
    rest = sorted((jdk for jdk in present.to_be_had if jdk not in able), key=lambda jdk: abs(jdk - newest))
    reason = "named in the CI configuration" if named else f"of {oldest} to {newest}, what Gradle and the sources take"
    return tuple(dict.fromkeys((*named[-1:], *reversed(able), *rest))), reason
