"""A consortium whose agreement names a server: anew, or made once for tests that only ask."""

import shutil
from copy import copy

import pytest

from cli.round_by_commands import Typed
from cobasis.transport import client, wire
from transport.serving import STEP, World


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        made = World(tmp_path_factory.mktemp("world"), patch)
        made.worker().step()
        with made.serving():
            yield made


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """One as it was made, of which each test has a copy in the same place, at the same port."""
    with pytest.MonkeyPatch.context() as patch:
        made = World(tmp_path_factory.mktemp("kept") / "fresh", patch)
    shutil.copytree(made.root, made.root.with_name("kept"))
    return made


@pytest.fixture
def fresh(kept, monkeypatch):
    made = copy(kept)
    shutil.rmtree(made.root)
    shutil.copytree(made.root.with_name("kept"), made.root)
    made.typed = Typed(made.root, monkeypatch)
    return made


@pytest.fixture
def served(fresh):
    """One whose server answers, and whose worker has looked once."""
    fresh.worker().step()
    with fresh.serving():
        yield fresh


@pytest.fixture
def quickly(monkeypatch):
    """Parts are small, and nobody pauses between tries."""
    monkeypatch.setattr(client, "_PAUSES", (0.0,) * 5)
    for module in (client, wire):
        monkeypatch.setattr(module, "PART_BYTES", STEP)
