"""A consortium whose agreement names a server: anew, or made once for tests that only ask."""

import pytest

from cobasis.transport import client, server
from transport.serving import STEP, World


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        made = World(tmp_path_factory.mktemp("world"), patch)
        made.worker().step()
        with made.serving():
            yield made


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    return World(tmp_path / "fresh", monkeypatch)


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
    for module in (client, server):
        monkeypatch.setattr(module, "PART_BYTES", STEP)
