"""The tutorial's round by processes of their own: the server, and one command a party."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cobasis.bundle.transcript import verify_transcript
from transport.serving import free_port
from walk.pages import TUTORIAL

PARTIES = ("north", "south", "east", "late")
TERMS = (
    "--columns public.csv --i-may-publish --leave-out none --label sick --id patient --task "
    "classification --classes no,yes --n-components 6 --model logistic --models logistic,mlp "
    "--holdout 0.2 --minimum-parties 2 --fewest-rows 10 --retention-days 90 --yes --purpose tumours"
)


class House:
    """Folders of the tutorial's practice data, each with a home; commands are processes."""

    def __init__(self, root):
        self.root, self.port = root, free_port()
        passphrase = root / "passphrase"
        passphrase.touch(mode=0o600)
        passphrase.write_text("correct horse\n")
        self.told = {**os.environ, "COBASIS_PASSPHRASE_FILE": str(passphrase)}
        page = (TUTORIAL / "party.md").read_text()
        [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        subprocess.run([sys.executable, "-c", code], cwd=root, check=True)

    def folder(self, name):
        return self.root / "practice" / name

    def begin(self, name, words, **more):
        env = {**self.told, "COBASIS_HOME": str(self.folder(name) / "home")}
        line = [sys.executable, "-m", "cobasis", *words.split()]
        return subprocess.Popen(line, cwd=self.folder(name), env=env, text=True, **more)

    def type(self, name, words):
        assert self.begin(name, words, stdout=subprocess.DEVNULL).wait() == 0, (name, words)

    def agree(self):
        for name in (*PARTIES, "lab"):
            self.type(name, f"key new {name}" + (" --analyst" if name == "lab" else ""))
            (self.folder("north") / f"{name}.pub").write_bytes(
                (self.folder(name) / f"{name}.pub").read_bytes()
            )
        pubs = " ".join(f"{name}.pub" for name in PARTIES)
        server = f"https://localhost:{self.port}"
        made = f"agreement new icu.toml {pubs} --analyst lab.pub --server {server} {TERMS}"
        self.type("north", made)
        text = (self.folder("north") / "icu.toml").read_bytes()
        for name in (*PARTIES[1:], "lab"):
            (self.folder(name) / "icu.toml").write_bytes(text)
        self.type("lab", "sign icu.toml --yes")

    def serve(self):
        with (self.folder("lab") / "log").open("a") as log:
            return self.begin("lab", f"serve . --listen 127.0.0.1:{self.port}", stderr=log)

    def model(self, name):
        [path] = self.folder(name).glob("home/transcripts/*/*/transcript.jsonl")
        found = [each for each in verify_transcript(path).entries if each.event == "accepted"]
        return found[-1].told["model_sha256"]


@pytest.mark.soak
def test_five_processes_carry_the_tutorials_round_though_the_server_is_killed(tmp_path: Path):
    house = House(tmp_path)
    house.agree()
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
    assert len({house.model(name) for name in PARTIES}) == 1
