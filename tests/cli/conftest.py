"""Rounds by commands, made once; every test spoils a copy."""

import shutil

import pytest

from answers import said_as_promised
from cli.round_by_commands import Typed
from cobasis.cli import options


@pytest.fixture(autouse=True, scope="session")
def promised():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options.Screen, "say", said_as_promised([]))
        yield


@pytest.fixture
def cobasis(tmp_path, monkeypatch):
    return Typed(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """One round at three steps: signed by all, uploads made, the model accepted by all."""
    root = tmp_path_factory.mktemp("round")
    with pytest.MonkeyPatch.context() as patch:
        (root / "now").mkdir()
        typed = Typed(root / "now", patch)
        typed.sealed(more="--holdout 0.25 --deadline 2030-01-31")
        shutil.copytree(root / "now", root / "sealed")
        typed.send()
        shutil.copytree(root / "now", root / "sent")
        typed.run()
        typed.accept()
        shutil.copytree(root / "now", root / "ran")
    return root


def at(step):
    """The round at a step, in the same place each time: a party notes where its table lies."""

    @pytest.fixture(name=step)
    def typed(made, monkeypatch):
        shutil.rmtree(made / "now")
        return Typed(shutil.copytree(made / step, made / "now"), monkeypatch)

    return typed


sealed, sent, ran = map(at, ("sealed", "sent", "ran"))


@pytest.fixture
def terminal():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options, "on_terminal", lambda: True)
        yield patch
