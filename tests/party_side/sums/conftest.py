"""Everybody has signed an agreement on sums."""

import pytest

from party_side.summing import summing


@pytest.fixture
def site(tmp_path):
    return summing(tmp_path)


@pytest.fixture
def make(tmp_path):
    return lambda **changes: summing(tmp_path, **changes)
