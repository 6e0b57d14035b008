"""A night with scripted agents and sandboxes in a process of its own, which stops where it is told to.

As a program it runs the flow; as a module it is what a worker loads for a deployment. `PLACE` is its directory. While a
file `PLACE/stop-at` exists, the first command in a sandbox whose purpose begins with that file's word writes
`PLACE/stopped` and waits until its sandbox is closed or the file is gone. The word `publish` stops before an image is
named, and `clone` before git gets a repository, where `slow_git` has been called.
"""

import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autoinstall.agents.scripted import ScriptedGoalSetter, ScriptedInstaller, ScriptedJudge
from autoinstall.errors import SandboxLost
from autoinstall.runtime import Runtime
from autoinstall.sandbox.contract import Snapshot
from autoinstall.sandbox.scripted import Answer, Call, ScriptedProvider
from autoinstall.settings import CloneSettings, Settings
from flows.build_environment import build_environment
from flows.nightly import nightly
from flows.recovery import recover
from tasks.runtime import use_runtime
from tests.flows.conftest import INSTALL, installs, ten_goals, works_once_installed

__all__ = ["build_environment", "nightly", "recover"]

PLACE = "SCRIPTED_NIGHT"


def settings_of(place: Path) -> Settings:
    """Settings with the night's own directories."""
    return Settings(data=place / "data", cache=place / "cache", clone=CloneSettings(retries=0, timeout=60))


def slow_git(place: Path) -> Path:
    """A directory for PATH with a git that stops."""
    program = place / "bin/git"
    program.parent.mkdir()
    program.write_text(
        f"""#!/bin/sh
if [ "$(cat {place}/stop-at 2>/dev/null)" = clone ]; then
    case " $* " in *" fetch "*|*" clone "*)
        touch {place}/stopped
        while [ -e {place}/stop-at ]; do sleep 0.1; done
    esac
fi
exec {shutil.which("git")} "$@"
"""
    )
    program.chmod(0o755)
    return program.parent


class Provider(ScriptedProvider):
    """Stops before it names an image, where it is told to."""

    place: Path

    def tag(self, snapshot: Snapshot, reference: str) -> Snapshot:
        if word_of(self.place) == "publish":
            (self.place / "stopped").touch()
            while word_of(self.place):
                time.sleep(0.05)
        return super().tag(snapshot, reference)


def word_of(place: Path) -> str | None:
    """Where to stop."""
    try:
        return (place / "stop-at").read_text()
    except FileNotFoundError:
        return None


def runtime_of(place: Path) -> Runtime:
    """A runtime whose parts are scripted."""

    def stopping(answer: Callable[[Call], Answer]) -> Callable[[Call], Answer]:
        def respond(call: Call) -> Answer:
            with (place / "commands").open("a") as log:
                log.write(f"{call.sandbox.spec.purpose} {call.command}\n")
            word = word_of(place)
            if word is not None and call.sandbox.spec.purpose.startswith(word):
                (place / "stopped").touch()
                while not call.sandbox.closed and word_of(place):
                    time.sleep(0.05)
                if call.sandbox.closed:
                    (place / "closed").touch()
                    raise SandboxLost("The sandbox is gone.")
            return answer(call)

        return respond

    installer = ScriptedInstaller([INSTALL])
    provider = Provider({INSTALL: stopping(installs), re.compile(r"^check part"): stopping(works_once_installed)})
    provider.place = place
    return Runtime(
        settings=settings_of(place),
        provider=provider,
        goal_setter=ScriptedGoalSetter(ten_goals()),
        installer=lambda _attempt: installer,
        judge=ScriptedJudge(),
    )


def main(place: Path, options: dict[str, Any]) -> None:
    """Run the night over `PLACE/list.csv`."""
    with use_runtime(runtime_of(place)):
        state = nightly(str(place / "list.csv"), data=place / "data", return_state=True, **options)
    (place / "ended").write_text(state.type.value)


if PLACE in os.environ and __name__ != "__main__":
    # A worker's process knows nothing but the module that it loads.
    _entered = use_runtime(runtime_of(Path(os.environ[PLACE])))
    _entered.__enter__()

if __name__ == "__main__":
    main(Path(sys.argv[1]), {"concurrency": 2})
