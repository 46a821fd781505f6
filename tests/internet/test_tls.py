"""Over TLS: a certificate is checked against the name that was asked for, not the address."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from mimikit.clock import SystemClock
from mimikit.errors import Refused
from mimikit.internet.addresses import UrlRules
from mimikit.internet.connection import CallLimits, WebError
from mimikit.internet.pages import PageSource
from tests.support.fake_web import PUBLIC, FakeWeb, answer, redirect

SITE, OTHER = "site.example.com", "other.example.com"


def certificate(folder: Path, name: str) -> Path:
    """A file with a key and a certificate of that name, signed by itself."""
    key, now = ec.generate_private_key(ec.SECP256R1()), SystemClock().now()
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(serialization.Encoding.PEM, form, plain)
    path = folder / "both.pem"
    path.write_bytes(pem + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def web(tmp_path: Path) -> Iterator[FakeWeb]:
    path = certificate(tmp_path, SITE)
    with FakeWeb() as made:
        made.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.tls.load_cert_chain(path)
        made.trusts = ssl.create_default_context(cafile=str(path))
        made.pages |= {f"{SITE}/": answer("here"), f"{OTHER}/": answer("there")}
        yield made


def fetch(web: FakeWeb, url: str) -> bytes:
    limits = CallLimits(time.monotonic() + 20, 100_000)
    source = PageSource(UrlRules(), web.network, timeout_s=20, most_bytes=100_000, redirects=3)
    return source.fetch(url, limits, asks_robots=False).body


def test_a_page_comes_over_tls_from_the_address_that_was_judged(web: FakeWeb) -> None:
    assert fetch(web, f"https://{SITE}/") == b"here"
    assert web.connected == [(PUBLIC, 443)]


def test_another_name_of_the_same_address_is_not_trusted(web: FakeWeb) -> None:
    with pytest.raises(WebError, match="can not be trusted"):
        fetch(web, f"https://{OTHER}/")
    assert web.asked == []


def test_who_signs_for_itself_is_not_trusted(web: FakeWeb) -> None:
    web.trusts = None
    with pytest.raises(WebError, match="can not be trusted"):
        fetch(web, f"https://{SITE}/")
    assert web.asked == []


def test_a_redirect_over_tls_is_judged_as_any_other(web: FakeWeb) -> None:
    web.pages[f"{SITE}/in"] = redirect("https://127.0.0.1/")
    with pytest.raises(Refused, match="of this machine"):
        fetch(web, f"https://{SITE}/in")
