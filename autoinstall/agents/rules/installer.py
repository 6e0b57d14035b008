"""The installer that needs no model: plan, run, repair, run the targets, repair again."""

import time
from collections.abc import Iterable, Mapping, Sequence

from autoinstall.agents.contract import NO_JOURNAL, Assignment, Journal, Judge
from autoinstall.agents.rules.contract import Context, Ecosystem, Plan, Repairer, Step
from autoinstall.agents.rules.ecosystems import all_ecosystems
from autoinstall.agents.rules.evidence import collect
from autoinstall.agents.rules.evidence.classify import unwrap
from autoinstall.agents.rules.evidence.script import split_chain, words
from autoinstall.agents.rules.goal_setter import source_shares
from autoinstall.agents.rules.registries import answers, unreachable
from autoinstall.agents.rules.repairing import Failure, Workshop
from autoinstall.agents.rules.repairs import all_repairers
from autoinstall.agents.rules.repairs.modules import missing_modules
from autoinstall.agents.rules.system_packages import system_packages_step
from autoinstall.agents.rules.trajectory import Recorder, RecordingSandbox
from autoinstall.errors import BudgetExhausted, RegistryUnreachable, ServiceNotReady
from autoinstall.sandbox.contract import Sandbox
from autoinstall.settings import Settings
from autoinstall.tree import Tree
from autoinstall.values import CommandResult, Goal, Role, SetupReport, StopReason, Usage, Verdict

MAX_REPAIRS = 8
"""Remedies tried for one failing step or target."""

MAX_ROUNDS = 6
"""Times that all targets are run after one of them made a repair necessary."""

MIN_SHARE = 0.2
"""An ecosystem with fewer source files than this, relative to the main one's, is set up only if a target needs it."""


# What these two say of versions was found to work, or completed; builds without a network depend on it.
_KEPT = "':(exclude,glob)**/Cargo.lock' ':(exclude,glob)**/go.sum'"
_PUT_BACK = f"git ls-files --modified --deleted -z -- . {_KEPT} | sort -zu | xargs -0 -r git checkout -q --"
_RESTORE = Step(
    command=f'{_PUT_BACK}; git submodule --quiet foreach --recursive "{_PUT_BACK}"',
    why="Tracked files that a build or a target rewrote are put back: an environment has the sources of its commit.",
    optional=True,
)


