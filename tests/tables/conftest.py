"""Small parts for all tests here: what a table of millions of rows would come in."""

import pytest

from cobasis.protocol import projection
from cobasis.tables import sources, table


@pytest.fixture(autouse=True)
def many_small_parts(monkeypatch):
    """Twelve blocks in three parts, and 29 bins; ten batches of a thousand rows to be checked."""
    monkeypatch.setattr(sources, "SMALL_BYTES", 0)
    monkeypatch.setattr(table, "BLOCK_CELLS", 1)
    monkeypatch.setattr(table, "CHECKED_ROWS", 100)
    monkeypatch.setattr(projection, "BIN_BYTES", 8 * 3 * 100)
