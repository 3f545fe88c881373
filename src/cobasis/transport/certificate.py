"""The server's certificate, and the analyst's signature on it, which is what parties believe."""

import hashlib
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cobasis.disk.lock import Lock
from cobasis.disk.whole import make_folder, read_whole, write_whole
from cobasis.errors import AgreementError, CertificateError
from cobasis.protocol.agreement import Digest, Moment, moment_of, moment_text
from cobasis.protocol.enrolment import IdentityName, PublicIdentity, SignedLine
from cobasis.strict_json import canonical_json
from cobasis.transport.wire import SMALL_BYTES

_OWN, _STATEMENT = timedelta(days=5 * 365), timedelta(days=90)
_APART = timedelta(days=1)  # clocks are not alike


class Statement(SignedLine):
    form = "cobasis/server/1"
    what = "statement about a server"
    ask = "Ask the analyst whether the worker runs, which writes it."

    analyst: IdentityName
    pin: Digest  # SHA-256 of the certificate's public key, as DER
    since: Moment
    until: Moment

    @classmethod
    def made(
        cls, certificate: x509.Certificate, *, analyst: str, sign: Callable[[bytes], bytes]
    ) -> Self:
        now = datetime.now(UTC)
        told = {"analyst": analyst, "pin": pin_of(certificate), "since": moment_text(now)}
        told |= {"until": moment_text(now + _STATEMENT)}
        made = cls(**told, signature="0" * 128)
        return made.model_copy(update={"signature": sign(made.message()).hex()})


def pin_of(certificate: x509.Certificate) -> str:
    form, subject = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(certificate.public_key().public_bytes(form, subject)).hexdigest()


def certificate_at(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(read_whole(path))
    except ValueError:
        raise CertificateError(
            f"'{path}' holds no certificate in PEM. Give the file that your web server uses, its "
            "own certificate first."
        ) from None


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Return certificate and key in a folder; made, signed by themselves, where there are none."""
    certificate, key = folder / "server.crt", folder / "server.key"
    make_folder(folder)
    with Lock(folder, what=f"the certificate in '{folder}'", wait=True):  # two halves may start
        if certificate.exists() and key.exists():
            return certificate, key
        names = sorted({"localhost", socket.gethostname()})
        drawn, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
        made = (
            x509.CertificateBuilder(who, who, drawn.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + _OWN)
            .add_extension(x509.SubjectAlternativeName(map(x509.DNSName, names)), critical=False)
            .sign(drawn, hashes.SHA256())
        )
        pem, bare = serialization.Encoding.PEM, serialization.NoEncryption()
        form = serialization.PrivateFormat.PKCS8
        # the key first: a kill in between leaves a key alone, and both are made anew
        write_whole(key, drawn.private_bytes(pem, form, bare))
        write_whole(certificate, made.public_bytes(pem), mode=0o644)
    return certificate, key


def believed(
    told: Mapping[str, object],
    certificate: bytes,
    *,
    analyst: PublicIdentity,
    proxied: bool,
    besides: Callable[[Statement], bool],
) -> x509.Certificate:
    """Return a server's certificate if the analyst has signed for it; CertificateError if not.

    `proxied`: a company's proxy shows a certificate of its own, so only that somebody signed is
    looked at. Contents stay sealed and signed; the proxy sees names, times and sizes. `besides` is
    what else a statement has to meet.
    """
    shown, pin = None, "unreadable"
    with suppress(ValueError, UnsupportedAlgorithm):
        read = x509.load_der_x509_certificate(certificate)
        shown, pin = read, pin_of(read)
    found, now = told.get("statements"), datetime.now(UTC)
    for each in found if isinstance(found, list) else []:
        with suppress(AgreementError, ValueError):
            made = Statement.from_text(canonical_json(each)[:SMALL_BYTES].decode())
            within = moment_of(made.since) - _APART <= now <= moment_of(made.until) + _APART
            good = made.is_by(analyst) and within and made.analyst == analyst.name and besides(made)
            if good and (proxied or made.pin == pin) and shown is not None:
                return shown
    raise CertificateError(
        f"the certificate that the server shows (its key: {pin[:16]}) is none that "
        f"'{analyst.name}' ({analyst.fingerprint}) has signed for and that holds today, so it may "
        f"be anybody's. Nothing was sent. Ask '{analyst.name}' whether its worker runs, and look "
        "at your clock. The certificate of a company's proxy is given with --tls-ca."
    )
