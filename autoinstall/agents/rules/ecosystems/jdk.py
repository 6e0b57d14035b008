"""The JDK of a sandbox, those that its Debian suite has, and goals of compiled Java."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from autoinstall.agents.rules.contract import Candidate, Context, Step
from autoinstall.agents.rules.ecosystems.goals import candidate, evidence_at
from autoinstall.agents.rules.system_packages import apt_install
from autoinstall.sandbox.catalogue import Base
from autoinstall.sandbox.contract import Sandbox
from autoinstall.tree import Tree
from autoinstall.values import Category, Evidence, Value

ANY = 1000
"""No bound: later than any JDK."""

LOOK_UP = (
    'printf "path %s\\n" "$PATH"; printf "architecture %s\\n" "$(dpkg --print-architecture)"; '
    'printf "javac "; javac -version 2>&1 | tail -n 1; '
    "apt-cache pkgnames openjdk- | grep -E '^openjdk-[0-9]+-jdk-headless$'; true"
)


class Present(Value):
    """What the sandbox has: its PATH, its JDK (0 where there is none), and the JDKs that its suite has."""

    path: str = ""
    architecture: str = ""
    jdk: int = 0
    suite: tuple[int, ...] = ()

    @property
    def to_be_had(self) -> tuple[int, ...]:
        """JDKs, oldest first."""
        return tuple(sorted({*self.suite, *((self.jdk,) if self.jdk else ())}))

    def home(self, jdk: int) -> str:
        """Where Debian puts a JDK of the suite; empty for any other."""
        known = jdk in self.suite and self.architecture
        return f"/usr/lib/jvm/java-{jdk}-openjdk-{self.architecture}" if known else ""


def look_up(sandbox: Sandbox) -> Present:
    output = sandbox.run(LOOK_UP, timeout=60).output
    path = re.search(r"(?m)^path (.*)$", output)
    architecture = re.search(r"(?m)^architecture (\w+)", output)
    javac = re.search(r"(?m)^javac javac ([\d.]+)", output)
    return Present(
        path=path[1].strip() if path else "",
        architecture=architecture[1] if architecture else "",
        jdk=java_version(javac[1]) if javac else 0,
        suite=tuple(sorted(int(number) for number in re.findall(r"openjdk-(\d+)-jdk-headless", output))),
    )


def java_version(text: str) -> int:
    """`1.8`, `8`, `17` → 8, 8, 17; 0 for anything else."""
    match = re.fullmatch(r"(?:1\.)?(\d+)(?:\.\d+)*", text.strip())
    return int(match[1]) if match else 0


def named_in_ci(context: Context) -> Sequence[int]:
    """The Java versions that CI, containers and version files name."""
    told = (re.sub(r"^\D*", "", text) for text in context.findings.versions.get("java", ()))
    return [number for text in told if (number := java_version(text))]


def installation(
    jdk: int, present: Present, why: str, others: Iterable[str] = (), check: str = "javac"
) -> Iterator[Step]:
    """Puts in a JDK (0: the suite's own choice) and other packages, where they are not there.

    Args:
        check: what must start afterwards; it is asked for its version.
    """
    wanted = (
        [] if present.jdk and present.jdk == jdk else [f"openjdk-{jdk}-jdk-headless" if jdk else "default-jdk-headless"]
    )
    packages = [*wanted, *others]
    if not packages:
        return
    ask = f"{check} -version"
    yield Step(
        command=f"{apt_install(' '.join(packages))} && {ask}",
        why=f"JDK {jdk or 'of the suite'} ({why})",
        fallback=(f"{apt_install(' '.join(['default-jdk-headless', *others]))} && {ask}",),
        timeout=900,
    )
    if jdk and wanted:
        switch = f"update-java-alternatives --jre-headless --set $(basename /usr/lib/jvm/java-1.{jdk}.0-openjdk-*)"
        yield Step(
            command=f"{switch}; update-alternatives --set javac /usr/lib/jvm/java-{jdk}-openjdk-*/bin/javac",
            why=f"JDK {jdk} comes before others that packages bring",
            optional=True,
        )


def lacks(base: Base, oldest: int, newest: int, why: str) -> str:
    """Why none of the base's JDKs is within these bounds; empty where one is."""
    if any(oldest <= jdk <= newest for jdk in base.java):
        return ""
    bounds = f"Java {oldest} or later" if newest >= ANY else f"Java {oldest} to {newest}"
    return f"{why} asks for {bounds}, and {base.suite} has {', '.join(map(str, base.java))}"


def public_classes(tree: Tree, paths: Iterable[str]) -> Iterator[tuple[str, str, Evidence]]:
    """Of Java sources those with a public type of their own name, the shallowest and longest first: kind, full name."""
    for path in sorted(paths, key=lambda item: (item.count("/"), -len(tree.read(item)), item)):
        name = posixpath.basename(path).removesuffix(".java")
        kind = re.search(rf"(?m)^public (?:(?:final|abstract) )?(class|interface|enum) {name}\b", tree.read(path))
        package = re.search(r"(?m)^package ([\w.]+);", tree.read(path))
        if kind and package:
            yield kind[1], f"{package[1]}.{name}", evidence_at(tree, path, kind[0])


def members(kind: str, name: str, classes: str, weight: int, evidence: Evidence) -> Candidate:
    """The goal to show the public members of a type that lies compiled below `classes`."""
    return candidate(
        f"javap -cp {classes} {name}",
        f'shows the public members of a compiled {kind}: "{name}" is printed',
        Category.RUN,
        weight,
        evidence,
    )
