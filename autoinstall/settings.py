"""All settings, read from `AUTOINSTALL_*` variables and an optional .env file.

Nested ones are joined by two underscores: `AUTOINSTALL_LIMITS__MEMORY_MB=8192`. Mappings are JSON.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from autoinstall.datasets.location import Location

Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


HostPath = Annotated[Path, AfterValidator(_absolute)]


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CloneSettings(_Group):
    """Bounds of a clone: `timeout` in seconds for each git process, sizes in mebibytes."""

    timeout: Seconds = 900
    stall_seconds: Seconds = 60
    max_size_mb: Count = 3000
    max_files: Count = 200_000
    retries: Annotated[int, Field(ge=0)] = 2
    submodules: bool = True


class LimitSettings(_Group):
    """Defaults of `Limits`, in its units.

    Attributes:
        idle_seconds: a command that for so long writes nothing, takes no processor and receives nothing hangs, and is
            ended as if by its limit; 0 leaves it to its limit.
    """

    command_seconds: Seconds = 900
    idle_seconds: Annotated[float, Field(ge=0)] = 300
    attempt_seconds: Seconds = 3600
    memory_mb: Annotated[int, Field(ge=16)] = 6144
    cpus: Annotated[float, Field(gt=0)] = 2
    pids: Annotated[int, Field(ge=16)] = 4096
    output_head_bytes: Count = 64 * 1024
    output_tail_bytes: Count = 192 * 1024


class PassThrough(_Group):
    """What of the host's network set-up a sandbox is given. Nothing else of the host reaches it.

    Attributes:
        ca_bundle: PEM file, mounted read-only, with the variables that the common tools read it from.
        http_proxy, https_proxy, no_proxy: set in both spellings.
        pip_index_url, npm_registry: indexes to use instead of the tools' own.
        go_proxy: likewise.
        apt_mirror: base URL of a Debian mirror, for the base image and for the sandbox.
        env: further variables, for instance of a tool that the product does not know.
    """

    ca_bundle: HostPath | None = None
    http_proxy: str = ""
    https_proxy: str = ""
    no_proxy: str = ""
    pip_index_url: str = ""
    npm_registry: str = ""
    go_proxy: str = ""
    apt_mirror: str = ""
    env: dict[str, str] = Field(default_factory=dict)

    @field_validator("ca_bundle")
    @classmethod
    def _is_there(cls, value: Path | None) -> Path | None:
        # An engine makes a directory of what it is to mount and does not find.
        if value is not None and not value.is_file():
            raise ValueError(f"there is no file {value}")
        return value


class EngineSettings(_Group):
    """The container engine.

    Attributes:
        host: socket URL; empty means DOCKER_HOST, then the usual Docker and Podman sockets.
        timeout: seconds of one API call that is not itself a command.
        runtime: empty means the engine's default (runc); `runsc` is gVisor.
        registry: mirror that bases are pulled from before their own registry is asked; empty means none.
        min_free_mb: below it no new sandbox is started.
        block_private: keep sandboxes away from the host's own services, private networks and cloud metadata. What
            `pass_through` names stays reachable.
        allow_hosts: what stays reachable besides: `host`, `host:port`, an address or a range of them. Needed where a
            name that tools use by default, a package index say, is answered by an address in a private network.
    """

    host: str = ""
    timeout: Seconds = 120
    runtime: str = ""
    registry: str = ""
    min_free_mb: int = 2048
    block_private: bool = True
    allow_hosts: tuple[str, ...] = ()


class RegistrySettings(_Group):
    """Where images of accepted environments are pushed, so that every host can open them.

    Which registries the engine trusts, or reaches without TLS, is the engine's own configuration.

    Attributes:
        repository: registry and path, as in `registry.example.org/team/environments`; empty keeps images on the engine.
        username, password: for that registry alone; empty means what `docker login` has left in ~/.docker/config.json.
        seconds: how long a push may say nothing.
    """

    repository: Annotated[str, Field(pattern=r"^$|^[a-z0-9][\w.-]*(:\d+)?(/[a-z0-9][a-z0-9._-]*)+$")] = ""
    username: str = ""
    password: SecretStr = SecretStr("")
    seconds: Seconds = 600


class OrchestrationSettings(_Group):
    """How a night is spread over a work pool.

    Attributes:
        run_limit: Prefect's global concurrency limit that a repository holds a slot of while it is under way, on
            whatever host; where Prefect has no limit of that name, none holds.
        model_limit: likewise, one slot for each call to a model.
        runs, model_calls: what the two are made with where they are absent; afterwards Prefect's own number counts.
        lease_seconds: after a kill, how long until a slot is free again.
        poll_seconds: between two looks at the runs of a night that other processes do.
    """

    run_limit: str = "autoinstall-runs"
    model_limit: str = "autoinstall-model-calls"
    runs: Count = 16
    model_calls: Count = 32
    lease_seconds: Annotated[float, Field(ge=60)] = 60
    poll_seconds: Seconds = 5


Family = Literal["rules", "llm"]


class AgentSettings(_Group):
    """Which agent plays which role, and its bounds.

    Attributes:
        installer: by attempt (1-based); the last entry serves the rest.
        goal_setter_model, judge_model: a key of `models`, or a model's name at the endpoint of `model`; empty means
            `model` itself.
        installer_models: likewise, by attempt.
        steps: assistant messages of one agent run.
        tokens: of one agent run, input and output of all its calls together; what was cached counts.
        cost_usd: of one agent run, by the price tables; None for no bound.
        goal_setting_seconds: wall time of one proposal; an installer's is `limits.attempt_seconds`.
        observation_characters: of one tool result that the model is shown; the whole is kept in a file.
    """

    goal_setter: Family = "rules"
    installer: Annotated[tuple[Family, ...], Field(min_length=1)] = ("rules",)
    judge: Family = "rules"
    goal_setter_model: str = ""
    installer_models: tuple[str, ...] = ()
    judge_model: str = ""
    steps: Count = 60
    tokens: Count = 4_000_000
    cost_usd: Annotated[float, Field(gt=0)] | None = None
    goal_setting_seconds: Seconds = 1200
    observation_characters: Annotated[int, Field(ge=500)] = 16_000


class Price(_Group):
    """US dollars for a million tokens; a cached one costs `input` where `cached_input` is None."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]
    cached_input: Annotated[float, Field(ge=0)] | None = None


