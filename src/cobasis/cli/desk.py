"""Pages for the one person who started them, with commands as buttons.

The process that shows them never has the key: a button runs the command itself, in a process of
its own, and the passphrase goes to that through a pipe.
"""

import os
import secrets
import socket
import sys
import time
import webbrowser
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from threading import Lock, Thread
from typing import Any, cast
from urllib.parse import parse_qs, quote

import typer
import uvicorn
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from cobasis.cli.options import PROGRESS, Action, Form, Topic
from cobasis.errors import CobasisError
from cobasis.report.pages import template
from cobasis.transport.web import PLAIN

_SECONDS, _MOST_BYTES, _MOST_LINES = 600, 2**16, 5000
_OURS = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_DRAWN = _OURS.replace("style-src 'self'", "style-src 'unsafe-inline'")
"""Of pages that are also written as files, with their style in them."""

_CSP = "content-security-policy"
_HEADERS = {
    _CSP: _OURS,
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",  # under no-referrer a browser hides whose form it sends
    "x-content-type-options": "nosniff",
}
_ASSETS = {"desk.css": "text/css", "desk.js": "text/javascript"}


class Job:
    def __init__(self, action: Action, form: Form, *, folder: Path, passphrase: str) -> None:
        self.command, self.code = action.name, cast("int | None", None)
        self.form = {x.option: form[x.option] for x in action.asks if x.option in form}
        self.step, self.lines = list[str](), deque[str](maxlen=_MOST_LINES)
        told = {"COBASIS_PASSPHRASE_FILE": "/dev/stdin", PROGRESS: "lines", "PYTHONUTF8": "1"}
        ours = [sys.executable, "-P", "-m", "cobasis"]  # -P: no code out of the folder
        line = [*ours, *action.line(form)]
        pipes: Any = {"stdin": PIPE, "stdout": PIPE, "stderr": STDOUT}
        self.child = Popen(line, cwd=folder, env={**os.environ, **told}, **pipes)  # noqa: S603
        Thread(target=self._follow, args=(passphrase,)).start()

    def _follow(self, passphrase: str) -> None:
        """Hand over the passphrase, and take down what the command says."""
        with self.child as child:
            with suppress(BrokenPipeError), cast("Any", child.stdin) as pipe:
                pipe.write(f"{passphrase}\n".encode())
            for data in cast("Any", child.stdout):
                line = data.decode("utf-8", "replace").rstrip()
                if line.count("\t") == 2:  # noqa: PLR2004 -- as `progress` writes them
                    self.step = line.split("\t")
                else:
                    self.lines.append(line)
        self.code = child.returncode


