"""The judge that needs no model: exit code, signs of failure, what the description requires, the runner's summary."""

from autoinstall.outputs.comparison import unmet
from autoinstall.outputs.complaint import complaint
from autoinstall.outputs.contradictions import contradictions
from autoinstall.outputs.expectations import Requirements, read_requirements, required_pass_rate
from autoinstall.outputs.summaries import COLLECTED, summarise, total
from autoinstall.values import Category, CommandResult, Goal, Judgement, TestCounts, Verdict

_MAX_FAILING_EXIT = 125
"""Above it an exit code means that the shell did not find or could not run the command, or that a signal ended it."""


class RulesJudge:
    """Holds what a command gave against its goal, in this order; the first that speaks against it decides.

    1. The limit ended it, or memory ran out.
    2. A description that says nothing matches nothing.
    3. The runner's summary: failures beyond the tolerance, or no test at all for a test goal.
    4. The exit code. Where the goal states a tolerance and a summary shows failures within it, the runner's own
       "some tests failed" code (1 to 125) is what is to be expected, and is accepted.
    5. Lines that contradict success.
    6. What the description requires: quoted texts, numbers, versions, counts.
    7. A test goal, and any whose description speaks of a part of the tests, needs a recognised summary with at least
       one test; without one it is `UNKNOWN`, unless the description requires something that the output shows.
    """

    name = "rules"

    def judge(self, goal: Goal, result: CommandResult) -> Judgement:
        if result.idle:
            return _no(f"The command hung: it was ended after {result.duration:.0f} s, when it did nothing any more.")
        if result.timed_out:
            return _no(f"The command did not end within its limit ({result.duration:.0f} s).")
        if result.out_of_memory:
            return _no("The sandbox ran out of memory while the command ran.")
        requirements = read_requirements(goal)
        if requirements.trivial:
            return _no("The description is too vague to hold an output against.")

        rate = required_pass_rate(goal, requirements)
        summaries = summarise(result.output)
        counts = total(summaries)
        against = contradictions(goal, result, summaries, rate)
        if not _exit_code_fits(goal, result, counts, rate):
            said = complaint(result.output)
            cause = f" {against[0]}" if against else f" It says: {said}" if said else ""
            return _no(f"Exit code {result.exit_code} instead of {_codes(goal)}.{cause}", counts)
        if against:
            return _no(against[0], counts)
        return _by_requirements(goal, result, requirements, summaries, rate)


def combine(deterministic: Judgement, model: Judgement) -> Judgement:
    """A model may doubt what the rules accept, and never accept what they do not."""
    if deterministic.verdict is not Verdict.MATCHES or model.verdict is Verdict.MATCHES:
        return deterministic
    return model.model_copy(update={"tests": deterministic.tests})


def _by_requirements(
    goal: Goal, result: CommandResult, requirements: Requirements, summaries: tuple[TestCounts, ...], rate: float
) -> Judgement:
    counts = total(summaries)
    problems = unmet(requirements, result.output, summaries, rate)
    if problems:
        if result.dropped_bytes and all(problem.missing for problem in problems):
            reason = f"{problems[0].reason} {result.dropped_bytes} bytes of it were dropped, so it may have been there."
            return Judgement(verdict=Verdict.UNKNOWN, reason=reason, tests=counts)
        return _no(problems[0].reason, counts)
    if counts is not None:
        return Judgement(verdict=Verdict.MATCHES, reason=_count_reason(counts), tests=counts)
    if (goal.category is Category.TEST or requirements.pass_rate is not None) and not requirements.positive:
        reason = "No test runner's summary was recognised, and the description names nothing else to look for."
        return Judgement(verdict=Verdict.UNKNOWN, reason=reason)
    shown = " and shows what the description names" if requirements.positive else ""
    return Judgement(
        verdict=Verdict.MATCHES, reason=f"It exits with {result.exit_code}{shown}; nothing contradicts success."
    )


def _exit_code_fits(goal: Goal, result: CommandResult, counts: TestCounts | None, rate: float) -> bool:
    if result.exit_code in goal.exit_codes:
        return True
    failed_within_tolerance = (
        rate < 1 and counts is not None and counts.failed + counts.errors > 0 and counts.passed >= rate * counts.ran
    )
    return failed_within_tolerance and 0 < result.exit_code <= _MAX_FAILING_EXIT and result.exit_code != 124


def _codes(goal: Goal) -> str:
    return " or ".join(str(code) for code in goal.exit_codes)


def _count_reason(counts: TestCounts) -> str:
    if counts.runner == COLLECTED:
        return f"pytest collects {counts.passed} tests."
    bad = counts.failed + counts.errors
    return f"{counts.runner} reports {counts.passed} passed{f', {bad} failed within the tolerance' if bad else ''}."


def _no(reason: str, counts: TestCounts | None = None) -> Judgement:
    return Judgement(verdict=Verdict.MISMATCH, reason=reason, tests=counts)