class ModelSettings(_Group):
    """One OpenAI-compatible endpoint and the model that is asked there.

    Attributes:
        base_url: with its version path (`https://host/v1`); empty means the openai package's own default.
        api_key: empty for endpoints that want none.
        name: the model, as the endpoint calls it.
        context_tokens: what a conversation and its answer may have together.
        max_output_tokens: of one answer.
        temperature: None leaves it to the endpoint.
        connect_seconds, read_seconds: of one request; `read` bounds the wait for each part of the answer.
        total_seconds: of one answer with all its retries.
        retries: after the first try.
        headers: further ones, for gateways.
        extra: further fields of the request body, for instance {"reasoning_effort": "low"}.
        call_ids: form of made-up ids of tool calls; `alnum9` is what Mistral's endpoints insist on.
        price: for `name`; None means unknown, and costs are recorded as 0.
    """

    base_url: str = ""
    api_key: SecretStr = SecretStr("")
    name: str = ""
    context_tokens: Annotated[int, Field(ge=2048)] = 131_072
    max_output_tokens: Annotated[int, Field(ge=64)] = 8192
    temperature: Annotated[float, Field(ge=0)] | None = None
    connect_seconds: Seconds = 10
    read_seconds: Seconds = 300
    total_seconds: Seconds = 900
    retries: Annotated[int, Field(ge=0)] = 5
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    extra: dict[str, Any] = Field(default_factory=dict)
    call_ids: Literal["openai", "alnum9"] = "openai"
    price: Price | None = None


class SearchSettings(_Group):
    """Web search for model agents.

    Attributes:
        provider: `searxng` asks `url` by its JSON API; `ddgs` is a metasearch library; `none` offers no search.
        results: of one query.
        page_characters: of one page that is fetched.
        seconds: of one query or page.
        allow_hosts: names of hosts outside the public internet whose pages may be fetched all the same, for instance an
            intranet's documentation.
    """

    provider: Literal["none", "searxng", "ddgs"] = "none"
    url: str = ""
    results: Count = 8
    page_characters: Annotated[int, Field(ge=500)] = 20_000
    seconds: Seconds = 20
    allow_hosts: tuple[str, ...] = ()


class StorageSettings(_Group):
    """How the datasets' bucket is reached, where `data` is in one.

    Attributes:
        endpoint: URL of an S3-compatible storage, http or https; empty means AWS_ENDPOINT_URL, then Amazon's own.
        region: empty means AWS_REGION, then what the endpoint says.
        access_key, secret_key, session_token: empty means the AWS_* variables, then the usual AWS configuration files.
        virtual_hosts: address a bucket as a host of its own (`bucket.endpoint`) and not as a path.
        connect_seconds, request_seconds: of one request.
        retries: after the first try.
        compact_above: files with rows; where a night ends with more, they are put together. It goes for directories
            too.
    """

    endpoint: str = ""
    region: str = ""
    access_key: str = ""
    secret_key: SecretStr = SecretStr("")
    session_token: SecretStr = SecretStr("")
    virtual_hosts: bool = False
    connect_seconds: Seconds = 10
    request_seconds: Seconds = 60
    retries: Annotated[int, Field(ge=0)] = 3
    compact_above: Count = 1000


