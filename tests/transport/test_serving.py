"""The command that serves, as a process: whose key, which certificate, and how it ends."""

import errno
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from asyncio.selector_events import BaseSelectorEventLoop
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest

from cobasis.transport import web
from cobasis.transport.certificate import make_certificate
from cobasis.transport.index import alone, forget_index
from transport.serving import PARTIES


def test_serve_refuses_what_cannot_serve_and_keeps_the_index(fresh):
    forget_index(folder := fresh.root / "lab")  # which leaves the lock alone
    index = folder / ".server/index.sqlite"
    index.touch()
    for words, by, told in (
        ("serve nowhere", "lab", "'nowhere' is no folder"),
        ("serve lab --certificate icu.toml", "lab", "go together"),
        ("serve lab --only web --listen 8443", "lab", "is no address like"),
        ("serve lab", "north", "'north' is a party, and a server has an analyst's"),
        ("serve lab --as south", "lab", "south"),
        ("serve lab --only worker", "lab", "--rebuild is the web half's"),
    ):
        assert told in fresh.typed(f"{words} --rebuild", by=by, code=2).output, words
    with alone(folder):
        fresh.typed("serve lab --rebuild", by="lab", code=2)
    assert index.exists()


def test_the_web_half_ends_with_its_worker_and_shows_a_certificate_that_is_renewed(fresh):
    with as_process(fresh) as served:
        [web] = Path(f"/proc/{served.pid}/task/{served.pid}/children").read_text().split()
        assert "pyrage" not in Path(f"/proc/{web}/maps").read_text()  # nothing there opens a seal
        other, key = make_certificate(fresh.root / "other")
        shutil.copy(key, fresh.key)
        shutil.copy(other, fresh.certificate)
        assert asked(fresh, certificate=other, tries=300)
        fresh.certificate = other


def typed_apart(world, words, *, by, **pipes):
    told = {"HOME": str(world.root / f"home-{by}"), "PASSPHRASE_FILE": "passphrase"}
    env = {**os.environ, **{f"COBASIS_{word}": each for word, each in told.items()}}
    return subprocess.Popen([sys.executable, "-m", "cobasis", *words.split()], env=env, **pipes)


@contextmanager
def as_process(world):
    """What the analyst types; it is killed, with which the half that answers ends."""
    words = f"serve lab --listen 127.0.0.1:{world.port}"
    with typed_apart(world, words, by="lab", stderr=subprocess.DEVNULL) as served:
        try:
            assert asked(world, tries=300)
            yield served
        finally:
            served.kill()
    for _ in range(100):
        if not asked(world):
            return
        time.sleep(0.1)
    pytest.fail("the web half goes on alone")


@pytest.mark.soak
def test_five_processes_carry_a_round_though_the_server_is_killed(fresh):
    quiet = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)

    def begin(name):
        words = f"go {name}/icu.toml {name}/data.csv --yes --signed-by Officer --wait 120"
        return typed_apart(fresh, words, by=name, **quiet)

    parties = {name: begin(name) for name in PARTIES}
    for _ in range(3):
        with as_process(fresh):
            time.sleep(4)
    with as_process(fresh):
        while parties:
            time.sleep(0.5)
            for name, party in [*parties.items()]:
                if (code := party.poll()) == 0:
                    del parties[name]
                elif code is not None:  # the line was gone for longer than a command tries
                    assert code == 4, name
                    parties[name] = begin(name)
    assert len({fresh.model(name) for name in PARTIES}) == 1


@pytest.mark.parametrize("wrong", ["key", "number", "port", "second"])
def test_a_web_half_that_cannot_begin_says_why_in_a_line(fresh, tmp_path, wrong):
    key = make_certificate(tmp_path)[1] if wrong == "key" else fresh.key
    first = alone(fresh.root / "lab") if wrong == "second" else nullcontext()
    with socket.create_server(("127.0.0.1", 0)) as taken, first:
        port = {"number": 99999, "port": taken.getsockname()[1]}.get(wrong, 0)
        words = map(str, ("lab", "127.0.0.1", port, fresh.certificate, key, "beside"))
        line = [sys.executable, "-m", "cobasis.transport.web", *words]
        pipes = dict.fromkeys(("stdin", "stderr"), subprocess.PIPE)
        with subprocess.Popen(line, text=True, **pipes) as web_half:
            assert web_half.wait(60) > 0  # beside a worker that lives; a crash is -6
            [told] = web_half.stderr.read().splitlines()
    wanted = {"key": "key values mismatch", "number": "0-65535", "port": "already in use"}
    assert wanted.get(wrong, "another process writes to the index of 'lab'") in told


def test_a_crowd_waits_outside_and_lines_that_stall_keep_nobody_out(fresh, monkeypatch):
    monkeypatch.setattr(web, "_PLACES", 2)
    monkeypatch.setattr(web, "_SECOND", 30)
    with fresh.serving(), stalled(fresh, 2) as lines:
        with pytest.raises(httpx.ConnectTimeout):
            asked(fresh, timeout=1)
        lines[0].close()
        assert asked(fresh)  # its place is free
    monkeypatch.setattr(web, "_SECOND", 0.1)
    with fresh.serving(), stalled(fresh, 20):
        assert asked(fresh)  # behind ten turns of two


def test_the_web_half_takes_lines_in_again_once_it_can(fresh, monkeypatch):
    monkeypatch.setattr(web, "_SECOND", 0.1)
    accept, refused = BaseSelectorEventLoop.sock_accept, []

    async def full(loop, listening):
        if len(refused) < 3:
            refused.append(listening)
            raise OSError(errno.EMFILE, "too many open files")
        return await accept(loop, listening)

    monkeypatch.setattr(BaseSelectorEventLoop, "sock_accept", full)
    with fresh.serving() as server:
        server.held = Mock()
        assert asked(fresh)
    assert len(refused) == 3
    server.held.release.assert_called_once()  # a server that begins now need not wait


@contextmanager
def stalled(fresh, count):
    with ExitStack() as stack:
        at = ("127.0.0.1", fresh.port)
        yield [stack.enter_context(socket.create_connection(at)) for _ in range(count)]


def asked(fresh, *, certificate=None, timeout=20, tries=1):
    believing = ssl.create_default_context(cafile=certificate or fresh.certificate)
    url = f"https://localhost:{fresh.port}/healthz"
    for _ in range(tries):
        with suppress(httpx.NetworkError, httpx.RemoteProtocolError):  # ended while it answers
            return httpx.get(url, verify=believing, timeout=timeout).json()["healthy"]
        time.sleep(0.1)
    return False
