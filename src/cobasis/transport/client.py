"""A party's way to the analyst's server: outbound HTTPS, every request signed, all resumable."""

import hashlib
import math
import ssl
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx
from cryptography.hazmat.primitives.serialization import Encoding

from cobasis.bundle.agreement_file import news_at
from cobasis.disk.whole import WholeFile, file_digest, known_digest, opened, remove_tree
from cobasis.errors import ClockError, OptionError, RequestError, RevokedError, UnreachableError
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.protocol.news import MAX_BYTES as NEWS_BYTES
from cobasis.protocol.signatures import analyst_of
from cobasis.strict_json import json_object
from cobasis.transport.certificate import Statement, believed, pin_of
from cobasis.transport.inbox import REFUSED, SECRET
from cobasis.transport.mailbox import Slot, address_of, data_in, vouched
from cobasis.transport.wire import (
    FILE,
    MOST_BYTES,
    PART_BYTES,
    PARTIAL,
    PROBLEM,
    SMALL_BYTES,
    WAIT_SECONDS,
    WELL_KNOWN,
    digest_field,
    sign_request,
    whole_number,
)

if TYPE_CHECKING:
    from cobasis.transport.invites import Code

_PAUSES = (0.5, 1, 2, 4, 8)  # seconds between tries, before a person is told
_ANSWER = 2**21
_TIMEOUT = httpx.Timeout(30, read=300)  # the last part of a large file is hashed as a whole
_AGAIN = {httpx.codes.CONFLICT, httpx.codes.REQUEST_TIMEOUT}
"""Answered where another request is at work, or an answer was lost: it is asked what is there."""

_NO_PATCH = {httpx.codes.METHOD_NOT_ALLOWED, httpx.codes.NOT_IMPLEMENTED}
_CHANGED = "CERTIFICATE_VERIFY_FAILED"

Fields = dict[str, str]
Answer = TypeVar("Answer")


class Line:
    """A line to a server, whose other end is the analyst's by the analyst's own signature."""

    def __init__(
        self,
        server: str,
        *,
        analyst: PublicIdentity,
        ca: Path | None,
        insist: bool = True,
        believes: Callable[[Statement], bool] = lambda _: True,
        sign: Callable[[httpx.Request], object] = lambda _: None,  # while nobody is enrolled yet
    ) -> None:
        self.server, self._analyst, self._ca, self._believes = server, analyst, ca, believes
        self._sign = sign
        self._pauses = _PAUSES if insist else ()
        self._client = _client(self._trusted())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(
        self,
        method: str,
        url: str,
        *,
        fields: Fields | None = None,
        content: bytes | None = None,
        to: Path | None = None,
    ) -> httpx.Response:
        """Ask again and again while the line fails; what the server refuses is raised."""
        headers = dict(fields or {})
        if content is not None:
            headers["content-digest"] = digest_field(hashlib.sha256(content).hexdigest())

        def once() -> httpx.Response:
            request = self._client.build_request(method, url, headers=headers, content=content)
            return self._answered(request, to=to)

        found = self._again(once)
        if found.status_code in _NO_PATCH and method == "PATCH" and not _is_problem(found):
            method, headers["x-http-method-override"] = "POST", method  # a proxy knows no PATCH
            found = self._again(once)
        if not found.is_error:
            return found
        told = _object(found) if _is_problem(found) else {}
        detail = f"the server refuses: {told.get('detail', f'it answers {found.status_code}.')}"
        for kind in (ClockError, RevokedError):
            if told.get("code") == kind.code:
                raise kind(detail)
        raise RequestError(detail, status=found.status_code)

    def look(
        self, url: str, *, seconds: float, fields: Fields | None = None, to: Path | None = None
    ) -> httpx.Response:
        """Ask for something that may not be there yet; the server waits for it for some seconds."""
        began, wait = time.monotonic(), min(WAIT_SECONDS, math.ceil(seconds))
        told = {**(fields or {}), "prefer": f"wait={wait}"}
        found = self.ask("GET", url, fields=told, to=to)
        if found.status_code != httpx.codes.OK:
            # whoever answers sooner than was asked, as a cache in between, is not asked in a circle
            time.sleep(max(0.0, min(1.0, seconds - (time.monotonic() - began))))
        return found

    def _answered(self, request: httpx.Request, *, to: Path | None) -> httpx.Response:
        self._sign(request)
        try:
            found = self._client.send(request, stream=True)
        except httpx.ConnectError as error:
            if _CHANGED not in str(error):
                raise
            # perhaps renewed: the analyst's word on what it shows now is asked for
            renewed = _client(self._trusted())
            self._client.close()
            self._client = renewed
            raise
        with closing(found):
            if to is None or found.status_code != httpx.codes.OK:
                told = _told(found)
            else:
                told = _write(found, to)
        plain = [field for field in found.headers.multi_items() if field[0] != "content-encoding"]
        found = httpx.Response(found.status_code, headers=plain, content=told, request=request)
        if found.is_server_error and found.status_code not in _NO_PATCH and not _is_problem(found):
            raise httpx.RemoteProtocolError(f"it answers {found.status_code}")
        return found

    def _again(self, act: Callable[[], Answer]) -> Answer:
        why: object = ""
        for pause in (*self._pauses, None):
            try:
                return act()
            except (httpx.TransportError, httpx.InvalidURL, UnicodeError) as error:
                why = error or type(error).__name__
            if pause is not None:
                time.sleep(pause)
        raise UnreachableError(
            f"'{self.server}' does not answer ({why}). Nothing is lost: the same command goes on. "
            "Look whether this machine may reach it by HTTPS; HTTPS_PROXY names a proxy."
        )

    def _trusted(self) -> ssl.SSLContext:
        """Return what makes sure that the other end is the analyst's server.

        Nothing but the analyst's enrolled key says so. What the server shows first is looked at
        without belief; from then on its very certificate is asked for.
        """
        ca, look = self._ca, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        look.check_hostname, look.verify_mode = False, ssl.CERT_NONE
        if ca is not None:
            try:
                look = ssl.create_default_context(cafile=ca)
            except OSError as error:  # ssl's own is one
                raise OptionError(
                    f"--tls-ca '{ca}' cannot be used ({error.strerror or error}). Give one in PEM."
                ) from None

        def ask() -> tuple[bytes, bytes]:
            with _client(look) as client, client.stream("GET", self.server + WELL_KNOWN) as found:
                line = found.extensions["network_stream"].get_extra_info("ssl_object")
                shown = line.getpeercert(True)  # noqa: FBT003 -- as DER; it takes no words
                return shown, _told(found)

        (shown, told), statements = self._again(ask), dict[str, Any]()
        with suppress(ValueError):  # whoever that is
            statements = json_object(told)
        how: Any = {"analyst": self._analyst, "proxied": ca is not None}
        certificate = believed(statements, shown, **how, besides=self._believes)
        self.pin = pin_of(certificate)
        if ca is not None:
            return look
        exact = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        exact.check_hostname = False  # the key is compared, which says more than a name
        exact.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        exact.load_verify_locations(cadata=certificate.public_bytes(Encoding.DER))
        return exact


