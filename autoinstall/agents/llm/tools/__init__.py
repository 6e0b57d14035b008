"""What a model agent can do, one file a kind of tool."""

from autoinstall.agents.llm.contract import AgentTool
from autoinstall.agents.llm.tools.bash import Bash
from autoinstall.agents.llm.tools.ending import GiveUp, Submit
from autoinstall.agents.llm.tools.environment import DeclareMock, SetEnv, StartService, StartSidecar
from autoinstall.agents.llm.tools.reading import ListFiles, ReadFile, SearchFiles
from autoinstall.agents.llm.tools.writing import EditFile, WriteFile

__all__ = ["GiveUp", "Submit", "exploring_tools", "installing_tools"]


def exploring_tools() -> tuple[AgentTool, ...]:
    """For who studies a checkout in a throw-away sandbox."""
    return Bash(), *_reading_tools()


def installing_tools() -> tuple[AgentTool, ...]:
    """For who brings a sandbox to where its targets run; `submit` and `give_up` are the role's own."""
    writing = (WriteFile(), EditFile(), SetEnv(), StartService(), StartSidecar(), DeclareMock())
    return Bash(lasting=True), *_reading_tools(), *writing


def _reading_tools() -> tuple[AgentTool, ...]:
    return ReadFile(), ListFiles(), SearchFiles()
