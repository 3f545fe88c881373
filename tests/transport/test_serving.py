"""The command that serves, as a process: whose key, which certificate, and how it ends."""

import shutil
import signal
import ssl
import subprocess
import sys
import time

import httpx
import pytest

from cobasis.transport.certificate import make_certificate
from transport.serving import World


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    return World(tmp_path, monkeypatch)


def test_serve_refuses_what_cannot_serve(fresh):
    for words, by, told in (
        ("serve nowhere", "lab", "'nowhere' is no folder"),
        ("serve lab --certificate icu.toml", "lab", "go together"),
        ("serve lab --only web --listen 8443", "lab", "is no address like"),
        ("serve lab --only worker", "north", "'north' is a party, and a server has an analyst's"),
        ("serve lab --only worker --as south", "lab", "south"),
    ):
        assert told in fresh.typed(words, by=by, code=2).output, words


def test_the_web_half_ends_with_its_worker_and_shows_a_certificate_that_is_renewed(fresh):
    """What keys are kept under takes seconds, so the worker stands in for itself here."""
    script = (
        "import sys\\nfrom pathlib import Path\\nfrom cobasis.cli.serve import _beside_web\\n"
        "from cobasis.transport.worker import Worker\\n"
        "Worker.step = lambda self: None\\n"
        "made = Worker(folder=Path('lab'), identity=None, runs=True,"
        " certificate=Path('lab/.server/server.crt'))\\n"
        "while _beside_web(made, sys.argv[1], Path('lab/.server/server.key')): print('again')\\n"
    )
    at = f"127.0.0.1:{fresh.port}"
    line = [sys.executable, "-uc", script.replace("\\n", "\n"), at]
    served = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    try:
        assert healthy(fresh, fresh.certificate)
        other, key = make_certificate(fresh.root / "other", ["localhost"])
        shutil.copy(key, fresh.key)
        shutil.copy(other, fresh.certificate)
        assert served.stdout.readline() == "again\n"
        assert healthy(fresh, other)
    finally:
        served.send_signal(signal.SIGKILL)
        served.wait()
        served.stdout.close()
    for _ in range(100):
        try:
            httpx.get(f"https://localhost:{fresh.port}/healthz", verify=False)  # noqa: S501
        except httpx.ConnectError:
            return
        time.sleep(0.1)
    pytest.fail("the web half goes on alone")


def healthy(fresh, certificate):
    """Whether a server with that certificate answers, within some seconds."""
    believing = ssl.create_default_context(cafile=certificate)
    for _ in range(100):
        try:
            found = httpx.get(f"https://localhost:{fresh.port}/healthz", verify=believing)
        except httpx.ConnectError:
            time.sleep(0.1)
        else:
            return found.json()["healthy"]
    return False