class NightSettings(_Group):
    """How a night bears what goes wrong around it.

    Attributes:
        recoveries: how often a night whose process died is started again.
        recovery_hours: a night that began longer ago is not.
        repeats: how often a repository is done again, in the same night, after the engine, the disk, the storage or a
            model's endpoint failed.
        wait_seconds: how long a night waits for one of those before it ends without having done the rest.
        poll_seconds: between two looks whether it may go on.
    """

    recoveries: Annotated[int, Field(ge=0)] = 3
    recovery_hours: Annotated[float, Field(gt=0)] = 24
    repeats: Annotated[int, Field(ge=0)] = 1
    wait_seconds: Seconds = 1800
    poll_seconds: Seconds = 10


class RetentionSettings(_Group):
    """What `autoinstall prune` leaves.

    Attributes:
        environments: images of accepted environments that are kept of each repository, the newest; None keeps all.
        environment_days: how long they are kept; None for ever. Both count only for `prune --retain`, since rows of the
            datasets name these images.
        workspace_days: how long the image of an initial state is kept, unless something uses it, or an image that was
            pulled from a registry; both are had again where they are wanted.
        base_days: likewise for base images that the catalogue would build differently today.
    """

    environments: Count | None = None
    environment_days: Annotated[float, Field(gt=0)] | None = None
    workspace_days: Annotated[float, Field(ge=0)] = 14
    base_days: Annotated[float, Field(ge=0)] = 30


class VerificationSettings(_Group):
    """`attempts` each from the initial state; `runs` fresh containers that must agree; `control`: see `controls`;
    `held_out`, `offline` and `rebuild`: whether these are measured of an accepted environment.
    """

    attempts: Annotated[int, Field(ge=1)] = 5
    targets: Annotated[int, Field(ge=1)] = 3
    goals: Annotated[int, Field(ge=1)] = 10
    reasks: Annotated[int, Field(ge=0)] = 2
    runs: Annotated[int, Field(ge=1)] = 2
    control: bool = True
    held_out: bool = True
    offline: bool = True
    rebuild: bool = True
    seed: int = 0


class Settings(BaseSettings):
    """The whole configuration.

    Attributes:
        data: directory, or `s3://bucket/prefix`, that the five datasets are below.
        cache: clones in progress, engine scratch files; may be removed at any time.
        git_mirrors: URL prefix → replacement, as git's insteadOf: the longest prefix wins.
        git_credentials: URL prefix → `user:token` (or a token alone), given to the git process only.
        base_image: name of the catalogue or image reference; with `default`, repositories that ask for other versions
            of Python or Java than it has are set up on another of the catalogue.
        bases: language (as in the datasets: python, java, …) → base of its repositories, by name or reference.
        allow_modified: globs of tracked files that an attempt may change (lock files); see `integrity`.
        allow_package_stubs: whether an attempt may stand in for a package that is not to be had, and declare it; the
            environment's row lists it among its mocks. Otherwise it is tampering.
        model: the endpoint that model agents use unless their role names another.
        models: further endpoints by a name of your own, for roles to refer to.
        interpreters: directory of host interpreters (a pyenv root) that a base may take in; None for none.
    """

    model_config = SettingsConfigDict(
        env_prefix="AUTOINSTALL_", env_nested_delimiter="__", env_file=".env", extra="ignore", frozen=True
    )

    data: Location = Field(default_factory=lambda: Location("data/datasets"))
    cache: HostPath = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "autoinstall"
    git_mirrors: dict[str, str] = Field(default_factory=dict)
    git_credentials: dict[str, SecretStr] = Field(default_factory=dict)
    base_image: str = "default"
    bases: dict[str, str] = Field(default_factory=dict)
    allow_modified: tuple[str, ...] = ()
    allow_package_stubs: bool = False
    interpreters: HostPath | None = None

    clone: CloneSettings = CloneSettings()
    limits: LimitSettings = LimitSettings()
    pass_through: PassThrough = PassThrough()
    engine: EngineSettings = EngineSettings()
    registry: RegistrySettings = RegistrySettings()
    orchestration: OrchestrationSettings = OrchestrationSettings()
    agents: AgentSettings = AgentSettings()
    model: ModelSettings = ModelSettings()
    models: dict[str, ModelSettings] = Field(default_factory=dict)
    search: SearchSettings = SearchSettings()
    verification: VerificationSettings = VerificationSettings()
    storage: StorageSettings = StorageSettings()
    night: NightSettings = NightSettings()
    retention: RetentionSettings = RetentionSettings()


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """The process's settings. Tests build their own `Settings` and pass it on."""
    return Settings()
