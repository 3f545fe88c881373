"""Two rounds that went through the whole tutorial, made once; and copies of them, to be spoiled."""

import shutil

import pytest

from walk.world import World, assert_same_predictions

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
    world.read, world.compared = [], []

    def type_line(role, words, line):
        world.read.append((line, world(role, words)))
        if words.startswith("cobasis export"):  # of the return before a party left
            assert_same_predictions(world, role)
            world.compared.append(role)

    world.walk(type_line, numbers=range(1, LAST))
    return world


@pytest.fixture(scope="session")
def agreed(tmp_path_factory):
    """The round with a consensus basis and random features, every command with --json."""
    world = World(tmp_path_factory.mktemp("consensus") / "world")
    world.make_folders()
    world.read, world.answers = [], []

    def answered(role, words, _):
        world.answers.append((role, world.json(role, words)))

    def read_and_answered(role, words, line):  # as after a file was lost
        world.read.append((line, world(role, words)))
        for lost in (world.folder(role) / "outbox").glob("*.1-span"):
            lost.unlink()
        again = "cobasis send icu.toml --again"
        answered(role, again if words.startswith("cobasis send") else words, line)

    for type_line, numbers in (
        (answered, range(1, 5)),
        (read_and_answered, range(5, 8)),
        (answered, range(8, LAST)),
    ):
        world.walk(type_line, numbers=numbers, consensus=True, changes=CONSENSUS)
    return world


def spoiled(world, folder):
    return World(shutil.copytree(world.root, folder / "world", symlinks=True))


@pytest.fixture
def world(walked, tmp_path):
    return spoiled(walked, tmp_path)


@pytest.fixture
def common(agreed, tmp_path):
    return spoiled(agreed, tmp_path)
