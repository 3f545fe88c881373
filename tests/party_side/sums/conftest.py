"""Everybody has signed an agreement on sums."""

import pytest

from party_side.summing import summing


@pytest.fixture
def site(tmp_path, monkeypatch):
    return summing(tmp_path, monkeypatch)


@pytest.fixture
def make(tmp_path, monkeypatch):
    return lambda **changes: summing(tmp_path, monkeypatch, **changes)
