"""The server: takes sealed files and gives them out, and can open none of them.

It has no key but its certificate's. Whom it serves it knows from agreements, whose enrolled keys
sign each request; what it says of files, from their names, their sizes and the worker's verdicts.
"""

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from cobasis.bundle.agreement_file import inbox_of
from cobasis.disk.lock import Lock
from cobasis.disk.whole import known_digest, read_whole
from cobasis.errors import AnotherRunError, ClockError, CobasisError, DiskError, RequestError
from cobasis.transport import wire
from cobasis.transport.inbox import DIGEST, LOG, STATEMENT, STATEMENTS, Sent, Served, most_bytes
from cobasis.transport.index import Index, State
from cobasis.transport.mailbox import SLOTS, Mailbox

_LOOK_SECONDS = 0.2
_STALL_SECONDS = 30
_LONG = re.compile("wait=([0-9]{1,3})")

Handler = Callable[[Request], Awaitable[Response]]


def answering(handler: Handler) -> Handler:
    """Turn errors into problems, as RFC 9457 writes them, and note how each request ended."""

    @wraps(handler)
    async def answered(request: Request) -> Response:
        began, told = time.monotonic(), dict[str, object]()
        try:
            response = await handler(request)
        except ClientDisconnect:
            response = Response(status_code=499)  # to nobody; for the log
        except CobasisError as error:
            response, told = _problem(error), {"code": error.code}
        response.headers["cache-control"] = "no-store"  # nothing in between may keep it
        seconds = round(time.monotonic() - began, 4)
        told |= {"method": request.method, "status": response.status_code, "seconds": seconds}
        LOG.info(json.dumps({**told, "path": request.url.path[:200]}))
        return response

    return answered


def _problem(error: CobasisError) -> Response:
    status, detail = getattr(error, "status", 400), str(error.args[0])
    if isinstance(error, ClockError):
        status = 401
    if isinstance(error, DiskError):  # the message names the server's own paths
        status, detail = 507, "the server's disk is full, or fails. Tell the analyst; try later."
    if isinstance(error, AnotherRunError):
        status, detail = 409, "another request is at work on this file. Try again in a moment."
    told = {"type": f"errors/{error.code}", "title": type(error).__name__, "status": status}
    told |= {"detail": detail, "code": error.code}
    return JSONResponse(told, status_code=status, media_type=wire.PROBLEM)