class Remote(Line):
    def __init__(
        self,
        agreement: Agreement,
        *,
        name: str,
        sign: Callable[[bytes], bytes],
        ca: Path | None = None,
        insist: bool = True,
    ) -> None:
        how: Any = {"ca": ca, "insist": insist, "sign": partial(sign_request, name=name, sign=sign)}
        super().__init__(agreement.server, analyst=analyst_of(agreement), **how)
        self._agreement = agreement
        self._round = f"{agreement.server}/rounds/{agreement.digest().hex()}"

    def upload(self, path: Path, what: str, *, report: Report = silent) -> None:
        """Bring a file to the server, from where it was broken off; nothing where it is there."""
        place, n_bytes = self._place(what, path), path.stat().st_size
        with opened(path) as (file, _):
            found = self._known(place)
            while found is None or found.headers.get("upload-complete") != "?1":
                try:
                    if found is None:
                        found = self._begin(place, file, n_bytes=n_bytes)
                    else:
                        at = whole_number(found.headers.get("upload-offset"), field="Upload-Offset")
                        report("sending", at, n_bytes)
                        found = self._part(place, file, offset=at, n_bytes=n_bytes)
                except RequestError as error:
                    if error.status not in _AGAIN:
                        raise
                    time.sleep(_PAUSES[0])
                    found = self._known(place)
        report("sending", n_bytes, n_bytes)

    def refusal(self, path: Path, what: str) -> str:
        """Return why the worker refused a file that was sent; nothing where it did not."""
        found = self._known(self._place(what, path))
        match None if found is None else _object(found).get("verdict"):
            case {"verdict": str(word), "reason": reason, "code": code} if word in REFUSED:
                return f"{reason} [{code}]"
        return ""

    def fetch(self, what: str, to: Path, *, seconds: float = 0) -> bool:
        """Write what the server has of something, if it is new; wait for it for some seconds."""
        fields = {"if-none-match": f'"{file_digest(to)}"'} if to.exists() else {}
        found = self.look(f"{self._round}/{what}", seconds=seconds, fields=fields, to=to)
        new = bool(found.status_code == httpx.codes.OK)
        if new and what == "news":
            try:
                news_at(to, self._agreement)
            except Exception:  # where they stayed, no command could look at the round
                remove_tree(to)
                raise
        return new

    def _place(self, what: str, path: Path) -> str:
        return f"{self._round}/{what}/{known_digest(path)}"

    def _known(self, place: str) -> httpx.Response | None:
        """Ask how much of a file is there; None where it was not begun."""
        try:
            return self.ask("GET", place)
        except RequestError as error:
            if error.status != httpx.codes.NOT_FOUND:
                raise
            return None

    def _begin(self, place: str, file: FileIO, *, n_bytes: int) -> httpx.Response:
        """Announce a file; a small one comes whole with that."""
        kind, _, digest = place.rpartition("/")
        fields = {"repr-digest": digest_field(digest), "upload-length": str(n_bytes)}
        if n_bytes > PART_BYTES:
            return self.ask("POST", kind, fields={**fields, "upload-complete": "?0"})
        fields |= {"upload-complete": "?1", "content-type": FILE}
        file.seek(0)
        return self.ask("POST", kind, fields=fields, content=file.read(PART_BYTES))

    def _part(self, place: str, file: FileIO, *, offset: int, n_bytes: int) -> httpx.Response:
        if offset > n_bytes:
            told = f"the server says that it has {offset:,} bytes of a file of {n_bytes:,}"
            raise RequestError(f"{told}. Ask the analyst.")
        file.seek(offset)
        content = file.read(PART_BYTES)
        last = "?1" if offset + len(content) == n_bytes else "?0"
        fields = {"upload-offset": str(offset), "upload-complete": last, "content-type": PARTIAL}
        return self.ask("PATCH", place, fields=fields, content=content)


