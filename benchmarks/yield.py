"""What comes of a list of repositories, by ecosystem and by class of failure.

    python benchmarks/yield.py LIST.csv --data DIR [--tier N] [--category PREFIX …] [--report-only] [--public]

Runs the list as a night (what is done already is skipped, so that a benchmark can be gone on with) and prints a line
for each repository and two tables. The list is any that `autoinstall nightly` takes; of its other columns these count:

category  ecosystem, in front of the first `-`
expect    `verified` or `discard`
feasible  `yes`, `partly` or `no`: whether what it needs can be reached; yields are of those with `yes`

`--public` looks at every verified Python environment as two public benchmarks do: `collect` is Repo2Run's (`pytest
--collect-only` ends without an error), `imports` is EnvBench's (imports that pyright does not find; none is best).
"""

import argparse
import csv
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

from autoinstall.datasets.location import Location
from autoinstall.datasets.reader import environments, load_table
from autoinstall.datasets.records import EnvironmentRecord
from autoinstall.datasets.schemas import Dataset
from autoinstall.environment import Environment, open_environment
from autoinstall.errors import AutoinstallError
from autoinstall.settings import Settings, get_settings
from autoinstall.values import Outcome
from cli.progress import flow_session

LINE = "{:38.38} {:10.10} {:18.18} {:>3} {:>6} {:>5} {:>7} {:>7} {:>7} {:>7}  {}"
HEAD = ("repository", "category", "outcome", "try", "s", "held", "offline", "rebuild", "collect", "imports", "reason")
COLUMNS = (
    *("run_id", "repository", "ref", "outcome", "code", "reason", "attempts", "seconds", "finished_at"),
    *("held_out_passed", "held_out_total", "offline_ok", "environment_id"),
)
NOT_THEIRS = (Outcome.INFRASTRUCTURE, Outcome.CANCELLED, Outcome.UNKNOWN)
PYRIGHT = "python3 -m venv /tmp/pyright && /tmp/pyright/bin/pip install -q pyright"
IMPORTS = (
    '/tmp/pyright/bin/pyright --pythonpath "$(command -v python || command -v python3)" --outputjson . '
    '| grep -c \'"rule": "reportMissingImports"\''
)


@dataclass(frozen=True)
class Listed:
    """A row of the list."""

    url: str
    ref: str
    category: str
    expect: str
    feasible: str

    @property
    def ecosystem(self) -> str:
        return self.category.partition("-")[0]


@dataclass(frozen=True)
class Result:
    """The last run of a repository; `outcome` is None where it never ran."""

    listed: Listed
    outcome: Outcome | None = None
    reason: str = ""
    code: str = ""
    attempts: int = 0
    seconds: float = 0.0
    held_out: float | None = None
    offline: bool | None = None
    environment: EnvironmentRecord | None = None
    collects: bool | None = None
    missing_imports: int | None = None

    @property
    def verified(self) -> bool:
        return self.outcome is Outcome.VERIFIED

    @property
    def failure(self) -> str:
        """Class of a failure: the outcome, and what is known beside it."""
        return " ".join(dict.fromkeys(filter(None, (self.outcome, self.code))))

    def line(self) -> str:
        def shown(value: bool | None) -> str:
            return {None: "–", True: "yes", False: "no"}[value]

        rebuilt = self.environment.rebuild_ok if self.environment else None
        imports = "–" if self.missing_imports is None else self.missing_imports
        held = "–" if self.held_out is None else f"{self.held_out:.2f}"
        return LINE.format(
            "/".join(self.listed.url.rstrip("/").split("/")[-2:]), self.listed.category, self.outcome or "not run",
            self.attempts, round(self.seconds), held, shown(self.offline), shown(rebuilt), shown(self.collects),
            imports, self.reason[:110],
        )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", type=Path)
    parser.add_argument("--data", required=True)
    parser.add_argument("--tier", help="only rows with this value in the column tier")
    parser.add_argument("--category", action="append", default=[], help="only categories that begin so")
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--report-only", action="store_true", help="run nothing")
    parser.add_argument("--public", action="store_true", help="the public benchmarks' metrics of Python environments")
    options = parser.parse_args()
    data = Location(options.data)
    settings = get_settings().model_copy(update={"data": data})
    listed = read(options.list, options.tier, options.category)
    if not options.report_only:
        run(listed, data, settings, options.concurrency)
    print(LINE.format(*HEAD))
    results = []
    for result in last_results(listed, data):
        measured = with_public_metrics(result, settings) if options.public else result
        print(measured.line(), flush=True)
        results.append(measured)
    for line in (*by_ecosystem(results), "", *by_failure(results), "", *expectations(results)):
        print(line)
    return 0


def read(path: Path, tier: str | None, categories: Sequence[str]) -> list[Listed]:
    with path.open(newline="") as stream:
        return [
            Listed(
                row["url"], row.get("ref") or "", *(row.get(name) or "" for name in ("category", "expect", "feasible"))
            )
            for row in csv.DictReader(stream)
            if tier in (None, row.get("tier"))
            and (not categories or (row.get("category") or "").startswith(tuple(categories)))
        ]


