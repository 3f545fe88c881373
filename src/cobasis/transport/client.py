"""A party's way to the analyst's server: outbound HTTPS, every request signed, all resumable."""

import hashlib
import ssl
import time
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any, Self

import httpx
from cryptography.hazmat.primitives.serialization import Encoding

from cobasis.disk.whole import WholeFile, file_digest, opened
from cobasis.errors import CertificateError, ClockError, RequestError, UnreachableError
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.protocol.signatures import analyst_of
from cobasis.strict_json import json_object
from cobasis.transport.certificate import believed
from cobasis.transport.inbox import REFUSED
from cobasis.transport.wire import (
    FILE,
    MOST_BYTES,
    PART_BYTES,
    PARTIAL,
    PROBLEM,
    WAIT_SECONDS,
    WELL_KNOWN,
    digest_field,
    sign_request,
    whole_number,
)

_PAUSES = (0.5, 1, 2, 4, 8)
"""Seconds between tries, before a person is told."""

_TIMEOUT = httpx.Timeout(30, read=WAIT_SECONDS + 30)


_NO_PATCH = {httpx.codes.METHOD_NOT_ALLOWED, httpx.codes.NOT_IMPLEMENTED}


class Line:
    """A line to a server, whose other end is the analyst's by the analyst's own signature."""

    def __init__(self, server: str, *, analyst: PublicIdentity, ca: Path | None) -> None:
        self.server = server
        self._client = httpx.Client(verify=_trusted(server, analyst, ca=ca), timeout=_TIMEOUT)

    def __enter__(self) -> Self:
        """Keep the line open until the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._client.close()

    def ask(
        self,
        method: str,
        url: str,
        *,
        fields: dict[str, str] | None = None,
        content: bytes | None = None,
        to: Path | None = None,
    ) -> httpx.Response:
        """Ask again and again while the line fails; what the server refuses is raised."""
        told = dict(fields or {})
        if content is not None:
            told["content-digest"] = digest_field(hashlib.sha256(content).hexdigest())
        ends = (content, to)
        found = _again(self.server, lambda: self._once(method, url, fields=told, ends=ends))
        refused = found.headers.get("content-type") == PROBLEM
        if found.status_code in _NO_PATCH and method == "PATCH" and not refused:
            told |= {"x-http-method-override": "PATCH"}  # a proxy in between knows no PATCH
            found = _again(self.server, lambda: self._once("POST", url, fields=told, ends=ends))
        if found.status_code >= httpx.codes.BAD_REQUEST:
            raise _refusal(found)
        return found

    def _once(
        self,
        method: str,
        url: str,
        *,
        fields: dict[str, str],
        ends: tuple[bytes | None, Path | None],
    ) -> httpx.Response:
        """Sign and send one request; a file that comes is written, whole or not at all."""
        content, to = ends
        request = self._client.build_request(method, url, headers=fields, content=content)
        self._sign(request)
        found = self._client.send(request, stream=True)
        try:
            if to is None or found.status_code != httpx.codes.OK:
                found.read()
                return found
            n_bytes = whole_number(found.headers.get("content-length"), field="Content-Length")
            if n_bytes > MOST_BYTES:
                raise RequestError(f"the server gives {n_bytes:,} bytes; no file has so many.")
            with WholeFile(to, n_bytes=n_bytes, mode=0o644) as whole:
                at = 0
                for piece in found.iter_raw():
                    whole.write(piece, offset=at)
                    at += len(piece)
            return found
        finally:
            found.close()

    def _sign(self, request: httpx.Request) -> None:
        """Leave a request as it is, where nobody is enrolled yet."""


class Remote(Line):
    """The analyst's server, as one party of one round sees it."""

    def __init__(
        self,
        agreement: Agreement,
        *,
        name: str,
        sign: Callable[[bytes], bytes],
        ca: Path | None = None,
    ) -> None:
        super().__init__(agreement.server, analyst=analyst_of(agreement), ca=ca)
        self._name, self._signing = name, sign
        self._round = f"{agreement.server}/rounds/{agreement.digest().hex()}"

    def _sign(self, request: httpx.Request) -> None:
        """Sign a request as the party."""
        sign_request(request, name=self._name, sign=self._signing)

    def upload(self, path: Path, what: str, *, report: Report = silent) -> None:
        """Bring a file to the server, from where it was broken off; nothing where it is there."""
        n_bytes, digest = path.stat().st_size, file_digest(path)
        place = f"{self._round}/{what}"
        start = {"repr-digest": digest_field(digest), "upload-length": str(n_bytes)}
        with opened(path) as (file, _):
            if n_bytes <= PART_BYTES:
                content = file.read(PART_BYTES)
                fields = {**start, "upload-complete": "?1", "content-type": FILE}
                found = self.ask("POST", place, fields=fields, content=content)
            else:
                found = self.ask("POST", place, fields={**start, "upload-complete": "?0"})
            self._continue(f"{place}/{digest}", file, found, n_bytes=n_bytes, report=report)

    def _continue(
        self, place: str, file: FileIO, found: httpx.Response, *, n_bytes: int, report: Report
    ) -> None:
        """Send part after part until the server has the whole."""
        while found.headers.get("upload-complete") != "?1":
            offset = whole_number(found.headers.get("upload-offset"), field="Upload-Offset")
            report("sending", offset, n_bytes)
            file.seek(offset)
            content = file.read(PART_BYTES)
            last = "?1" if offset + len(content) == n_bytes else "?0"
            fields = {"upload-offset": str(offset), "upload-complete": last}
            fields |= {"content-type": PARTIAL}
            try:
                found = self.ask("PATCH", place, fields=fields, content=content)
            except RequestError as error:
                if error.status != httpx.codes.CONFLICT:
                    raise
                found = self.ask("HEAD", place)  # an answer was lost: go on from what is there
        report("sending", n_bytes, n_bytes)

    def refusal(self, path: Path, what: str) -> str:
        """Return why the worker refused a file that was sent; it is told, and tried, once."""
        place = f"{self._round}/{what}/{file_digest(path)}"
        try:
            found = _object(self.ask("GET", place)).get("verdict") or {"verdict": ""}
        except RequestError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return ""
            raise
        if found["verdict"] not in REFUSED:
            return ""
        self.ask("DELETE", place)
        return f"{found['reason']} [{found['code']}]"

    def fetch(self, what: str, to: Path, *, seconds: float = 0) -> bool:
        """Write what the server has of something, if it is new; wait for it for some seconds."""
        until = time.monotonic() + seconds
        while True:
            left = min(WAIT_SECONDS, max(0, until - time.monotonic()))
            fields = {"prefer": f"wait={round(left)}"}
            if to.exists():
                fields["if-none-match"] = f'"{file_digest(to)}"'
            found = self.ask("GET", f"{self._round}/{what}", fields=fields, to=to)
            if found.status_code == httpx.codes.OK:
                return True
            if time.monotonic() >= until:
                return False


