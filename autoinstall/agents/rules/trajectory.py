"""Records what a rules agent does in a sandbox as a trajectory in the OpenAI chat format."""

import json
from collections.abc import Mapping
from typing import Any

from autoinstall.logs import telling
from autoinstall.sandbox.contract import Sandbox
from autoinstall.sandbox.forwarding import ForwardingSandbox
from autoinstall.values import CommandResult, Mock, Role, Service, Sidecar, Trajectory

MAX_RESULT_CHARS = 8_000
"""Of one tool result: half from its start, half from its end."""


def _tool(name: str, description: str, *parameters: str) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {parameter: {"type": "string"} for parameter in parameters},
                "required": list(parameters),
            },
        },
    }


TOOLS: tuple[dict[str, Any], ...] = (
    _tool("bash", "Run a command in a fresh shell in /workspace.", "command"),
    _tool("write_file", "Write a text file.", "path", "content"),
    _tool("set_env", "Set an environment variable for good.", "name", "value"),
    _tool("start_service", "Start a long-running process and wait until it is ready.", "name", "command", "probe"),
    _tool("start_sidecar", "Start a container beside this one and wait until it is ready.", "alias", "image"),
    _tool("declare_mock", "Declare something that stands in for the real thing.", "kind", "path", "reason"),
    _tool("submit", "Hand in the result.", "result"),
)


def shorten(text: str, limit: int = MAX_RESULT_CHARS) -> str:
    """`text` with its middle replaced by a notice where it is longer than `limit`."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


class Recorder:
    """The messages of one agent run. Every tool call gets exactly one result."""

    def __init__(self, role: Role, task: str) -> None:
        self._role = role
        self._messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
        self.steps = 0

    def call(self, name: str, arguments: Mapping[str, str], result: str, why: str = "") -> None:
        """One assistant message with one tool call, and its result."""
        self.steps += 1
        identity = f"call_{self.steps}"
        function = {"name": name, "arguments": json.dumps(dict(arguments), ensure_ascii=False)}
        self._messages.append(
            {
                "role": "assistant",
                "content": why or None,
                "tool_calls": [{"id": identity, "type": "function", "function": function}],
            }
        )
        self._messages.append({"role": "tool", "tool_call_id": identity, "content": shorten(result)})

    def say(self, text: str) -> None:
        """An assistant message without a call."""
        self._messages.append({"role": "assistant", "content": text})

    def trajectory(self) -> Trajectory:
        return Trajectory(role=self._role, agent="rules", messages=tuple(self._messages), tools=TOOLS)


class RecordingSandbox(ForwardingSandbox):
    """A sandbox whose changes and commands are recorded; everything else is passed through.

    `because` is the reason that the next call is recorded with.
    """

    def __init__(self, sandbox: Sandbox, recorder: Recorder) -> None:
        super().__init__(sandbox)
        self._recorder = recorder
        self._why = ""

    def because(self, why: str) -> "RecordingSandbox":
        self._why = why
        return self

    def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        with telling():
            result = super().run(command, timeout=timeout, user=user, env=env)
        ending = f" ({result.ending})" if result.ending else ""
        self._record("bash", {"command": command}, f"{result.output}\n[exit code {result.exit_code}{ending}]")
        return result

    def write_file(self, path: str, content: bytes, *, executable: bool = False, user: str | None = None) -> None:
        super().write_file(path, content, executable=executable, user=user)
        self._record("write_file", {"path": path, "content": content.decode("utf-8", "replace")}, "written")

    def set_env(self, name: str, value: str) -> None:
        super().set_env(name, value)
        self._record("set_env", {"name": name, "value": value}, "set")

    def start_service(self, service: Service) -> None:
        arguments = {"name": service.name, "command": service.command, "probe": service.probe.target}
        try:
            super().start_service(service)
        except Exception as error:  # recorded whatever it is, and passed on
            self._record("start_service", arguments, f"failed: {error}")
            raise
        self._record("start_service", arguments, "ready")

    def start_sidecar(self, sidecar: Sidecar) -> None:
        super().start_sidecar(sidecar)
        self._record("start_sidecar", {"alias": sidecar.alias, "image": sidecar.image}, "ready")

    def declare_mock(self, mock: Mock) -> None:
        self._record("declare_mock", {"kind": mock.kind.value, "path": mock.path, "reason": mock.reason}, "declared")

    def _record(self, name: str, arguments: Mapping[str, str], result: str) -> None:
        self._recorder.call(name, arguments, result, self._why)
        self._why = ""
