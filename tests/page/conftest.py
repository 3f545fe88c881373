"""A visit to the page about the round whose uploads wait in the inbox."""

import pytest

from cli.conftest import cobasis, made, sent  # noqa: F401 -- fixtures
from page.rounds import Visit


@pytest.fixture
def visit(sent, monkeypatch):  # noqa: F811 -- the fixture
    return Visit(sent, monkeypatch)


@pytest.fixture
def inside(visit):
    return visit.inside()
