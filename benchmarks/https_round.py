"""A whole round of 50 parties over HTTPS, one command each, beside the same round by files.

Both ways each party has a thread in one process, and keys are opened beforehand: what protects them
takes a second a command, and files need three commands. The server is a process of its own.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from inspect import unwrap
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_digits

from benchmarks import goals
from benchmarks.goals import written
from benchmarks.inbox import HOST, LAB, free_port, running
from benchmarks.timing import seconds
from cobasis.cli.accept import accept
from cobasis.cli.go import go
from cobasis.cli.main import app
from cobasis.cli.options import Given, Owner
from cobasis.cli.receive import receive
from cobasis.cli.run import run
from cobasis.cli.send import Asked, send
from cobasis.cli.sign import sign
from cobasis.keys.identity import Identity, save_identity
from cobasis.transport.inbox import STATEMENT, STATEMENTS

PARTIES, ROUNDS, WAIT = 50, 3, 600
TERMS = "--i-may-publish --leave-out none --id id --label digit --task classification --yes"
MORE = "--n-components 16 --model ridge --models ridge --holdout 0.2 --retention-days 9"
COLUMNS = [f"p{at}" for at in range(64)]
ASKED = Asked(signed_by=["Officer"], checked=COLUMNS, yes=True)  # pixels at the edge are rare


def measure(*, quick: bool) -> dict[str, Any]:
    parties, rounds = (8, 1) if quick else (PARTIES, ROUNDS)
    runs: dict[str, list[float]] = {"files": [], "https": []}
    for turn in range(rounds):
        for way in ("files", "https") if turn % 2 == 0 else ("https", "files"):
            with tempfile.TemporaryDirectory(prefix="cobasis-bench-") as name:
                runs[way].append(House(Path(name), parties=parties).took(way))
    ratios = np.divide(runs["https"], runs["files"]).tolist()
    what = f"digits over {parties} parties: a whole round over HTTPS, one `go` each, against files"
    where = ", ".join(map(written, ratios))
    return {**runs, "goals": [goals.goal(what, median(ratios), most=2, unit="x", where=where)]}


class House:
    """A folder and a home for each party, an agreement that all have, and the analyst's folder."""

    def __init__(self, root: Path, *, parties: int) -> None:
        self.root, self.port, self.lab = root, free_port(), root / "lab"
        self.people = {f"p{at:02d}": Identity.new(f"p{at:02d}") for at in range(parties)}
        (root / "passphrase").touch(mode=0o600)
        (root / "passphrase").write_text("correct horse", encoding="utf-8")
        rows, digits = load_digits(return_X_y=True)
        head = ",".join(["id", "digit", *COLUMNS])
        dealt = {"header": head, "delimiter": ",", "comments": "", "fmt": "%d"}
        table = np.column_stack([range(len(rows)), digits, rows])
        for at, (name, who) in enumerate({**self.people, "lab": LAB}.items()):
            (root / name / "home" / "keys").mkdir(parents=True)
            (root / name / "home" / "keys" / f"{name}.key").touch(mode=0o600)
            (root / f"{name}.pub").write_text(who.public.text(), encoding="utf-8")
            np.savetxt(root / name / "data.csv", table[at::parties], **dealt)
        np.savetxt(root / "public.csv", table, **dealt)
        key = self.lab / "home" / "keys" / "lab.key"
        key.unlink()
        save_identity(LAB, key, passphrase="correct horse")  # noqa: S106 -- of a benchmark
        with self.opened():
            self.agree()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let nobody wait for a key to be opened."""
        known = {**self.people, "lab": LAB}
        with patch("cobasis.cli.options.load_identity", lambda path, **_: known[path.stem]):
            yield

    def agree(self) -> None:
        """Make the agreement as its author, give it to everybody, and sign it as the analyst."""
        author, pubs = self.root / "p00", [f"{self.root / name}.pub" for name in self.people]
        words = f"--server https://localhost:{self.port} --minimum-parties {len(pubs)}".split()
        words += f"--analyst {self.root}/lab.pub --columns {self.root}/public.csv".split()
        words += self.keys_of("p00")
        line = ["agreement", "new", f"{author / 'icu.toml'}", *pubs, *words, *TERMS.split()]
        app([*line, *MORE.split(), "--purpose", "bench"], standalone_mode=False)
        for name in (*self.people, "lab"):
            if name != author.name:
                shutil.copy(author / "icu.toml", self.root / name)
        self.type(sign, "lab", agreement=self.lab / "icu.toml", yes=True)

    def keys_of(self, name: str) -> list[str]:
        """Return the words of a command line that say whose keys it takes."""
        return f"--home {self.root}/{name}/home --passphrase-file {self.root}/passphrase".split()

    def took(self, way: str) -> float:
        with self.opened():
            took = self.over_https() if way == "https" else seconds(self.by_files)
        if len([*self.root.glob("p*/*.card.html")]) != len(self.people):
            raise RuntimeError("not everybody has the model")
        return took

    def type(self, command: Callable[..., None], name: str, **told: object) -> None:
        home, passphrase = self.root / name / "home", self.root / "passphrase"
        unwrap(command)(owner=Owner(home=home, name=name, passphrase_file=passphrase), **told)

    def each(self, act: Callable[[str, Path], None]) -> None:
        with ThreadPoolExecutor(len(self.people)) as pool:
            [*pool.map(lambda name: act(name, self.root / name), self.people)]

    def over_https(self) -> float:
        """Let every party type one command, beside a server."""
        words = ["cobasis", "serve", f"{self.lab}", "--listen", f"{HOST}:{self.port}"]
        words += self.keys_of("lab")

        def one(name: str, here: Path) -> None:
            words = [here / "icu.toml", here / "data.csv"]
            self.type(go, name, asked=ASKED, words=words, wait=WAIT)

        with running(*words, port=self.port):
            while not [*(self.lab / STATEMENTS).glob(f"*{STATEMENT}")]:
                time.sleep(0.01)
            return seconds(lambda: self.each(one))

    def by_files(self) -> None:
        """Let every party sign, send and accept, and carry the files."""
        sealed, inbox = self.lab / "icu.sealed.toml", self.root / "inbox"
        inbox.mkdir()

        def signs(name: str, here: Path) -> None:
            if name != "p00":
                shutil.move(self.root / "p00" / f"{name}.secret", here)
            self.type(sign, name, agreement=here / "icu.toml", yes=True)
            shutil.copy(here / f"{name}.sig", inbox)

        def sends(name: str, here: Path) -> None:
            shutil.copy(sealed, here)
            given = Given(words=[here / "icu.toml", here / "data.csv"])
            self.type(send, name, asked=ASKED, given=given)
            shutil.copy(here / f"icu.{name}.1-upload", inbox)

        def accepts(name: str, here: Path) -> None:
            reply = self.lab / "outbox" / f"icu.{name}.1-return"
            came = [shutil.copy(each, here) for each in (self.lab / "icu.news", reply)]
            self.type(accept, name, words=[here / "icu.toml", *map(Path, came)])

        self.each(signs)
        self.type(receive, "lab", words=[self.lab / "icu.toml", inbox])
        self.each(sends)
        self.type(receive, "lab", words=[self.lab / "icu.toml", inbox])
        self.type(run, "lab", agreement=self.lab / "icu.toml", yes=True)
        self.each(accepts)
