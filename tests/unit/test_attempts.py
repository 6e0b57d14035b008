"""What of a failing attempt is the agent's own, and what is not."""

from pathlib import Path

import pytest
from llm_stage import REPOSITORY, make_checkout

from autoinstall.agents.contract import Assignment
from autoinstall.agents.rules.judge import RulesJudge
from autoinstall.agents.scripted import ScriptedInstaller
from autoinstall.attempts import SetupAttempt, set_up
from autoinstall.errors import SandboxBroken, SandboxLost
from autoinstall.sandbox.contract import WorkspaceSource
from autoinstall.sandbox.scripted import ScriptedProvider
from autoinstall.values import Goal, Outcome, RepositorySpec, StopReason

TARGET = Goal(command="make test", description="at least 3 tests pass")


def attempt(root: Path, responses: dict[str, Exception], *commands: str) -> SetupAttempt:
    tree = make_checkout(root)
    provider = ScriptedProvider(responses)
    source = WorkspaceSource(path=str(tree.root), commit=REPOSITORY.commit)
    return set_up(
        provider,
        ScriptedInstaller(commands),
        RulesJudge(),
        spec=RepositorySpec(url=REPOSITORY.url),
        initial=provider.build_workspace_image(provider.ensure_base().digest, source, labels={}),
        assignment=Assignment(repository=REPOSITORY, targets=(TARGET,)),
        tree=tree,
        owner="test",
    )


@pytest.mark.parametrize("where", ["rm /bin/bash", "make test"])
def test_a_sandbox_that_was_broken_is_the_agents_failure(tmp_path: Path, where: str) -> None:
    made = attempt(tmp_path, {where: SandboxBroken("No shell.")}, "rm /bin/bash")
    assert (made.outcome, made.reason, made.snapshot) == (Outcome.GAVE_UP, "No shell.", None)
    assert made.report.stop is (StopReason.GAVE_UP if where == "rm /bin/bash" else StopReason.DONE)


def test_a_sandbox_that_was_lost_is_not(tmp_path: Path) -> None:
    with pytest.raises(SandboxLost):
        attempt(tmp_path, {"make test": SandboxLost("gone")})
