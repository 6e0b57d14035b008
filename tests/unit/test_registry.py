"""Pushing images: what a registry's answers mean, and whose credentials go where."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from autoinstall.datasets.writer import secrets_of
from autoinstall.errors import EngineFailed, RegistryRateLimited
from autoinstall.sandbox import registry
from autoinstall.sandbox.contract import Snapshot
from autoinstall.settings import RegistrySettings, Settings

REPOSITORY = "registry.example.org:5000/team/environments"
DIGEST = "sha256:" + "a" * 64


class Api:
    """Records what is asked of the engine, and answers a push with `steps`."""

    def __init__(self, steps: list[dict[str, Any]], known: list[str] | None = None) -> None:
        self.steps = steps
        self.known = known or []
        self.calls: list[tuple[Any, ...]] = []

    def tag(self, image: str, repository: str, tag: str, *, force: bool) -> None:
        self.calls.append(("tag", image, repository, tag))

    def push(self, repository: str, tag: str, **options: Any) -> list[dict[str, Any]]:
        self.calls.append(("push", repository, tag, options["auth_config"]))
        return self.steps

    def remove_image(self, reference: str, *, noprune: bool) -> None:
        self.calls.append(("remove", reference))

    def inspect_image(self, image: str) -> dict[str, Any]:
        return {"RepoDigests": self.known}


def settings(tmp_path: Path, **given: Any) -> Settings:
    return Settings(data=tmp_path, cache=tmp_path, registry=RegistrySettings(repository=REPOSITORY, **given))


def push(monkeypatch: pytest.MonkeyPatch, settings: Settings, api: Api) -> Snapshot:
    monkeypatch.setattr(registry, "connect", lambda *_, **__: SimpleNamespace(api=api, close=lambda: None))
    return registry.push(
        settings, Snapshot(reference="autoinstall/environment:x", digest="sha256:1", size_bytes=7), "x"
    )


def test_a_pushed_image_is_named_by_its_digest_and_leaves_no_second_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    api = Api([{"status": "Pushed"}, {"aux": {"Tag": "x", "Digest": DIGEST, "Size": 3}}])
    pushed = push(monkeypatch, settings(tmp_path), api)

    assert pushed.reference == f"{REPOSITORY}@{DIGEST}"
    assert pushed.digest == "sha256:1"
    assert api.calls == [
        ("tag", "sha256:1", REPOSITORY, "x"),
        ("push", REPOSITORY, "x", None),
        ("remove", f"{REPOSITORY}:x"),
    ]


def test_engines_that_do_not_report_a_digest_know_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = "registry.example.org:5000/others@sha256:" + "b" * 64
    api = Api([{"status": "Pushed"}], known=[other, f"{REPOSITORY}@{DIGEST}"])
    assert push(monkeypatch, settings(tmp_path), api).reference == f"{REPOSITORY}@{DIGEST}"
    with pytest.raises(EngineFailed, match="does not say under which digest"):
        push(monkeypatch, settings(tmp_path), Api([], known=[other]))


@pytest.mark.parametrize(
    ("said", "kind", "hint"),
    [
        ("unauthorized: authentication required", EngineFailed, "docker login"),
        ("denied: requested access to the resource is denied", EngineFailed, "AUTOINSTALL_REGISTRY__USERNAME"),
        ("http: server gave HTTP response to HTTPS client", EngineFailed, "insecure-registries"),
        ("toomanyrequests: slow down", RegistryRateLimited, ""),
        ("blob upload unknown", EngineFailed, "room"),
    ],
)
def test_what_a_registry_refuses_is_told_apart(
    said: str, kind: type, hint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    api = Api([{"error": said}])
    with pytest.raises(kind) as caught:
        push(monkeypatch, settings(tmp_path), api)
    assert said.partition(":")[0] in str(caught.value)
    assert hint in caught.value.hint
    assert api.calls[-1] == ("remove", f"{REPOSITORY}:x")


def test_credentials_go_to_their_registry_alone_and_into_no_row(tmp_path: Path) -> None:
    given = settings(tmp_path, username="me", password=SecretStr("hush-hush"))
    assert registry.credentials(given, f"{REPOSITORY}@{DIGEST}") == {"username": "me", "password": "hush-hush"}
    assert registry.credentials(given, "registry.example.org:5001/team/environments") is None
    assert registry.credentials(given, "debian:bookworm") is None
    assert registry.credentials(settings(tmp_path), REPOSITORY) is None
    assert "hush-hush" in secrets_of(given)
    assert "hush-hush" not in repr(given)


@pytest.mark.parametrize(
    "wrong", ["registry.example.org", "https://registry.example.org/x", "Registry.org/X", "a/b:tag"]
)
def test_a_repository_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationError):
        RegistrySettings(repository=wrong)
