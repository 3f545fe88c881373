"""A server, its worker and the parties' clients, over real TLS on this machine."""

import shutil
import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

from cli import round_by_commands
from cli.round_by_commands import NAMES, PUBS, Typed, write_table
from cobasis.bundle.agreement_file import read_agreement
from cobasis.bundle.transcript import verify_transcript
from cobasis.transport.certificate import make_certificate
from cobasis.transport.client import Remote
from cobasis.transport.server import Server
from cobasis.transport.web import PLAIN, WebServer
from cobasis.transport.worker import Worker

TERMS = f"{round_by_commands.TERMS} --model ridge --yes"
ROWS = "--n-components 3 --models ridge,logistic --minimum-parties 2"
PARTIES = ("north", "south", "east")  # first who has written the agreement
SIGNED = "--wait 0 --signed-by Officer"
STEP = 50_000  # bytes of a part, for tests with `quickly`


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class World:
    """A folder for each role; keys and agreement made, which names a server."""

    def __init__(self, root, monkeypatch, *, terms=ROWS, agreed=TERMS, names=NAMES):
        self.root, self.port = root, free_port()
        root.mkdir(exist_ok=True)
        self.typed = Typed(root, monkeypatch)
        self.typed.keys(names, officers=("officer",))  # whom some terms name
        write_table(root / "public.csv", seed=0)
        server = f"--server https://localhost:{self.port}"
        self.typed(f"agreement new icu.toml {PUBS} {agreed} {server} {terms}")
        for seed, name in enumerate((*names, "lab"), start=1):
            (root / name).mkdir()
            shutil.copy(root / "icu.toml", root / name)
            write_table(root / name / "data.csv", seed=seed)
        for secret in root.glob("*.secret"):
            shutil.move(secret, root / "north")
        self.typed("sign lab/icu.toml -o lab/lab.sig --yes", by="lab")
        self.lab = root / "lab"
        self.certificate, self.key = make_certificate(self.lab / ".server")

    @property
    def agreement(self):
        return read_agreement(self.root / "icu.toml").agreement

    def identity(self, name):
        return self.typed.identity(name)

    def worker(self, *, runs=True):
        return Worker(
            folder=self.lab, identity=self.identity("lab"), runs=runs, certificate=self.certificate
        )

    def remote(self, name, *, ca=None):
        return Remote(self.agreement, name=name, sign=self.identity(name).sign, ca=ca)

    def go(self, name, more="--wait 0", **options):
        return self.typed(f"go {name}/icu.toml {name}/data.csv --yes {more}", by=name, **options)

    def model(self, name):
        """Which one somebody has accepted last."""
        [path] = (self.root / f"home-{name}").glob("transcripts/*/*/transcript.jsonl")
        found = [each for each in verify_transcript(path) if each.event == "accepted"]
        return found[-1].told["model_sha256"]

    def turn(self, worker, *, times=1, names=PARTIES, more=SIGNED):
        """Everybody types `go` and waits, and the worker looks; so many times."""
        for _ in range(times):
            for name in names:
                self.go(name, more, code=4)
            worker.step()

    def sealed(self):
        """Wait until the worker has sealed the agreement."""
        for _ in range(1000):
            if (self.lab / "icu.sealed.toml").exists():
                return
            time.sleep(0.02)
        pytest.fail("the agreement is not sealed")

    @contextmanager
    def serving(self, *, port=None, certificate=None, key=None):
        config = uvicorn.Config(
            Server(self.lab).app(),
            host="127.0.0.1",
            port=port or self.port,
            ssl_certfile=certificate or self.certificate,
            ssl_keyfile=key or self.key,
            timeout_graceful_shutdown=1,
            **PLAIN,
        )
        server = WebServer(config)
        thread = threading.Thread(target=server.answer)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), "the server did not start"
                time.sleep(0.01)
            yield server
        finally:
            server.should_exit = True
            thread.join()

    @contextmanager
    def working(self):
        ended = threading.Event()
        told = {"every": 0.05, "goes_on": lambda: not ended.is_set()}
        thread = threading.Thread(target=self.worker().work, kwargs=told)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
