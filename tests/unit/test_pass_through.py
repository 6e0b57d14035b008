from pathlib import Path

import pytest

from autoinstall.sandbox import services
from autoinstall.sandbox.pass_through import CA_BUNDLE, constant_env, mounts, pass_through_env
from autoinstall.sandbox.pass_through import _table as table
from autoinstall.settings import PassThrough


def test_every_setting_has_its_row() -> None:
    assert table().pass_through.keys() == PassThrough.model_fields.keys() - {"env"}


def test_nothing_is_passed_through_unless_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@proxy.example")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert pass_through_env(PassThrough()) == {}
    assert mounts(PassThrough()) == []


def test_settings_become_the_variables_of_the_tools() -> None:
    settings = PassThrough(
        ca_bundle=Path("/etc/ca.pem"),
        https_proxy="http://proxy.example",
        pip_index_url="https://index.example",
        env={"A": "b"},
    )
    env = pass_through_env(settings)
    assert env["PIP_CERT"] == env["NODE_EXTRA_CA_CERTS"] == env["SSL_CERT_FILE"] == CA_BUNDLE
    assert env["https_proxy"] == env["HTTPS_PROXY"] == "http://proxy.example"
    assert env["PIP_INDEX_URL"] == env["UV_DEFAULT_INDEX"] == "https://index.example"
    assert env["A"] == "b"
    assert mounts(settings) == [f"/etc/ca.pem:{CA_BUNDLE}:ro"]


def test_time_zone_locale_and_hash_seed_are_fixed() -> None:
    assert {"TZ": "UTC", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}.items() <= constant_env().items()
    assert "CI" not in constant_env()


def test_what_is_passed_through_is_not_in_the_env_file() -> None:
    text = services.env_file({"NAME": "it's"})
    assert "export NAME='it'\"'\"'s'\n" in text
    assert "PROXY" not in text
    assert CA_BUNDLE not in text
