"""Two rounds that went through the whole tutorial, made once; and a copy, to be spoiled."""

import shutil

import pytest

from walk.world import World

LAST = 17
"""The step that ends the round, which test_walk.py types at last."""
CONSENSUS = (
    ("--holdout 0.2", "--holdout 0.2 --basis consensus"),
    ("--models logistic,mlp", "--models logistic,rff"),
    ("--model logistic --without", "--model rff --without"),
    ("1-upload", "2-upload"),
    ("1-return", "2-return"),
)


@pytest.fixture(scope="session")
def walked(tmp_path_factory):
    """The round with the default basis, as typed, with what the commands printed."""
    world = World(tmp_path_factory.mktemp("svd") / "world", printed=True)
    world.make_folders()
    world.read = world.walk(range(1, LAST))
    return world


@pytest.fixture(scope="session")
def agreed(tmp_path_factory):
    """The round with a consensus basis and random features; what it says of the span is read."""
    world = World(tmp_path_factory.mktemp("consensus") / "world")
    world.make_folders()
    _, world.read, _ = (
        world.walk(numbers, consensus=True, changes=CONSENSUS)
        for numbers in (range(1, 5), range(5, 8), range(8, LAST))
    )
    return world


@pytest.fixture
def world(walked, tmp_path):
    return World(shutil.copytree(walked.root, tmp_path / "world", symlinks=True))
