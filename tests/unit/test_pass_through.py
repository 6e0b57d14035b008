from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, pkcs12
from cryptography.x509.oid import NameOID

from autoinstall.errors import ImageUnavailable
from autoinstall.sandbox import services
from autoinstall.sandbox.jvm import TRUST_STORE, trust_store
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


def test_settings_become_the_variables_of_the_tools(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    settings = PassThrough(
        ca_bundle=tmp_path / "ca.pem",
        https_proxy="http://proxy.example",
        pip_index_url="https://index.example",
        env={"A": "b"},
    )
    env = pass_through_env(settings)
    assert env["PIP_CERT"] == env["NODE_EXTRA_CA_CERTS"] == env["SSL_CERT_FILE"] == CA_BUNDLE
    assert env["https_proxy"] == env["HTTPS_PROXY"] == "http://proxy.example"
    assert env["PIP_INDEX_URL"] == env["UV_DEFAULT_INDEX"] == "https://index.example"
    assert env["A"] == "b"
    assert mounts(settings) == [f"{tmp_path}/ca.pem:{CA_BUNDLE}:ro"]


def _certificate(name: str) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    day = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(7).not_valid_before(day).not_valid_after(day + timedelta(days=9))
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def test_java_is_given_the_bundle_as_a_trust_store(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    bundle.write_bytes(b"# first\n" + _certificate("one") + broken + _certificate("two"))
    names = [
        item.certificate.subject.rfc4514_string()
        for item in pkcs12.load_pkcs12(trust_store(bundle), None).additional_certs
    ]
    assert names == ["CN=one", "CN=two"]
    bundle.write_bytes(_certificate("three"))
    assert len(pkcs12.load_pkcs12(trust_store(bundle), None).additional_certs) == 1
    assert f"trustStore={TRUST_STORE}" in pass_through_env(PassThrough(ca_bundle=bundle))["MAVEN_OPTS"]
    with pytest.raises(ImageUnavailable):
        trust_store(tmp_path / "absent.pem")


def test_java_is_told_of_proxies_by_options() -> None:
    settings = PassThrough(https_proxy="http://me:p%40ss@proxy.example:3128", no_proxy="localhost,.example.org")
    options = pass_through_env(settings)["MAVEN_OPTS"].split()
    assert {"-Dhttps.proxyHost=proxy.example", "-Dhttps.proxyPort=3128", "-Dhttps.proxyPassword=p@ss"} <= set(options)
    assert "-Dhttp.nonProxyHosts=localhost|*.example.org" in options


def test_time_zone_locale_and_hash_seed_are_fixed() -> None:
    assert {"TZ": "UTC", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}.items() <= constant_env().items()
    assert "CI" not in constant_env()


def test_what_is_passed_through_is_not_in_the_env_file() -> None:
    text = services.env_file({"NAME": "it's"})
    assert "export NAME='it'\"'\"'s'\n" in text
    assert "PROXY" not in text
    assert CA_BUNDLE not in text
