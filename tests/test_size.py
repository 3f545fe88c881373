"""How large the package is, and how much of it one call passes through.

Only our own files count, and of a call only what runs in it, not what it imports. A name in <> is
a lambda's or a generator's; Python 3.12 has no frame of its own for a list's comprehension.
"""

import sys
from contextlib import contextmanager
from functools import cache

import numpy as np
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from cobasis import simulate
from cobasis.cli.main import app
from cobasis.cli.send import Asked
from party_side.sites import consortium, join
from sizes import SOURCE, WORDS, package_of, size_of, sizes, whole

BUDGETS = {  # of a package: lines, lines of code, files; raising one is a decision of its own
    "algorithms": (1_864, 1_128, 15),
    "analyst_side": (2_180, 1_770, 12),
    "bundle": (1_860, 1_410, 10),
    "cli": (4_210, 3_420, 24),
    "cobasis": (650, 320, 6),
    "disk": (520, 350, 5),
    "estimators": (800, 450, 4),
    "features": (1_360, 880, 7),
    "keys": (230, 180, 2),
    "linalg": (595, 378, 6),
    "models": (2_940, 2_120, 15),
    "party_side": (4_110, 3_320, 17),
    "privacy": (1_830, 1_090, 15),
    "protocol": (7_350, 5_080, 32),
    "report": (790, 640, 6),
    "statistics": (1_870, 1_420, 10),
    "tables": (820, 660, 4),
    "transport": (1_860, 1_450, 11),
    "vault": (970, 730, 5),
}
PARTS = {  # of the house: lines
    "tests": 31_000,
    "experiments and benchmarks": 10_920,
}
MOST_DOCSTRINGS = 0.16  # of the source's lines
BOUNDS = {  # of a call: what may be, and what was asked for; a step lowers the first
    "send without audit: files": (53, 60),
    "send without audit: functions": (344, 350),
    "send without audit: depth": (16, 16),
    "send without audit: functions, names in <> too": (456, 350),
    "send without audit: depth, names in <> too": (17, 16),
    "simulate and predict: files": (35, 35),
    "simulate and predict: functions": (180, 180),
    "simulate and predict: depth": (12, 12),
    "simulate and predict: functions, names in <> too": (229, 180),
    "simulate and predict: depth, names in <> too": (13, 12),
}


class Trace:
    """Notes every function of ours that is called, and how deep."""

    def __init__(self):
        self.named, self.all = set(), set()
        self.depth = self.depth_of_all = 0

    def __call__(self, frame, event, _):
        if event != "call" or not ours(frame.f_code.co_filename):
            return
        stack = []
        while frame is not None:
            stack.append(frame.f_code)
            frame = frame.f_back
        mine = [code for code in stack if ours(code.co_filename)]
        named = [code for code in mine if "<" not in code.co_name]
        self.all.add((mine[0].co_filename, mine[0].co_qualname))
        if named[:1] == mine[:1]:
            self.named.add((mine[0].co_filename, mine[0].co_qualname))
        self.depth = max(self.depth, len(named))
        self.depth_of_all = max(self.depth_of_all, len(mine))

    def figures(self, call):
        return {
            f"{call}: files": len({file for file, _ in self.named}),
            f"{call}: functions": len(self.named),
            f"{call}: depth": self.depth,
            f"{call}: functions, names in <> too": len(self.all),
            f"{call}: depth, names in <> too": self.depth_of_all,
        }


@cache
def ours(file):
    return file.startswith(str(SOURCE))


@contextmanager
def traced():
    """Trace what is called within; a tracer that was there before, as of coverage, comes back."""
    trace, before = Trace(), sys.getprofile()
    sys.setprofile(trace)
    try:
        yield trace
    finally:
        sys.setprofile(before)


def refuse_growth(found):
    grown = [f"{name}: {n} > {BOUNDS[name][0]}" for name, n in found.items() if n > BOUNDS[name][0]]
    assert not grown, f"make it smaller, or say why the bound is raised: {', '.join(grown)}"


def test_no_package_is_larger_than_its_budget():
    found = sizes(SOURCE, by=package_of)
    assert set(found) == set(BUDGETS)
    grown = {
        f"{name}, {word}": f"{found[name][word]} > {most}"
        for name, budget in BUDGETS.items()
        for word, most in zip(("lines", "code", "files"), budget, strict=True)
        if found[name][word] > most
    }
    assert grown == {}, "make it smaller, or say why the budget is raised"


def test_no_part_of_the_house_is_larger_than_its_budget():
    found = whole()
    assert {
        name: found[name]["lines"] for name, most in PARTS.items() if found[name]["lines"] > most
    } == {}
    assert found["src"]["docstrings"] <= MOST_DOCSTRINGS * found["src"]["lines"]


def test_the_count_tells_code_from_words(tmp_path):
    path = tmp_path / "small.py"
    path.write_text('"""Says\nwhat."""\n\n# why\nX = 1  # here\n', encoding="utf-8")
    assert [size_of(path)[word] for word in WORDS] == [5, 1, 2, 2, 1]


def test_a_party_sends_through_no_more_of_it_than_it_may(tmp_path, monkeypatch):
    """By the command, from table to sealed file; the audit, which only looks, is left out."""
    site = consortium(tmp_path, monkeypatch)
    monkeypatch.setattr(Asked, "about_audit", lambda *_: None)
    (tmp_path / "passphrase").touch(mode=0o600)
    (tmp_path / "passphrase").write_text("correct horse", encoding="utf-8")

    def send(name):
        (site.home(name) / "keys").mkdir(parents=True)
        (site.home(name) / "keys" / f"{name}.key").touch()
        join(site.session(name), site.secret_file(name))
        told = ("--home", site.home(name), "--passphrase-file", tmp_path / "passphrase")
        line = ("send", site.agreement_path, site.table(name), "--yes", *told)
        return [str(each) for each in line]

    south, north = send("south"), send("north")
    assert CliRunner().invoke(app, south).exit_code == 0  # imports all
    with traced() as trace:
        done = CliRunner().invoke(app, north)
    assert done.exit_code == 0, done.output
    refuse_growth(trace.figures("send without audit"))


def test_a_simulation_passes_through_no_more_of_it_than_it_may():
    X, y = load_iris(return_X_y=True)
    rows = {f"clinic-{i}": (X[i::4], y[i::4]) for i in range(4)}

    def predicted():
        done = simulate(rows, rng=np.random.default_rng(0), n_components=2)
        return done.parties["clinic-0"].predict(X)

    predicted()
    with traced() as trace:
        predicted()
    refuse_growth(trace.figures("simulate and predict"))
