"""What Java programs are told of the host's network set-up: they read neither PEM files nor the usual variables."""

import re
import warnings
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12

from autoinstall.errors import ImageUnavailable
from autoinstall.settings import PassThrough

TRUST_STORE = "/dev/autoinstall-ca.p12"
"""Where the trust store is written in a sandbox: like the bundle's mount, it is in no image."""

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def options(settings: PassThrough) -> str:
    """Options of a Java virtual machine that fetches something; empty where the settings name nothing."""
    found = []
    if settings.ca_bundle is not None:
        found += [f"-Djavax.net.ssl.trustStore={TRUST_STORE}", "-Djavax.net.ssl.trustStoreType=PKCS12"]
    for scheme, proxy in (("http", settings.http_proxy), ("https", settings.https_proxy)):
        if not proxy:
            continue
        parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
        found += [f"-D{scheme}.proxyHost={parts.hostname or ''}", f"-D{scheme}.proxyPort={parts.port or 80}"]
        if parts.username:
            password = unquote(parts.password or "")
            found += [f"-D{scheme}.proxyUser={unquote(parts.username)}", f"-D{scheme}.proxyPassword={password}"]
    if settings.no_proxy and (settings.http_proxy or settings.https_proxy):
        hosts = (host.strip() for host in settings.no_proxy.split(","))
        found.append("-Dhttp.nonProxyHosts=" + "|".join(f"*{host}" if host.startswith(".") else host for host in hosts))
    return " ".join(found)


def trust_store(bundle: Path) -> bytes:
    """The certificates of a PEM file as a PKCS #12 trust store without a password.

    Raises:
        ImageUnavailable: the file cannot be read.
    """
    try:
        return _converted(bundle, bundle.stat().st_mtime_ns)
    except OSError as error:
        raise ImageUnavailable(
            f"The CA bundle {bundle} cannot be read: {error.strerror}.",
            hint="AUTOINSTALL_PASS_THROUGH__CA_BUNDLE must name a PEM file.",
        ) from error


@lru_cache(maxsize=4)
def _converted(bundle: Path, modified: int) -> bytes:
    del modified  # only tells the cache
    found: list[pkcs12.PKCS12Certificate] = []
    for number, text in enumerate(_CERTIFICATE.findall(bundle.read_bytes())):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # bundles have certificates from before the rules
            try:
                certificate = x509.load_pem_x509_certificate(text)
            except ValueError:
                continue
        found.append(pkcs12.PKCS12Certificate(certificate, f"ca-{number}".encode()))
    return pkcs12.serialize_java_truststore(found, NoEncryption()) if found else b""