class Server:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mailbox, self._index = Mailbox(folder), Index(folder)

    def app(self) -> Starlette:
        file, mail = "/rounds/{round}/{what}", "/invites/{address}/{slot}"
        methods = ["HEAD", "GET", "PATCH", "POST"]
        return Starlette(
            routes=[
                Route("/healthz", self.health, methods=["GET"]),
                Route(wire.WELL_KNOWN, self.statements, methods=["GET"]),
                Route(mail, answering(self.pass_on), methods=["POST", "GET"]),
                Route(file, answering(self.begin), methods=["POST"]),
                Route(file, answering(self.fetch), methods=["GET"]),
                Route(f"{file}/{{digest}}", answering(self.upload), methods=methods),
            ]
        )

    async def health(self, _: Request) -> Response:
        await run_sync(lambda: next(self.folder.iterdir(), None))
        return JSONResponse({"healthy": True})

    async def statements(self, _: Request) -> Response:
        def read() -> list[Any]:
            found = []
            for path in sorted((self.folder / STATEMENTS).glob(f"*{STATEMENT}")):
                with suppress(DiskError, ValueError):
                    found.append(json.loads(read_whole(path)))
            return found

        return JSONResponse({"statements": await run_sync(read)})

    async def begin(self, request: Request) -> Response:
        sent, state, file = await run_sync(self._begun, request)
        if file is not None:
            state = await self._grown(request, sent, file, length=state.length)
        return _told(state, status=201, location=f"{request.url.path.rstrip('/')}/{sent.digest}")

    def _begun(self, request: Request) -> tuple[Sent, State, Lock | None]:
        """Note a file that is announced; open it, too, where all of it comes with that."""
        # at once, for a crowd waits for threads more than for what they do
        (served, sent, _), headers = self._visit(request), request.headers
        sent = replace(sent, digest=wire.digest_in(headers.get("repr-digest", "")))
        most = most_bytes(served.agreement, sent)
        length = wire.whole_number(headers.get("upload-length"), field="Upload-Length")
        if length > most:
            told = f"the file has {length:,} bytes, and {most:,} are taken of this kind."
            raise RequestError(f"{told} Look whether it is the right file.", status=413)
        last = wire.is_last(headers.get("upload-complete"))
        state = self._index.begin(sent, length=length)
        if not last or state.whole or state.n_bytes:
            return sent, state, None
        _require_type(request, wire.FILE)
        return sent, state, self._index.grow(sent, offset=0)[0]

    async def upload(self, request: Request) -> Response:
        served, sent, method = await run_sync(self._visit, request)
        most_bytes(served.agreement, sent)  # what never travels has come nowhere
        if not re.fullmatch(DIGEST, sent.digest):
            raise wire.nobody()
        if method == "PATCH":
            _require_type(request, wire.PARTIAL)
            offset = wire.whole_number(request.headers.get("upload-offset"), field="Upload-Offset")
            file, length = await run_sync(lambda: self._index.grow(sent, offset=offset))
            state = await self._grown(request, sent, file, length=length)
            return _told(state, status=204)
        state = await run_sync(self._index.known, sent)
        return _told(state, status=200, whole=method == "GET")

    async def fetch(self, request: Request) -> Response:
        served, sent, _ = await run_sync(self._visit, request)
        return await self._when(request, lambda: served.out(sent.what, party=sent.party))

    async def pass_on(self, request: Request) -> Response:
        address, slot = request.path_params["address"], request.path_params["slot"]
        place = await run_sync(self._mailbox.place, address, slot)
        if request.method != "POST":  # where GET is answered, HEAD is, too
            return await self._when(request, lambda: place if place.exists() else None)
        self._mailbox.refuse_haste(address)
        data, most = bytearray(), SLOTS[slot]
        async for piece in request.stream():
            data += piece
            if len(data) > most:
                raise RequestError(f"more than the {most:,} bytes of a {slot} came.", status=413)
        await run_sync(lambda: self._mailbox.put(address, slot, data=bytes(data)))
        return Response(status_code=201)

    async def _when(self, request: Request, find: Callable[[], Path | None]) -> Response:
        """Give a file out, or wait for as long as is asked until there is another one."""
        asked = _LONG.fullmatch(request.headers.get("prefer", ""))
        until = time.monotonic() + min(int(asked[1]) if asked else 0, wire.WAIT_SECONDS)
        known = request.headers.get("if-none-match", "")
        while True:
            path = await run_sync(find)
            tag = "" if path is None else await run_sync(_tag, path)
            if path is not None and tag and tag != known:
                return FileResponse(path, media_type=wire.FILE, headers={"etag": tag})
            if time.monotonic() >= until or await request.is_disconnected():
                return Response(status_code=304 if tag else 202, headers={"retry-after": "5"})
            await asyncio.sleep(_LOOK_SECONDS)

    def _visit(self, request: Request) -> tuple[Served, Sent, str]:
        """Return which round is asked about, whose file, and by which method; or refuse.

        Whether there is no such round, or a stranger asks, is answered alike. A method that a proxy
        blocks is told by the client in a field.
        """
        served = self._index.round(request.path_params["round"])
        if served is None:
            raise wire.nobody()
        path = bytes(request.scope["raw_path"]).decode("ascii", "replace")
        if request.url.query or "/rounds/" not in path:
            raise wire.nobody()
        # as the agreement has it: what a proxy in between calls this server changes nothing
        url = served.agreement.server + path[path.index("/rounds/") :]
        signed = SimpleNamespace(method=request.method, url=url, headers=request.headers)
        party = wire.signer_of(signed, served.people)
        other = request.headers.get("x-http-method-override")
        if other is not None and (other, request.method) != ("PATCH", "POST"):
            raise RequestError("only POST may stand for another method, which is PATCH.")
        asked, method = request.path_params, other or request.method
        if method == "POST" and "digest" in asked:
            raise RequestError("a file that was begun takes PATCH.", status=405)
        served.refuse_revoked(party=party, brings=method in {"PATCH", "POST"})
        told = {"party": party, "what": asked["what"], "digest": asked.get("digest", "")}
        return served, Sent(inbox=inbox_of(served.path), **told), method

    async def _grown(self, request: Request, sent: Sent, file: Lock, *, length: int) -> State:
        with file:
            told = wire.digest_in(request.headers.get("content-digest", ""))
            last, offset = wire.is_last(request.headers.get("upload-complete")), file.n_bytes
            try:
                await _poured(request, file, told=told, length=length, last=last)
                if not last:
                    await run_sync(file.settle)
            except BaseException:
                with anyio.CancelScope(shield=True):  # what nobody vouched for does not stay
                    await run_sync(file.shorten, offset)
                raise
            if last:
                known = told if offset == 0 else None
                await run_sync(lambda: self._index.finish(sent, file, digest=known))
            return State(n_bytes=file.n_bytes, length=length, whole=last)


def _tag(path: Path) -> str:
    with suppress(DiskError):
        return f'"{known_digest(path)}"'
    return ""


async def _poured(request: Request, file: Lock, *, told: str, length: int, last: bool) -> None:
    digest, here = hashlib.sha256(), file.n_bytes
    most = min(here + wire.PART_BYTES, length)
    now = asyncio.get_running_loop().time
    try:
        # a line may be dead, which nobody here can know, and has the file until it ends
        async with asyncio.timeout(_STALL_SECONDS) as limit:
            async for piece in request.stream():
                if here + len(piece) > most:
                    raise RequestError("more bytes came than this part may have.", status=413)
                digest.update(piece)
                # to the system's memory, which takes less than another thread
                file.write(piece, offset=here)
                here += len(piece)
                limit.reschedule(now() + _STALL_SECONDS)
    except TimeoutError:
        raise RequestError("nothing more came of this part. Send it again.", status=408) from None
    same = digest.hexdigest() == told
    if not same or (last and here != length):
        which = "length" if same else "digest"
        raise RequestError(f"what came has another {which} than its fields say. Send it again.")


def _require_type(request: Request, wanted: str) -> None:
    if request.headers.get("content-type") != wanted:
        raise RequestError(f"the content has to be {wanted}, as Content-Type says.", status=415)


def _told(state: State, *, status: int, location: str = "", whole: bool = False) -> Response:
    headers = {"location": location} if location else {}
    headers |= {"upload-limit": f"max-append-size={wire.PART_BYTES}"}
    headers |= {"upload-complete": "?1" if state.whole else "?0"}
    headers |= {"upload-offset": str(state.n_bytes)}
    if not whole:
        return Response(status_code=status, headers=headers)
    return JSONResponse({"verdict": state.verdict}, status_code=status, headers=headers)
