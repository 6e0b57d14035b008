"""What the doctor finds, and what it says to do about it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError

from autoinstall import doctor
from autoinstall.doctor import Check, Status
from autoinstall.errors import EngineUnavailable, SandboxNetwork
from autoinstall.sandbox.contract import Snapshot
from autoinstall.settings import LimitSettings, PassThrough, RegistrySettings, Settings
from autoinstall.values import CommandResult

BASE = Snapshot(reference="autoinstall/base-default:1", digest="sha256:1", size_bytes=2**30)


ALL_ANSWER = "".join(f"{index} 0 1\n" for index in range(9))
"""Of the registries that are asked at once: place in the table, exit code, seconds."""


def settings(tmp_path: Path, **given: Any) -> Settings:
    # Whatever this machine passes on to its sandboxes is not what is tested here.
    given.setdefault("pass_through", PassThrough())
    return Settings(_env_file=None, data=tmp_path / "data", cache=tmp_path / "cache", **given)  # type: ignore[call-arg]


def by_name(checks: Iterator[Check] | tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks}


class Provider:
    """Opens sandboxes in which every command ends as told."""

    def __init__(
        self, exit_code: int = 0, output: str = "", error: Exception | None = None, survey: str = ALL_ANSWER
    ) -> None:
        self.exit_code, self.output, self.error, self.survey = exit_code, output, error, survey

    @contextmanager
    def open(self, spec: Any) -> Iterator[Any]:
        if self.error:
            raise self.error
        yield SimpleNamespace(run=self.run)

    def run(self, command: str, timeout: float) -> CommandResult:
        output = self.survey if "\nwait" in command else self.output
        return CommandResult(command=command, exit_code=self.exit_code, output=output)


def test_no_engine_is_a_finding_and_the_rest_is_still_looked_at(tmp_path: Path) -> None:
    def absent(_: Settings) -> Any:
        raise EngineUnavailable("No container engine answers.", hint="Run `make engine`.")

    checks = by_name(doctor.examine(settings(tmp_path), connect=absent))
    assert checks["engine"].status is Status.FAIL
    assert "make engine" in checks["engine"].hint
    assert checks["git"].status is Status.OK
    assert checks["data directory"].status is Status.OK


def test_engine_without_a_base_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = {"Driver": "overlay2", "MemTotal": 2**40, "CgroupVersion": "2", "CgroupDriver": "systemd"}
    engine = SimpleNamespace(
        version=lambda: {"Version": "27.1", "Os": "linux", "Arch": "arm64"},
        info=lambda: info,
        api=SimpleNamespace(base_url="http+docker://localhost"),
        close=lambda: None,
    )
    monkeypatch.setattr(doctor, "present_base", lambda client, settings: None)
    checks = by_name(doctor.examine(settings(tmp_path), connect=lambda _: engine))  # type: ignore[arg-type,return-value]
    assert checks["engine"].detail == "Docker-compatible engine 27.1, linux/arm64"
    assert checks["control groups"].detail == "version 2, systemd"
    assert checks["base image"].status is Status.WARN
    assert not [name for name in checks if name.startswith("network")]


def registry_that_says(status: int, said: str) -> Any:
    def inspect(reference: str, auth_config: object) -> None:
        raise APIError(said, response=SimpleNamespace(status_code=status), explanation=said)  # type: ignore[arg-type]

    return SimpleNamespace(api=SimpleNamespace(inspect_distribution=inspect))


@pytest.mark.parametrize(
    ("status", "said", "expected", "hint"),
    [
        (404, "manifest unknown: manifest unknown", Status.OK, ""),
        (404, "name unknown: repository name not known to registry", Status.OK, ""),
        (401, "no basic auth credentials", Status.FAIL, "AUTOINSTALL_REGISTRY__USERNAME"),
        (500, "server gave HTTP response to HTTPS client", Status.FAIL, "insecure-registries"),
        (500, "dial tcp 127.0.0.1:1: connect: connection refused", Status.FAIL, "reach"),
        (404, "page not found", Status.WARN, ""),
    ],
)
def test_registry_of_the_images(tmp_path: Path, status: int, said: str, expected: Status, hint: str) -> None:
    given = settings(tmp_path, registry=RegistrySettings(repository="registry.example.org/team/environments"))
    check = doctor.registry(registry_that_says(status, said), given)
    assert check.status is expected
    assert "registry.example.org" in check.detail
    assert hint in check.hint


def test_git_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    assert doctor.git().status is Status.FAIL


def test_mirrors_on_disk_must_be_there(tmp_path: Path) -> None:
    given = {
        "https://there/": tmp_path.as_uri(),
        "https://gone/": f"file://{tmp_path}/gone/",
        "https://net/": "https://user:secret@mirror/",
    }
    checks = by_name(doctor.mirrors(settings(tmp_path, git_mirrors=given)))
    assert checks["mirror of https://there/"].status is Status.OK
    assert checks["mirror of https://gone/"].status is Status.FAIL
    assert "secret" not in checks["mirror of https://net/"].detail


def test_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    check = doctor.writable("data directory", tmp_path / "file" / "data")
    assert check.status is Status.FAIL
    assert "AUTOINSTALL_DATA" in check.hint


def test_writable_directory_is_left_as_it_was(tmp_path: Path) -> None:
    assert doctor.writable("data directory", tmp_path).status is Status.OK
    assert list(tmp_path.iterdir()) == []


def test_slow_storage_and_missing_limits_and_little_memory_are_warnings(tmp_path: Path) -> None:
    assert doctor.storage("vfs").status is Status.WARN
    assert doctor.storage("overlay2").status is Status.OK
    assert "PidsLimit" in doctor.control_groups({"PidsLimit": False}).detail
    small = settings(tmp_path, limits=LimitSettings(memory_mb=6144))
    assert doctor.memory(2000, small).status is Status.WARN
    assert doctor.memory(8000, small).status is Status.OK


def test_reachable_network(tmp_path: Path) -> None:
    checks = by_name(doctor.network(settings(tmp_path), Provider(), BASE))  # type: ignore[arg-type]
    assert {check.status for check in checks.values()} == {Status.OK}
    assert set(checks) == {"network: apt", "network: pip", "network: npm", "network: registries"}


def test_registries_that_do_not_answer_are_named(tmp_path: Path) -> None:
    refused = ALL_ANSWER.replace("3 0", "3 1").replace("4 0", "4 1")
    provider = Provider(survey=refused)
    check = by_name(doctor.network(settings(tmp_path), provider, BASE))["network: registries"]  # type: ignore[arg-type]
    assert (check.status, check.detail) == (Status.WARN, "no answer from CPAN, Packagist")


def test_registries_that_are_slow_answer_all_the_same(tmp_path: Path) -> None:
    provider = Provider(survey=ALL_ANSWER.replace("0 0 1", "0 124 15"))
    check = by_name(doctor.network(settings(tmp_path), provider, BASE))["network: registries"]  # type: ignore[arg-type]
    assert check.status is Status.OK
    assert check.detail == "those of all languages answer; slow, and only when asked alone: PyPI"


@pytest.mark.parametrize(
    ("output", "cause", "hint"),
    [
        ("SSL: CERTIFICATE_VERIFY_FAILED", "certificate", "CA_BUNDLE"),
        ("npm error code SELF_SIGNED_CERT_IN_CHAIN\nself-signed certificate", "certificate", "CA_BUNDLE"),
        ("Temporary failure in name resolution", "name", "DNS"),
        ("npm error getaddrinfo ENOTFOUND", "name", "DNS"),
        ("Connection timed out", "no answer", "HTTPS_PROXY"),
    ],
)
def test_unreachable_network_says_why(tmp_path: Path, output: str, cause: str, hint: str) -> None:
    provider = Provider(exit_code=1, output=output)
    checks = doctor.network(settings(tmp_path), provider, BASE)  # type: ignore[arg-type]
    for check in (check for check in checks if check.name != "network: registries"):
        assert check.status is Status.FAIL
        assert cause in check.detail
        assert hint in check.hint


def test_bundle_that_lacks_the_proxys_certificate(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    given = settings(tmp_path, pass_through=PassThrough(ca_bundle=tmp_path / "ca.pem"))
    check = doctor.unreachable("network: pip", "certificate verify failed", "PIP_INDEX_URL", given)
    assert "lacks the certificate" in check.hint


def test_sandbox_that_does_not_start_is_a_finding(tmp_path: Path) -> None:
    provider = Provider(error=SandboxNetwork("No route out of the sandbox."))
    checks = by_name(doctor.network(settings(tmp_path), provider, BASE))  # type: ignore[arg-type]
    assert checks["network"].status is Status.FAIL
