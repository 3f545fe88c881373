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
DRAWN = dict(re.findall(r"(\w+Error) (CB\d{3})", errors.__doc__))


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.__name__)
def test_the_code_closes_the_message_and_the_exit_code_says_which_side_has_to_act(leaf):
    assert str(leaf("what, why, what to do.")) == f"what, why, what to do. [{leaf.code}]"
    assert re.fullmatch(r"CB[1-9]\d\d", leaf.code)
    waits = leaf in {UnreachableError, UnsignedError, WaitingError}
    assert leaf("x").exit_code == (4 if waits else 2 if issubclass(leaf, LocalError) else 3)
    assert issubclass(leaf, ValueError)


def test_the_tree_at_the_top_is_the_tree_that_exists_in_its_order():
    assert {LocalError, RemoteError} == {each.__mro__[1] for each in LEAVES}
    assert len(LEAVES) == len(EVERY) - 3
    codes = [each.code for each in (*LEAVES, PrivacyWarning)]
    assert len(set(codes)) == len(codes)
    assert {each.__name__: each.code for each in LEAVES} == DRAWN
    assert f"PrivacyWarning {PrivacyWarning.code}" in errors.__doc__
    local, remote = errors.__doc__.split("`-- RemoteError")
    for leaf in LEAVES:
        branch = local if issubclass(leaf, LocalError) else remote
        assert f"{leaf.__name__} {leaf.code}" in branch
    places = [Path(errors.__file__).read_text().index(f"class {name}(") for name in DRAWN]
    assert places == sorted(places)


def test_an_error_that_comes_from_another_process_names_its_code_once_and_the_parties():
    error = pickle.loads(pickle.dumps(UndeterminedFitError("hello.", ("a", "b"))))  # noqa: S301
    assert str(error) == "hello. [CB205]"
    assert error.parties == ("a", "b")
