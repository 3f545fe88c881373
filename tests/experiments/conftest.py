"""Tiny studies of our own, and results that nobody measured."""

import gzip
import hashlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import experiments.studies
import numpy as np
import pytest
from experiments.harness import command, models, runner, store, study
from experiments.harness.store import Cell, Results
from experiments.harness.study import Published, Study, key

STUDIES = {
    "quick": """
        def run(*, data, l, repeat):
            value = float(np.random.default_rng([SEED, repeat, l]).normal(90, 1))
            return {"odc/mlp": value, "odc/seconds": time.time()}
        CELLS = [{"data": "toy", "l": l} for l in (2, 4, 8)]
        """,
    "needing": """
        def run(*, file, repeat, **_):
            read_verified(Source(path=file, sha256="0", origin="the toy shop's file"))
            return {"odc": 1.0}
        CELLS = [{"file": "a.csv", "l": l} for l in (1, 2)] + [{"file": "b.csv", "l": 1}]
        """,
    "broken": """
        def run(*, how, repeat):
            raise ZeroDivisionError("by no means")
        CELLS = [{"how": "raises"}]
        """,
}
HEAD = """\
'A toy.\\n\\nNone.'
import os, time
import numpy as np
from experiments.data.sources import Source, read_verified
from experiments.harness.study import SEED, Study
"""
TAIL = """
STUDY = Study(source="nobody", unit="%", cells=CELLS, repeats=2)
"""


def write(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").touch()
    for name in names:
        lines = [line[8:] for line in STUDIES[name].splitlines()]
        (folder / f"{name}.py").write_text(HEAD + "\n".join(lines) + TAIL)


@pytest.fixture
def command_here(tmp_path, monkeypatch, capsys):
    """Return what runs the command in this process, on studies of our own, and what it said."""

    def run(*arguments, status=0):
        monkeypatch.setattr(sys, "argv", ["experiment", *arguments])
        assert command.main() == status
        return capsys.readouterr().err

    def with_studies(*names):
        write(tmp_path / "studies", *names)
        return run

    monkeypatch.setattr(experiments.studies, "__path__", [str(tmp_path / "studies")])
    monkeypatch.setattr(study, "STUDIES", tmp_path / "studies")
    for module, name in product((command, store), ("RECORDED", "WORK")):
        monkeypatch.setattr(module, name, tmp_path / name.lower())
    monkeypatch.setattr(runner, "worker", lambda: ThreadPoolExecutor(1))
    monkeypatch.setattr(os, "environ", {k: v for k, v in os.environ.items() if "COBASIS" not in k})
    yield with_studies
    for name in STUDIES:
        sys.modules.pop(f"experiments.studies.{name}", None)


def toy(**changed):
    cells = [
        {"data": data, "condition": condition}
        for data in ("mnist", "adult")
        for condition in ("any", "samespan", "diffspan")
    ]
    published = {
        "mnist/any/central": Published(value=96.0, margin=0.1),
        "mnist/samespan/odc": Published(value=95.0, margin=0.1),
        "mnist/diffspan/odc": Published(value=90.0, margin=0.1),
        "adult/diffspan/odc": Published(value=80.0),
        "adult/diffspan/gopp": Published(value=70.0),
    }
    asked = {"title": "A toy | table", "source": "nobody", "settings": "All open.", "unit": "%"}
    asked |= {"cells": cells, "run": None, "published": published, "repeats": 3}
    return Study(**{**asked, **changed})


def filled(study, folder, *, name="toy", repeats=3):
    """Return results that agree, differ and differ with a reason, as the toy's keys say."""
    results = Results(name, folder=folder)
    for settings in study.cells:
        for repeat in range(repeats):
            wiggle = 0.05 * (repeat - (repeats - 1) / 2)
            values = {"odc": 95.0 + wiggle, "whitened": 95.5 + wiggle, "odc, dealt out": 1.0}
            if settings.get("condition") == "any":
                values = {"central": 96.0 + wiggle}
            place = key(settings, str(repeat))
            cell = Cell(settings=settings, repeat=repeat, values=values, seconds=1.5, commit="abc")
            results.cells[place] = cell
    return results


@pytest.fixture(autouse=True)
def small(monkeypatch):
    network = {**models.MLP, "hidden_layer_sizes": (8,), "max_iter": 3}
    monkeypatch.setattr(models, "MLP", network)


@pytest.fixture
def placed(tmp_path, monkeypatch):
    """Return what puts made-up files where a loader looks, in place of a module's sources."""

    def put(module, name, *contents):
        known, made = getattr(module, name), []
        for source, content in zip(np.ravel(known), contents, strict=True):
            path = tmp_path / source.path
            path.parent.mkdir(parents=True, exist_ok=True)
            packed = gzip.compress(content, mtime=0) if path.suffix == ".gz" else content
            path.write_bytes(packed)
            made.append(replace(source, sha256=hashlib.sha256(packed).hexdigest()))
        monkeypatch.setenv("COBASIS_DATA", str(tmp_path))
        monkeypatch.setattr(module, name, tuple(made) if isinstance(known, tuple) else made[0])

    return put


@pytest.fixture
def toys():
    return toy


@pytest.fixture
def toy_results(tmp_path):
    def made(study, **options):
        return filled(study, tmp_path, **options)

    return made
