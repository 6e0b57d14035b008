"""Stage 2: ten goals, and what they give before anything is set up."""

from typing import Any

from prefect import task

from autoinstall.agents.contract import ConsultingJudge
from autoinstall.attempts import attempt_spec
from autoinstall.baseline import baseline, baseline_spec
from autoinstall.errors import BadProposal
from autoinstall.journals import AgentRun
from autoinstall.ledger import Ledger
from autoinstall.proposals import check_proposal
from autoinstall.sandbox.contract import SandboxSpec
from autoinstall.sandbox.deferred import deferred
from autoinstall.tree import Tree
from autoinstall.values import GoalResult, Outcome, Proposal, Recipe, Role
from tasks.policy import STAGE, count_retry
from tasks.runtime import current_runtime


@task(name="goal-setting", task_run_name="goal-setting, ask {ask}", **STAGE)
def propose_goals(ledger: Ledger, ask: int, rejected: tuple[GoalResult, ...] = (), complaint: str = "") -> Proposal:
    """Have the goal-setter study the pristine checkout in a throw-away sandbox; ask again where its answer is unusable.

    Raises:
        BadProposal: nothing usable after the settings' number of re-asks.
    """
    count_retry(ledger)
    runtime, spec = current_runtime(), ledger.spec
    wanted, reasks = ledger.settings.verification.goals, ledger.settings.verification.reasks
    given: dict[str, Any] = {"recipe": Recipe(env=spec.env), "limits": spec.limits, "owner": ledger.run_id}
    sandbox_spec = SandboxSpec(image=ledger.known_initial.digest, purpose="goal-setting", **given)
    runtime.provider.prepare(baseline_spec(ledger.known_initial.digest, **given))
    tree = Tree(ledger.known_checkout.path)
    for _ in range(1 + reasks):
        with ledger.agent_run(Role.GOAL_SETTER) as journal, deferred(runtime.provider, sandbox_spec) as sandbox:
            proposal = runtime.goal_setter.propose(
                ledger.repository, tree, sandbox, rejected=rejected, complaint=complaint, journal=journal
            )
        complaint = check_proposal(proposal.goals, wanted)
        if not complaint:
            return proposal
        refused = AgentRun(trajectory=proposal.trajectory, usage=proposal.usage, outcome=Outcome.BAD_PROPOSAL)
        ledger.broken.append(refused)
    raise BadProposal(f"The goal-setter made no usable proposal in {1 + reasks} tries: {complaint}")


@task(name="baseline", task_run_name="baseline, ask {ask}", **STAGE)
def run_baseline(ledger: Ledger, ask: int) -> tuple[GoalResult, ...]:
    """Run the goals on the untouched sandbox: one that already matches proves nothing. A goal that an earlier proposal
    had too keeps its result.

    A model is not asked here: it could only make a goal that proves nothing look as if it proved something.
    """
    count_retry(ledger)
    runtime = current_runtime()
    judge = runtime.judge.rules if isinstance(runtime.judge, ConsultingJudge) else runtime.judge
    known = {result.goal: result for result in ledger.baseline}
    fresh = baseline(
        runtime.provider,
        ledger.known_initial.digest,
        tuple(goal for goal in ledger.goals if goal not in known),
        judge,
        recipe=Recipe(env=ledger.spec.env),
        limits=ledger.spec.limits,
        owner=ledger.run_id,
        settings=ledger.settings,
        then=attempt_spec(ledger.spec, ledger.known_initial, 1, ledger.run_id),
    )
    known |= {result.goal: result for result in fresh}
    return tuple(known[goal] for goal in ledger.goals)
