"""The tree of errors: codes are unique, drawn at the top, and close every message."""

import inspect
import pickle
import re
from pathlib import Path

import pytest

from cobasis import errors
from cobasis.errors import (
    CobasisError,
    LocalError,
    PrivacyWarning,
    RemoteError,
    UndeterminedFitError,
    UnreachableError,
    UnsignedError,
    WaitingError,
)

EVERY = [
    each
    for _, each in inspect.getmembers(errors, inspect.isclass)
    if issubclass(each, CobasisError) and each.__module__ == errors.__name__
]
LEAVES = [each for each in EVERY if not each.__subclasses__()]


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.__name__)
def test_the_code_closes_the_message_and_the_exit_code_says_which_side_has_to_act(leaf):
    assert str(leaf("what, why, what to do.")) == f"what, why, what to do. [{leaf.code}]"
    assert re.fullmatch(r"CB[1-9]\d\d", leaf.code)
    waits = leaf in {UnreachableError, UnsignedError, WaitingError}
    assert leaf("x").exit_code == (4 if waits else 2 if issubclass(leaf, LocalError) else 3)
    assert issubclass(leaf, ValueError)


def test_every_leaf_stands_below_its_branch_in_the_order_of_codes():
    assert {LocalError, RemoteError} == {each.__mro__[1] for each in LEAVES}
    assert len(LEAVES) == len(EVERY) - 3
    assert len({each.code for each in (*LEAVES, PrivacyWarning)}) == len(LEAVES) + 1
    written = re.findall(r"^class (\w+)\(", Path(errors.__file__).read_text(), re.MULTILINE)
    branches = [[each for each in LEAVES if issubclass(each, b)] for b in (LocalError, RemoteError)]
    by_code = [sorted(branch, key=lambda each: each.code) for branch in branches]
    names = [each.__name__ for branch in by_code for each in branch]
    assert written == ["CobasisError", "LocalError", "RemoteError", *names, "PrivacyWarning"]


def test_every_leaf_is_raised_somewhere_in_the_package():
    """A code that nothing raises would be a page about nothing."""
    package = Path(errors.__file__).parent
    code = "".join(path.read_text() for path in package.rglob("*.py") if path.stem != "errors")
    assert [each.__name__ for each in LEAVES if f"raise {each.__name__}(" not in code] == []


def test_an_error_that_comes_from_another_process_names_its_code_once_and_the_parties():
    error = pickle.loads(pickle.dumps(UndeterminedFitError("hello.", ("a", "b"))))  # noqa: S301
    assert str(error) == "hello. [CB205]"
    assert error.parties == ("a", "b")