class Desk:
    """Answers one browser on this machine, and nobody else."""

    def __init__(
        self, topics: Callable[[], Mapping[str, Callable[[], Topic]]], *, start: str = ""
    ) -> None:
        self._topics, self._jobs, self._turn = topics, dict[str, Job](), Lock()
        self.token, self._until = secrets.token_urlsafe(32), time.monotonic() + _SECONDS
        self._session, self._form_code = "", secrets.token_urlsafe(32)
        # a browser shows a host's cookie to all its ports, but under one path alone
        self._at, self._start, self._hosts = f"/{secrets.token_urlsafe(16)}", start, set[str]()

    def open(self) -> None:
        """Listen on this machine alone, and show the page until Ctrl-C."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = f"{self.called(listener.getsockname()[1])}/#{self.token}"
            typer.echo(f"Open {address}\nIt works once, for ten minutes. Ctrl-C ends it.", err=True)
            if sys.platform != "linux" or {"DISPLAY", "WAYLAND_DISPLAY"} & {*os.environ}:
                webbrowser.open(address)
            config = uvicorn.Config(self, proxy_headers=False, **PLAIN)
            uvicorn.Server(config).run(sockets=[listener])

    def called(self, port: int) -> str:
        """Answer to a port's names from now on; return the address."""
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        return f"http://127.0.0.1:{port}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 -- ASGI
        """Answer whoever calls this listener by its own name; nobody keeps the answer."""
        request = Request(scope, receive)
        answer = await self._answer(request)
        for name, value in _HEADERS.items():
            answer.headers.setdefault(name, value)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        """Read a form, if one of our own pages sends it."""
        host, data = request.headers.get("host", ""), bytearray()
        if host not in self._hosts:
            return _refused("This is another host.", status=421)
        if request.method == "POST":
            site = request.headers.get("sec-fetch-site", "same-origin")
            if (request.headers.get("origin"), site) != (f"http://{host}", "same-origin"):
                return _refused("Another page has sent this form.")
            async for piece in request.stream():
                data += piece
                if len(data) > _MOST_BYTES:
                    return _refused("This form is too long.", status=413)
        form = parse_qs(data.decode("utf-8", "replace"))
        return await run_sync(self._reply, request, form)

    def _reply(self, request: Request, form: Form) -> Response:
        """Answer a request; one without the cookie gets the way in, and no more."""
        _, first, *rest = request.scope["path"].split("/")  # an address ends at a #
        if first in _ASSETS:
            return Response(template(first).render(), media_type=_ASSETS[first])
        if request.method == "POST" and first == "token":
            return self._enter(form.get("token", [""])[0])
        if f"/{first}" != self._at:
            return _shown("desk_login.html", status=404 if first else 200)
        if not (self._session and _same(request.cookies.get("cobasis", ""), self._session)):
            return _refused("Come by the address that was printed, or start the page anew.")
        try:
            return self._inside(request.method, [*rest, ""], form)
        except (CobasisError, OSError) as error:
            return _refused(f"{type(error).__name__}: {error}", status=409)

    def _enter(self, token: str) -> Response:
        """Take the token once, in time; one that comes twice ends what it began."""
        with self._turn:
            if not _same(token, self.token) or time.monotonic() > self._until:
                return _refused("This address is wrong, or too old. Start the page anew.")
            if self._session:
                self._session, self._until = "", 0.0
                return _refused("This address was used before, so all is closed. Start it anew.")
            self._session = secrets.token_urlsafe(32)
        answer, path = RedirectResponse(f"{self._at}/{self._start}", 303), f"{self._at}/"
        answer.set_cookie("cobasis", self._session, path=path, httponly=True, samesite="strict")
        return answer

    def _inside(self, method: str, parts: list[str], form: Form) -> Response:
        (name, word), topics, flaw = parts[:2], self._topics(), ""
        told: dict[str, Any] = {"up": f"{self._at}/{self._start}", "word": word, "form": form}
        if not name:
            return _shown("desk_index.html", topics=_summaries(topics), **told)
        topic, job = topics[name]() if name in topics else None, self._jobs.get(name)
        told["at"] = at = f"{self._at}/{quote(name, safe='')}"
        if topic is None or word not in {*topic.pages, *topic.actions}:
            if job and job.command == word:  # as a signature, which nobody needs twice
                return RedirectResponse(at, 303)
            return _refused("There is no such page.", status=404, **told)
        told |= {"topic": topic, "job": job}
        if job and job.command == word and job.code:
            told["form"] = form or job.form
        if method == "POST" and word in topic.actions:
            flaw = self._begin(name, word, topic, form)
            if not flaw:
                return RedirectResponse(f"{at}/{word}", 303)
        if word in topic.pages:
            text = topic.pages[word](**told)
            # only our templates write a style: all that others wrote is escaped
            return HTMLResponse(text, headers={} if "<style>" not in text else {_CSP: _DRAWN})
        told |= {"action": topic.actions[word], "code": self._form_code, "flaw": flaw}
        return _shown("desk_action.html", status=409 if flaw else 200, **told)

    def _begin(self, name: str, word: str, topic: Topic, form: Form) -> str:
        """Begin what a button does; say why not, where nothing was done."""
        action, said = topic.actions[word], {key: each[0] for key, each in form.items()}
        passphrase = said.get("passphrase", "")
        if not _same(said.get("code", ""), self._form_code):
            return "This form is of an earlier page. Look at this one, and send it again."
        if not _same(said.get("stands", ""), topic.stands):
            return "Something has changed since this page was shown. Look, and send it again."
        if action.typed and said.get("typed", "") not in action.typed:
            return f"Type the name, {' or '.join(action.typed)}, as it is written here."
        if action.typed and not passphrase:
            return "Type the passphrase of the key."
        with self._turn:
            if name in self._jobs and self._jobs[name].code is None:
                return "A command is at work here. Wait for its end."
            self._jobs[name] = Job(action, form, folder=topic.folder, passphrase=passphrase)
        return ""


def _refused(why: str, *, status: int = 403, **told: object) -> Response:
    return _shown("desk_refused.html", status=status, why=why, **told)


def _shown(name: str, *, status: int = 200, **told: object) -> Response:
    return HTMLResponse(template(name).render(**told), status_code=status)


def _same(one: str, other: str) -> bool:
    return compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _summaries(topics: Mapping[str, Callable[[], Topic]]) -> Iterator[tuple[str, str, str]]:
    """Yield each topic's name, title and line; no title and why, where it cannot be read."""
    for name, read in topics.items():
        try:
            topic = read()
            yield name, topic.title, topic.line
        except (CobasisError, OSError) as error:  # as a folder that another user made
            yield name, "", str(error)
