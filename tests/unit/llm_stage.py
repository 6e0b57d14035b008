"""What the tests of model agents share: a checkout, a scripted sandbox of it, and settings with a model."""

from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from autoinstall.agents.contract import Repository
from autoinstall.sandbox.contract import SandboxSpec, WorkspaceSource
from autoinstall.sandbox.scripted import ScriptedProvider
from autoinstall.settings import AgentSettings, ModelSettings, Settings
from autoinstall.tree import Tree

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = Repository(url="https://example.org/o/name", commit=COMMIT, commit_date=datetime(2024, 5, 6, tzinfo=UTC))


def make_checkout(root: Path, **files: str) -> Tree:
    """A checkout of a few files, and of `files` (in their names `__` stands for a slash, `_dot_` for a dot)."""
    contents = {
        "README.md": "# Name\n\nRun `make test`.\n",
        "Makefile": "test:\n\tpytest -q\nlint:\n\truff check\n",
        "src/name.py": "print('hello')\n",
        "tests/test_name.py": "def test_it():\n    assert True\n",
    }
    contents |= {name.replace("__", "/").replace("_dot_", "."): text for name, text in files.items()}
    for name, text in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Tree(root)


@contextmanager
def sandbox_of(tree: Tree, responses=None, **options):
    """A scripted sandbox that holds the checkout; `provider` is an attribute of what is given."""
    provider = ScriptedProvider(responses, **options)
    base = provider.ensure_base()
    image = provider.build_workspace_image(base.digest, WorkspaceSource(path=str(tree.root), commit=COMMIT), labels={})
    with provider.open(SandboxSpec(image=image.digest)) as sandbox:
        yield sandbox


def settings_with(tmp_path: Path, *, model: str = "scripted", **agents) -> Settings:
    """Settings of a test whose agents are models unless `agents` says otherwise."""
    roles = {"goal_setter": "llm", "installer": ("llm",), "judge": "llm", **agents}
    return Settings(
        data=tmp_path / "data",
        cache=tmp_path / "cache",
        model=ModelSettings(name=model, api_key="sk-test-key-0123456789", base_url="http://127.0.0.1:9/v1"),
        agents=AgentSettings(**roles),
        _env_file=None,
    )


class MemoryJournal:
    """A journal that a test can look into."""

    def __init__(self):
        self.head = None
        self.messages = []
        self.spent = []

    def begin(self, trajectory):
        self.head = trajectory

    def write(self, message):
        self.messages.append(message)

    def spend(self, usage):
        self.spent.append(usage)
