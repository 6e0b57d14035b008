import docker.errors
import pytest
import requests

from autoinstall import errors
from autoinstall.sandbox.boundary import engine_errors


def answer(status: int, text: str) -> docker.errors.APIError:
    response = requests.Response()
    response.status_code = status
    kind = docker.errors.ImageNotFound if "No such image" in text else docker.errors.APIError
    return kind("failed", response=response, explanation=text)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (answer(429, "slow down"), errors.RegistryRateLimited),
        (answer(500, "toomanyrequests: You have reached your pull rate limit"), errors.RegistryRateLimited),
        (answer(500, "write /x: no space left on device"), errors.DiskFull),
        (answer(404, "No such image: x"), errors.ImageUnavailable),
        (answer(404, "No such container: x"), errors.SandboxLost),
        (answer(409, "Container x is not running"), errors.SandboxLost),
        (answer(500, "container state improper"), errors.SandboxLost),
        (answer(500, "x does not exist in database: no such container"), errors.SandboxLost),
        (answer(500, "something else"), errors.EngineFailed),
        (docker.errors.DockerException("odd"), errors.EngineUnavailable),
        (requests.exceptions.ReadTimeout("slow"), errors.EngineUnavailable),
        (requests.exceptions.ConnectionError("gone"), errors.EngineUnavailable),
        (ConnectionResetError("reset"), errors.EngineUnavailable),
    ],
)
def test_what_the_client_raises_becomes_ours(raised: Exception, expected: type[Exception]) -> None:
    with pytest.raises(expected) as caught, engine_errors("do a thing", sandbox=True):
        raise raised
    assert type(caught.value) is expected


def test_no_address_range_left_is_named_with_a_hint() -> None:
    said = "could not find an available, non-overlapping IPv4 address pool among the defaults"
    with pytest.raises(errors.EngineFailed) as caught, engine_errors("make a network"):
        raise answer(404, said)
    assert "address range" in caught.value.message
    assert "default-address-pools" in caught.value.hint


def test_credentials_do_not_get_into_messages() -> None:
    with pytest.raises(errors.EngineFailed) as caught, engine_errors("pull"):
        raise answer(500, "get https://user:secret@registry.example/v2: refused")
    assert "secret" not in str(caught.value)