class RulesInstaller:
    """Sets up by the plans of the ecosystems that the targets need, and repairs what fails.

    Args:
        judge: holds the targets' results against their descriptions, as verification will.
    """

    name = "rules"

    def __init__(
        self,
        settings: Settings,
        judge: Judge,
        *,
        ecosystems: Sequence[Ecosystem] | None = None,
        repairers: Sequence[Repairer] | None = None,
    ) -> None:
        self._limits = settings.limits
        self._judge = judge
        self._ecosystems = all_ecosystems() if ecosystems is None else tuple(ecosystems)
        self._repairers = all_repairers() if repairers is None else tuple(repairers)

    def install(
        self, assignment: Assignment, tree: Tree, sandbox: Sandbox, *, journal: Journal = NO_JOURNAL
    ) -> SetupReport:
        """As the contract says. Commands are cut short so that the whole call keeps to `attempt_seconds`."""
        del journal
        seconds = assignment.limits.attempt_seconds or self._limits.attempt_seconds
        recorder = Recorder(Role.INSTALLER, _task(assignment))
        recording = RecordingSandbox(sandbox, recorder)
        context = Context(
            repository=assignment.repository,
            tree=tree,
            targets=assignment.targets,
            attempt=assignment.attempt,
            lessons=assignment.lessons,
            findings=collect(tree),
        )
        command_seconds = assignment.limits.command_seconds or self._limits.command_seconds
        shop = Workshop(context, recording, self._repairers, deadline=time.monotonic() + seconds, limit=command_seconds)
        started = time.monotonic()
        exhausted = True
        try:
            plans = self._plans(context, recording)
            exhausted = all(plan.exhausted for plan in plans.values())
            self._carry_out(context, plans, shop, recording)
            stop, summary = self._satisfy(assignment.targets, shop)
            if stop is StopReason.DONE:
                shop.run(_RESTORE)
            else:
                check_reach(context.tree, shop.unmet.values(), recording)
        except BudgetExhausted as error:
            stop, summary = StopReason.BUDGET, error.message
        recorder.call("submit", {"result": stop.value}, summary)
        return SetupReport(
            stop=stop,
            summary=summary,
            recipe=recording.recipe,
            mocks=tuple(shop.mocks),
            lessons=tuple(shop.lessons),
            exhausted=exhausted,
            self_checked=stop is StopReason.DONE,
            trajectory=recorder.trajectory(),
            usage=Usage(seconds=time.monotonic() - started, steps=recorder.steps),
        )

    def _plans(self, context: Context, sandbox: RecordingSandbox) -> dict[str, Plan]:
        """By ecosystem. Raises RegistryUnreachable where that of the main one cannot be made without its registry."""
        detected = [ecosystem for ecosystem in self._ecosystems if ecosystem.detect(context.tree)]
        plans: dict[str, Plan] = {}
        for index, ecosystem in enumerate(relevant(context, detected)):
            try:
                plans[ecosystem.name] = ecosystem.plan(context, sandbox)
            except RegistryUnreachable:
                if index == 0:
                    raise
        return plans

    def _carry_out(
        self, context: Context, plans: Mapping[str, Plan], shop: "Workshop", sandbox: RecordingSandbox
    ) -> None:
        """Every plan in turn; a step that must not fail and does ends its own plan only.

        Raises:
            RegistryUnreachable: such a step of the first plan needs the ecosystem's registry, which does not answer.
        """
        packages = system_packages_step(context)
        if packages:
            shop.run(packages)
        for index, (ecosystem, plan) in enumerate(plans.items()):
            for name, value in plan.env.items():
                sandbox.set_env(name, _joined(value, sandbox.recipe.env.get(name, "")) if name == "PATH" else value)
            for mock in plan.mocks:
                shop.declare(mock)
            for step in plan.steps:
                if self._step(step, shop, ecosystem) or step.optional:
                    continue
                shop.learn(f"step failed: {step.command[:160]}")
                if index == 0 and shop.silent == ecosystem:
                    raise unreachable(ecosystem, [f"what `{step.command[:120]}` fetches"])
                break
            for service in plan.services:
                try:
                    sandbox.start_service(service)
                except ServiceNotReady as error:
                    shop.learn(f"service {service.name} did not start: {error.message[:160]}")

    def _step(self, step: Step, shop: "Workshop", ecosystem: str) -> bool:
        result = shop.run(step)
        if result.exit_code == 0:
            return True
        if not shop.is_silent(ecosystem, result):
            failure = Failure(step=step, result=result)
            result = shop.repair(failure, rerun=shop.run, accept=_succeeded, limit=MAX_REPAIRS)
        if result.exit_code == 0:
            return True
        for command in step.fallback:
            again = step.model_copy(update={"command": command, "fallback": ()})
            if shop.run(again).exit_code == 0:
                return True
        return False

    def _satisfy(self, targets: Sequence[Goal], shop: "Workshop") -> tuple[StopReason, str]:
        """Run the targets until all of them match, or nothing more is known for one that does not."""
        unmatched: dict[str, str] = {}
        matched_after: dict[str, int] = {}  # command → repairs that had been applied when it last matched
        for _ in range(MAX_ROUNDS):
            before = len(shop.applied)
            for goal in targets:
                if matched_after.get(goal.command) == len(shop.applied):
                    continue
                reason = self._target(goal, shop)
                if reason:
                    unmatched[goal.command] = reason
                else:
                    unmatched.pop(goal.command, None)
                    matched_after[goal.command] = len(shop.applied)
            if len(shop.applied) == before:
                break
        if not unmatched:
            return StopReason.DONE, f"All targets ({len(targets)}) match."
        command, reason = next(iter(unmatched.items()))
        summary = f"{len(unmatched)} of {len(targets)} targets do not match; `{command}`: {reason}"
        return (StopReason.LOOP if shop.looped else StopReason.GAVE_UP), summary[:1000]

    def _target(self, goal: Goal, shop: "Workshop") -> str:
        """Why the goal does not match, after all repairs that are known; empty where it does."""

        def accept(result: CommandResult) -> bool:
            return self._judge.judge(goal, result).verdict is Verdict.MATCHES

        step = Step(command=goal.command, why="A target.", timeout=goal.timeout)
        result = shop.run(step)
        if not accept(result):
            failure = Failure(step=step, result=result, is_target=True)
            result = shop.repair(failure, rerun=shop.run, accept=accept, limit=MAX_REPAIRS)
        judgement = self._judge.judge(goal, result)
        if judgement.verdict is Verdict.MATCHES:
            shop.unmet.pop(goal.command, None)
            return ""
        shop.unmet[goal.command] = result
        return judgement.reason


def check_reach(tree: Tree, results: Iterable[CommandResult], sandbox: Sandbox) -> None:
    """Whether what is missing in the end is what a registry has that does not answer.

    Raises:
        RegistryUnreachable: it is; what Debian has was put in by the repairs before.
    """
    missing: dict[str, dict[str, None]] = {}
    for result in results:
        for module in missing_modules(result.output, tree):
            missing.setdefault(module.language, {})[module.name] = None
    for language, names in missing.items():
        if not answers(language, sandbox):
            raise unreachable(language, list(names))


def relevant(context: Context, detected: Sequence[Ecosystem]) -> list[Ecosystem]:
    """The ecosystems that the targets name a tool of, the others after them if they are at home here too.

    Where no target names a tool of any, all of them are taken."""
    used: set[str] = set()
    for goal in context.targets:
        for part in split_chain(goal.command):
            used.update(word.rsplit("/", 1)[-1] for word in words(unwrap(part))[:4])
    shares = source_shares(context.tree, detected)
    needed = [ecosystem for ecosystem in detected if ecosystem.tools & used]
    if not needed:
        return sorted(detected, key=lambda item: -shares[item.name])
    others = [ecosystem for ecosystem in detected if ecosystem not in needed and shares[ecosystem.name] >= MIN_SHARE]
    return [*sorted(needed, key=lambda item: -shares[item.name]), *others]


def _joined(path: str, earlier: str) -> str:
    """What `path` has more goes in front of an earlier one: each plan was made before the others set theirs."""
    known = earlier.split(":") if earlier else []
    return ":".join([*(part for part in path.split(":") if part not in known), *known])


def _succeeded(result: CommandResult) -> bool:
    return result.exit_code == 0


def _task(assignment: Assignment) -> str:
    targets = "\n".join(f"- `{goal.command}`: {goal.description}" for goal in assignment.targets)
    lessons = "\n".join(f"- {lesson}" for lesson in assignment.lessons)
    learnt = f"\nEarlier attempts learnt:\n{lessons}" if lessons else ""
    return f"Set {assignment.repository.url} up in /workspace so that these commands succeed:\n{targets}{learnt}"