def run(listed: Sequence[Listed], data: Location, settings: Settings, concurrency: int) -> None:
    with tempfile.TemporaryDirectory() as scratch, flow_session(verbose=False):
        from flows.nightly import run_nightly

        path = Path(scratch) / "list.csv"
        with path.open("w", newline="") as stream:
            csv.writer(stream).writerows([("url", "ref"), *((one.url, one.ref) for one in listed)])
        run_nightly(str(path), data=data, settings=settings, concurrency=concurrency)


def last_results(listed: Sequence[Listed], data: Location) -> list[Result]:
    known = {record.environment_id: record for record in environments(data)}
    rows = load_table(data, Dataset.REPOSITORIES, list(COLUMNS)).sort_by("finished_at").to_pylist()
    last = {(row["repository"], row["ref"] or ""): row for row in rows}
    found = []
    for one in listed:
        row = last.get((one.url, one.ref))
        if row is None:
            found.append(Result(one))
            continue
        total = row["held_out_total"]
        found.append(
            Result(
                one,
                outcome=Outcome(row["outcome"]),
                reason=" ".join(row["reason"].split()),
                code=row["code"] or "",
                attempts=row["attempts"],
                seconds=row["seconds"],
                held_out=row["held_out_passed"] / total if total else None,
                offline=row["offline_ok"],
                environment=known.get(row["environment_id"]),
            )
        )
    return found


def with_public_metrics(result: Result, settings: Settings) -> Result:
    """As Repo2Run and EnvBench would look at it, where it is a Python environment."""
    if result.environment is None or result.listed.ecosystem != "python":
        return result
    try:
        with open_environment(result.environment, settings=settings, purpose="benchmark") as environment:
            collects = environment.run(f"{pytest_of(result.environment)} --collect-only -q", timeout=600).exit_code == 0
            missing = missing_imports(environment)
    except AutoinstallError as error:
        print(f"{result.listed.url}: {error}")
        return result
    return replace(result, collects=collects, missing_imports=missing)


def pytest_of(record: EnvironmentRecord) -> str:
    """How this project's goals start pytest, up to its name; plain where none does."""
    for goal in record.goals:
        if found := re.search(r"(?:^|[;&|]\s*)((?:[\w./=-]+ )*?(?:[\w./-]*/)?(?:py\.test|pytest))\b", goal.command):
            return found[1]
    return "python -m pytest"


def missing_imports(environment: Environment) -> int | None:
    """None where pyright cannot be had."""
    if environment.run(PYRIGHT, timeout=300).exit_code != 0:
        return None
    counted = environment.run(IMPORTS, timeout=900).output.strip()
    return int(counted) if counted.isdigit() else None


def by_ecosystem(results: Iterable[Result]) -> list[str]:
    """A line for each: of the feasible ones that should come out verified, how many did."""
    form = "{:12} {:>5} {:>9} {:>7} {:>10} {:>15} {:>9} {:>8} {:>9} {:>8}"
    head = (
        "ecosystem",
        "rows",
        "verified",
        "yield",
        "discarded",
        "infrastructure",
        "median s",
        "held-out",
        "offline",
        "attempts",
    )
    lines = ["", form.format(*head)]
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        if result.listed.feasible in ("", "yes") and result.listed.expect in ("", "verified"):
            groups[result.listed.ecosystem or "all"].append(result)
    everything = [result for group in groups.values() for result in group]
    for name, group in [*sorted(groups.items()), ("all", everything)]:
        done = [result for result in group if result.outcome is not None]
        decided = [result for result in done if result.outcome not in NOT_THEIRS]
        good = [result for result in done if result.verified]
        lines.append(
            form.format(
                name,
                f"{len(done)}/{len(group)}",
                len(good),
                f"{len(good) / len(done):.0%}" if done else "–",
                len(decided) - len(good),
                len(done) - len(decided),
                round(median(result.seconds for result in done)) if done else "–",
                f"{mean(result.held_out or 0.0 for result in good):.2f}" if good else "–",
                f"{sum(result.offline is True for result in good)}/{len(good)}",
                f"{mean(result.attempts for result in good):.1f}" if good else "–",
            )
        )
    return lines


def by_failure(results: Iterable[Result]) -> list[str]:
    """A line for each class, the most frequent first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for result in results:
        if result.outcome is not None and not result.verified:
            groups[result.failure].append(result.listed.url.rsplit("/", 1)[-1])
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    return [f"{len(names):3}  {failure:40} {', '.join(sorted(names))}" for failure, names in ordered]


def expectations(results: Sequence[Result]) -> list[str]:
    """What the list expects, and what came out."""
    lines = []
    for expect, feasible in dict.fromkeys((one.listed.expect, one.listed.feasible) for one in results):
        group = [
            one for one in results if (one.listed.expect, one.listed.feasible) == (expect, feasible) and one.outcome
        ]
        good = sum(one.verified for one in group)
        lines.append(f"expect={expect or '–'} feasible={feasible or '–'}: {good} of {len(group)} verified")
    public = [one for one in results if one.collects is not None]
    if public:
        whole = [one.missing_imports for one in public if one.missing_imports is not None]
        lines.append(f"Repo2Run's metric: {sum(bool(one.collects) for one in public)} of {len(public)} collect")
        lines.append(
            f"EnvBench's metric: {sum(count == 0 for count in whole)} of {len(whole)} without a missing import"
        )
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
