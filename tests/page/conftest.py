"""One round at two steps, made once; every test spoils a copy."""

import shutil

import pytest

from cli.round_by_commands import Typed
from page.rounds import Visit, made


@pytest.fixture(scope="session")
def steps(tmp_path_factory):
    root = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        made(root / "now", patch, more="--holdout 0.25 --deadline 2030-01-31")
        shutil.copytree(root / "now", root / "sent")
    return root


@pytest.fixture
def typed(steps, monkeypatch):
    """Types commands where three uploads wait in the inbox."""
    shutil.rmtree(steps / "now")
    return Typed(shutil.copytree(steps / "sent", steps / "now"), monkeypatch)


@pytest.fixture
def visit(typed, monkeypatch):
    return Visit(typed, monkeypatch)


@pytest.fixture
def inside(visit):
    return visit.inside()


@pytest.fixture
def cobasis(tmp_path, monkeypatch):
    """Types commands in an empty folder."""
    return Typed(tmp_path, monkeypatch)
