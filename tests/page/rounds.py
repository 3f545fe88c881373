"""The page about a round, as a browser without scripts sees it."""

import re
import time
from types import SimpleNamespace

import anyio
import httpx

from cobasis.cli.desk import Desk

PORT, PASSPHRASE = 8000, "correct horse"
OWN = f"http://127.0.0.1:{PORT}"


class Browser:
    """Asks an application without a socket, keeps cookies, and runs no script."""

    def __init__(self, app):
        carrier = httpx.ASGITransport(app)
        self.client = httpx.AsyncClient(transport=carrier, base_url=OWN, follow_redirects=True)
        self.cookies = self.client.cookies

    def get(self, path, **told):
        return anyio.run(lambda: self.client.get(path, **told))

    def post(self, path, **told):
        return anyio.run(lambda: self.client.post(path, **told))


class Visit:
    def __init__(self, typed, patch, *, words="page .", by="lab"):
        desks = []
        patch.setattr(Desk, "open", lambda desk, **_: desks.append(desk))
        typed(words, by=by)
        [self.desk] = desks
        self.desk.called(PORT)
        self.browser = Browser(self.desk)

    def enter(self, token=None):
        told = {"token": self.desk.token if token is None else token}
        return self.browser.post("/token", data=told, headers={"origin": OWN})

    def inside(self):
        answer = self.enter()
        assert answer.status_code == 200, answer.text
        self.at = str(answer.url).removeprefix(OWN).rstrip("/")
        return self

    def get(self, path=""):
        return self.browser.get(f"{self.at}/{path}")

    def form(self, path, **told):
        text = self.get(path).text
        secret = dict(re.findall(r'name="(code|stands)" value="([^"]*)"', text))
        typed = re.search(r'for="typed">[^:]*: ([^ <]+)', text)
        name = {"typed": typed[1], "passphrase": PASSPHRASE} if typed else {}
        return {**secret, **name, **told}

    def send(self, path, *, origin=OWN, headers=None, **told):
        given = {"origin": origin} if origin else {}
        form = self.form(path, **told)
        return self.browser.post(
            f"{self.at}/{path}", data=form, headers={**given, **(headers or {})}
        )

    def do(self, path, **told):
        job = self.ended(self.send(path, **told))
        assert job.code == 0, job.lines
        return job

    def ended(self, answer):
        assert answer.status_code == 200, answer.text
        [job] = self.desk._jobs.values()
        until = time.monotonic() + 120
        while job.code is None and time.monotonic() < until:
            time.sleep(0.05)
        return job


def at_work(command, *lines):
    step = ["training <b>", "3", "10"]
    return SimpleNamespace(command=command, code=None, step=step, lines=lines, form={})
