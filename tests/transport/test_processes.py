"""The tutorial's round by processes of their own: the server, and one command a party."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from transport.serving import free_port, last_model
from walk.world import ANALYST, AUTHOR, PARTIES, ROLES, World

TERMS = (
    "--columns public.csv --i-may-publish --leave-out none --label sick --id patient --task "
    "classification --classes no,yes --n-components 6 --model logistic --models logistic,mlp "
    "--holdout 0.2 --minimum-parties 2 --fewest-rows 10 --retention-days 90 "
    "--deadline 2099-12-31 --purpose tumours --yes"
)


class House(World):
    """The tutorial's folders, in which everybody agreed; from then on commands are processes."""

    def __init__(self, root):
        super().__init__(root / "world")
        self.make_folders()
        self.port = free_port()
        for role in ROLES:
            self(role, f"cobasis key new {role}" + " --analyst" * (role == ANALYST))
            self.send(role, f"{role}.pub", "the author", None)
        server = f"https://localhost:{self.port}"
        self(AUTHOR, f"cobasis agreement new icu.toml *.pub --server {server} {TERMS}")
        self.send(AUTHOR, "icu.toml", "everybody else", None)
        self(ANALYST, "cobasis sign icu.toml --yes")

    def begin(self, role, words, **more):
        folder = self.folder(role)
        told = {"COBASIS_HOME": str(folder / "home"), "COBASIS_PASSPHRASE_FILE": "pass"}
        line = [sys.executable, "-m", "cobasis", *words.split()]
        return subprocess.Popen(line, cwd=folder, env={**os.environ, **told}, text=True, **more)

    def serve(self):
        with (self.folder(ANALYST) / "log").open("a") as log:
            return self.begin(ANALYST, f"serve . --listen 127.0.0.1:{self.port}", stderr=log)


@pytest.mark.soak
def test_five_processes_carry_the_tutorials_round_though_the_server_is_killed(tmp_path: Path):
    house = House(tmp_path)
    server = house.serve()
    words = "go icu.toml data.csv --yes --signed-by Officer --wait 120"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    parties = {name: house.begin(name, words, **quiet) for name in PARTIES}
    try:
        for _ in range(3):
            time.sleep(6)
            os.kill(server.pid, signal.SIGKILL)  # the worker, with which the other half ends
            server.wait()
            time.sleep(1.5)
            server = house.serve()
        while parties:
            time.sleep(0.5)
            for name, party in [*parties.items()]:
                if (code := party.poll()) == 0:
                    del parties[name]
                elif code is not None:  # the line was gone for longer than a command tries
                    assert code == 4, name
                    parties[name] = house.begin(name, words, **quiet)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
    assert len({last_model(house.folder(name) / "home") for name in PARTIES}) == 1
