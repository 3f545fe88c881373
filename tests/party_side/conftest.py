"""One consortium per test, made by asking for it."""

import pytest

from cobasis.party_side.send import send
from cobasis.party_side.session import join
from party_side.sites import NAMES, consortium, ready_from


@pytest.fixture
def make(tmp_path, monkeypatch):
    return lambda **changes: consortium(tmp_path, monkeypatch, **changes)


@pytest.fixture
def site(make):
    """Everybody has joined."""
    made = make()
    for name in NAMES:
        join(made.session(name), made.secret_file(name))
    return made


@pytest.fixture
def uploaded(site):
    """Everybody has uploaded."""
    paths = {}
    for name in NAMES:
        to = site.folder(name) / f"{name}.upload"
        send(ready_from(site.session(name), site.table(name)), to)
        paths[name] = to
    return site, paths
