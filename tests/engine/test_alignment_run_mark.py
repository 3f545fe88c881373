"""A folder of results belongs to one run, and says what another one differs in."""

import os

import numpy as np
import pytest

from cobasis import GOPP, ODC, Imakura
from cobasis.engine.run_mark import claim, describe
from cobasis.errors import AnotherRunError, DiskError

STATES = {"north": "12 bytes, 1", "south": "12 bytes, 2"}


@pytest.fixture
def claimed(tmp_path):
    claim(tmp_path, method=ODC(), states=STATES)
    return tmp_path


def test_the_same_run_may_go_on(claimed):
    before = (claimed / "run.json").read_bytes()
    claim(claimed, method=ODC(), states=dict(STATES))
    assert (claimed / "run.json").read_bytes() == before
    assert os.listdir(claimed) == ["run.json"]  # noqa: PTH208 -- names are all there is to see


@pytest.mark.parametrize(
    ("method", "states", "words"),
    [
        (GOPP(), STATES, r"made by ODC\(reference=None, .*, not GOPP\(start='spectral'"),
        (ODC(reference="south"), STATES, r"not ODC\(reference='south'"),
        (ODC(), {**STATES, "west": "1"}, r"party 'west' are new\."),
        (ODC(), {"north": "12 bytes, 1"}, r"party 'south' are gone\."),
        (ODC(), {**STATES, "north": "13 bytes, 9"}, "party 'north' sent another file since"),
        (ODC(), dict(reversed(STATES.items())), "its parties came in another order"),
        (ODC(), {f"p{n}": "" for n in range(9)}, "'p3', 'p4' and 4 more are new; .* are gone"),
    ],
    ids=["method", "setting", "joined", "left", "changed", "order", "many"],
)
def test_another_run_is_refused_and_the_message_says_what_differs(claimed, method, states, words):
    with pytest.raises(AnotherRunError, match=words):
        claim(claimed, method=method, states=states)
    claim(claimed, method=ODC(), states=STATES)  # and the mark is as it was


def test_settings_that_are_arrays_are_compared_by_all_their_numbers():
    first, second = np.eye(60), np.eye(60)
    second[30, 31] = 1e-15
    assert repr(first) == repr(second)
    assert describe(ODC(rotation=first)) == describe(ODC(rotation=first.copy()))
    assert describe(ODC(rotation=first)) != describe(ODC(rotation=second))
    assert describe(Imakura()).startswith("Imakura(factor='identity'")
    assert describe("a word") == "'a word'"


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"format": 1, "method": 2}'])
def test_a_damaged_mark_is_refused(claimed, text):
    (claimed / "run.json").write_text(text)
    with pytest.raises((DiskError, AnotherRunError), match=r"Delete the folder|its format is"):
        claim(claimed, method=ODC(), states=STATES)
