"""Which line of Node a commit wants, from what the repository says of it and from its date."""

import re
from collections.abc import Sequence
from datetime import date, timedelta

from autoinstall.agents.rules.ecosystems.node.knowledge import Release, knowledge
from autoinstall.agents.rules.ecosystems.node.manifest import Package
from autoinstall.agents.rules.ecosystems.node.semver import lower_bound, parse, satisfies
from autoinstall.values import Evidence, Value

EARLIEST = date(2018, 2, 1)
"""Older commits are treated as of this day: what ran on Node 0.x to 6 runs on 8, and tools of today still know it."""


class NodeChoice(Value):
    """Lines of Node to try, the best first, and what the first rests on."""

    majors: tuple[int, ...]
    why: str
    evidence: Evidence | None = None


def choose(package: Package, commit_date: date, base_major: int, named: Sequence[str] = ()) -> NodeChoice:
    """Rank the lines of Node for `package`.

    Args:
        base_major: the line that the sandbox already has; preferred among equals, since it costs nothing.
        named: versions that CI and the like name, as written there.
    """
    known = knowledge()
    today = max(commit_date, EARLIEST)
    released = [item for item in known.release if item.since <= today + timedelta(days=14)]
    engines = package.table("engines").get("node", "")
    tested = _tested(named)
    pin, pin_evidence = _pin(package, today)
    if pin is None and not tested:
        pin, pin_evidence = _image(package)
    limit = _ceiling(package)
    current = max((item.major for item in released if item.lts_since <= today), default=8)

    def score(item: Release) -> int:
        points = -abs(item.major - current) * 2 - (1 if item.major > current else 0)
        if item.major == base_major:
            points += 7
        if pin is not None:
            points -= abs(item.major - pin) * 40
        if engines and not satisfies(item.latest, engines):
            points -= 400
        if tested:
            points -= 0 if item.major in tested else 60
        if limit is not None and item.major > limit:
            points -= 200
        return points

    pool = released if pin is None else list(known.release)
    ranked = tuple(item.major for item in sorted(pool, key=score, reverse=True))
    if pin is not None and pin_evidence is not None:
        why = f"Node {ranked[0]}: {pin_evidence.path} names {pin}"
    elif tested:
        why = f"Node {ranked[0]}: CI tests on {', '.join(map(str, sorted(tested)))}"
    elif engines:
        why = f"Node {ranked[0]}: engines says {engines}, commit of {commit_date.isoformat()}"
    else:
        why = f"Node {ranked[0]}: the commit is of {commit_date.isoformat()}"
    return NodeChoice(majors=ranked, why=why, evidence=pin_evidence)


def _pin(package: Package, today: date) -> tuple[int | None, Evidence | None]:
    tree = package.tree
    for name in (".nvmrc", ".node-version"):
        path = tree.first(package.path(name), name)
        major = _major(tree.read(path).strip(), today) if path else None
        if path and major is not None:
            return major, Evidence(path=path, line=1, text=tree.read(path).strip()[:80])
    path = tree.first(package.path(".tool-versions"), ".tool-versions")
    for number, line in tree.lines(path) if path else ():
        words = line.split()
        if len(words) >= 2 and words[0] in ("nodejs", "node"):
            return _major(words[1], today), Evidence(path=path or "", line=number, text=line[:80])
    volta = package.table("volta").get("node", "")
    if volta:
        return _major(volta, today), package.evidence('"volta"', f"volta.node {volta}")
    return None, None


def _image(package: Package) -> tuple[int | None, Evidence | None]:
    """The line of Node that a Dockerfile starts from."""
    tree = package.tree
    for path in (
        *tree.match("Dockerfile"),
        *tree.match(package.path("Dockerfile")),
        *tree.match(".devcontainer/Dockerfile"),
    ):
        for number, line in tree.lines(path):
            found = re.match(r"FROM\s+(?:\S+/)?node:(\d+)", line, re.I)
            if found:
                return int(found.group(1)), Evidence(path=path, line=number, text=line[:80])
    return None, None


def _major(text: str, today: date) -> int | None:
    text = text.strip().lower().removeprefix("v")
    if text.startswith("lts/"):
        named = next((item.major for item in knowledge().release if item.lts and item.lts == text[4:]), None)
        return named or max((item.major for item in knowledge().release if item.lts_since <= today), default=None)
    version = parse(text)
    return version[0] if version and version[0] >= 4 else None


def _tested(named: Sequence[str]) -> frozenset[int]:
    majors = {item.major for item in knowledge().release}
    found = {version[0] for version in (parse(text.strip().lstrip("^~>=v")) for text in named) if version}
    # Lines with odd numbers live half a year; the one after each takes its place.
    return frozenset({major + major % 2 for major in found} & majors)


def _ceiling(package: Package) -> int | None:
    limits = []
    for row in knowledge().ceiling:
        wanted = package.direct.get(row.package)
        low = lower_bound(wanted) if wanted else None
        below = parse(row.below)
        if low is not None and below is not None and low < below:
            limits.append(row.max_node)
    return min(limits, default=None)