class Post(Line):
    def __init__(self, code: "Code", *, ca: Path | None = None) -> None:
        super().__init__(code.server, analyst=code.who, ca=ca, believes=code.believes)
        self._token = bytes.fromhex(code.token)
        self._place = f"{code.server}/invites/{address_of(self._token)}"

    def bring(self, slot: Slot, data: bytes) -> None:
        self.ask("POST", f"{self._place}/{slot}", content=vouched(self._token, data, slot=slot))

    def fetch(self, slot: Slot, *, seconds: float = 0) -> bytes | None:
        """Return what the other one has left; None where it has not come after some seconds."""
        found = self.look(f"{self._place}/{slot}", seconds=seconds)
        if found.status_code != httpx.codes.OK:
            return None
        return data_in(self._token, found.content, slot=slot)


def _told(found: httpx.Response) -> bytes:
    """Return what comes as an answer, and unpack none of it; RequestError where it has no end."""
    told = b""
    for piece in found.iter_raw():
        told += piece
        if len(told) > _ANSWER:
            raise RequestError("what answers for the server has no end. Ask the analyst.")
    return told


def _write(found: httpx.Response, to: Path) -> bytes:
    """Write what comes into a file, whole and as the server says it is, or leave what was there."""
    n_bytes = whole_number(found.headers.get("content-length"), field="Content-Length")
    what = found.url.path.rpartition("/")[2]
    most = {"news": NEWS_BYTES, "agreement": 2 * NEWS_BYTES}
    limit = SMALL_BYTES if f"{what}.".startswith(SECRET) else most.get(what, MOST_BYTES)
    if n_bytes > limit:
        raise RequestError(
            f"the server gives {n_bytes:,} bytes; '{what}' has {limit:,} at most. Ask the analyst."
        )
    with WholeFile(to, n_bytes=n_bytes, mode=0o644) as whole:
        for piece in found.iter_raw():
            if whole.at + len(piece) > n_bytes:  # chunks may say another length than the field
                break
            whole.write(piece)
        if found.headers.get("etag") != f'"{whole.digest.hexdigest()}"':
            raise httpx.RemoteProtocolError("what came is not what the server has")
    return b""


def _client(context: ssl.SSLContext) -> httpx.Client:
    try:
        fields = {"accept-encoding": "identity"}
        return httpx.Client(verify=context, timeout=_TIMEOUT, headers=fields)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise OptionError(
            f"the proxy that HTTPS_PROXY or ALL_PROXY names cannot be used ({error}). Name one "
            "like http://proxy.example:3128, or none."
        ) from None


def _is_problem(found: httpx.Response) -> bool:
    return bool(found.headers.get("content-type") == PROBLEM)


def _object(found: httpx.Response) -> dict[str, Any]:
    try:
        return json_object(found.content)
    except ValueError:
        raise RequestError(
            f"'{found.url.host}' answers with {found.status_code} and no JSON of ours, so it is no "
            "server of cobasis, or something stands in between. Look at the agreement's server."
        ) from None