def _trusted(server: str, analyst: PublicIdentity, *, ca: Path | None) -> ssl.SSLContext:
    """Return what makes sure that the other end is the analyst's server.

    Nothing but the analyst's enrolled key says so. What the server shows first is looked at
    without belief; from then on its very certificate is asked for.
    """
    context = ssl.create_default_context(cafile=ca)
    look = context if ca else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca is None:
        look.check_hostname, look.verify_mode = False, ssl.CERT_NONE
    with httpx.Client(verify=look, timeout=_TIMEOUT) as client:
        found = _again(server, lambda: client.get(f"{server}{WELL_KNOWN}"))
        line = found.extensions["network_stream"].get_extra_info("ssl_object")
        shown = line.getpeercert(True)  # noqa: FBT003 -- as DER; it takes no words
    certificate = believed(_object(found), shown, analyst=analyst, proxied=ca is not None)
    if ca is not None:
        return context
    exact = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    exact.check_hostname = False  # the key is compared, which says more than a name
    exact.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    exact.load_verify_locations(cadata=certificate.public_bytes(Encoding.DER))
    return exact


def _again(server: str, act: Callable[[], httpx.Response]) -> httpx.Response:
    """Ask until something is answered; UnreachableError after some tries."""
    why: object = ""
    for pause in (*_PAUSES, None):
        try:
            found = act()
            own = found.headers.get("content-type") == PROBLEM or found.status_code in _NO_PATCH
            if own or found.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
                return found
            why = f"it answers {found.status_code}"
        except httpx.TransportError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise CertificateError(
                    f"'{server}' shows another certificate than when this command began, or than "
                    "--tls-ca allows. Nothing more was sent. Type the same command again: it looks "
                    "whether the analyst has signed for the new one."
                ) from None
            why = error or type(error).__name__
        if pause is not None:
            time.sleep(pause)
    raise UnreachableError(
        f"'{server}' does not answer ({why}). Nothing is lost: the same command goes on. Look "
        "whether this machine may reach it by HTTPS; HTTPS_PROXY names a proxy."
    )


def _refusal(found: httpx.Response) -> RequestError | ClockError:
    """Return what a server refused, in its own words."""
    try:
        told = json_object(found.content)
        detail, code = str(told["detail"]), str(told["code"])
    except (ValueError, KeyError):
        detail, code = f"it answers {found.status_code}, which is nothing of cobasis.", ""
    if code == ClockError.code:
        return ClockError(f"the server refuses: {detail}")
    return RequestError(f"the server refuses: {detail}", status=found.status_code)


def _object(found: httpx.Response) -> dict[str, Any]:
    """Return an answer's JSON."""
    try:
        return json_object(found.content)
    except ValueError:
        raise RequestError(
            f"'{found.url.host}' answers with {found.status_code} and no JSON of ours, so it is no "
            "server of cobasis, or something stands in between. Look at the agreement's server."
        ) from None
