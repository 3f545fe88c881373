"""Two rounds that went through the whole tutorial, made once; and copies of them, to be spoiled."""

import shutil

import pytest

from walk.comparing import assert_same_predictions
from walk.world import World

LAST = 17
"""The step that ends the round, which test_refusals.py types."""
CONSENSUS = (
    ("--holdout 0.2", "--holdout 0.2 --basis consensus"),
    ("--models logistic,mlp", "--models logistic,rff"),
    ("--model logistic --without", "--model rff --without"),
    ("1-upload", "2-upload"),
    ("1-return", "2-return"),
)


@pytest.fixture(scope="session")
def keys(tmp_path_factory):
    """Five folders with a key each: step 1, which takes two seconds for every key."""
    world = World(tmp_path_factory.mktemp("keys"))
    world.make_folders()
    read = []
    world.walk(lambda role, words, line: read.append((line, world(role, words))), numbers=[1])
    world.read = read
    return world


def begun(keys, folder):
    """A copy of the folders with keys."""
    return copied(keys, folder, read=list(keys.read), typed=list(keys.typed), sent=list(keys.sent))


def copied(world, folder, **told):
    shutil.copytree(world.root, folder / "world", symlinks=True)
    found = World(folder / "world")
    vars(found).update(told)
    return found


@pytest.fixture(scope="session")
def walked(keys, tmp_path_factory):
    """The round with the default basis, as typed, with what the commands printed."""
    world = begun(keys, tmp_path_factory.mktemp("svd"))
    found, world.compared = world.read, []

    def type_line(role, words, line):
        found.append((line, world(role, words)))
        if words.startswith("cobasis export"):  # of the return before a party left
            assert_same_predictions(world, role)
            world.compared.append(role)

    world.walk(type_line, numbers=range(2, LAST))
    return world


@pytest.fixture(scope="session")
def agreed(keys, tmp_path_factory):
    """The round with a consensus basis and random features, every command with --json."""
    world = begun(keys, tmp_path_factory.mktemp("consensus"))
    world.answers = []

    def answered(role, words, _):
        world.answers.append((role, world.json(role, words)))

    def read_and_answered(role, words, line):  # as after a file was lost
        world.read.append((line, world(role, words)))
        for lost in (world.folder(role) / "outbox").glob("*.1-span"):
            lost.unlink()
        again = "cobasis send icu.toml --again"
        answered(role, again if words.startswith("cobasis send") else words, line)

    world.walk(answered, numbers=range(2, 5), consensus=True, changes=CONSENSUS)
    world.walk(read_and_answered, numbers=range(5, 8), consensus=True, changes=CONSENSUS)
    world.walk(answered, numbers=range(8, LAST), consensus=True, changes=CONSENSUS)
    return world


@pytest.fixture
def world(walked, tmp_path):
    """A copy of the round, to be spoiled."""
    return copied(walked, tmp_path, typed=[], sent=[])


@pytest.fixture
def common(agreed, tmp_path):
    """A copy of the round with a consensus basis, to be spoiled."""
    return copied(agreed, tmp_path, typed=[], sent=[])
