import warnings
from contextlib import chdir

import numpy as np
import pytest

from golden import doors

WITHIN = {
    "uploads": 1e-8,  # singular vectors differ between processors, after twelve digits
    "demo": 1e-3,  # of 1,197 rows one, whose two best classes are nearly even, may change sides
    "ridge": 1e-6,
    "rff": 1e-6,
    "boosted_trees": 1e-6,
    "logistic": 1e-3,  # its optimiser stops at a gradient of 1e-4
    "mlp": 1e-2,  # its optimiser stops after some epochs, with all rounding of all its steps
}
LONG = ("demo", "mlp", "boosted_trees")
"""What takes seconds: the demo, and families that are tuned."""


def cases():
    for door, measures in doors.DOORS.items():
        for case, measure in measures.items():
            of = case.split(", ")[1] if door == "models" else door
            marks = [pytest.mark.soak] if of in LONG else []
            yield pytest.param(
                door, case, measure, WITHIN.get(of), id=f"{door}: {case}", marks=marks
            )


def different(old, new, *, within, at=""):
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            both = old.get(key, "nothing"), new.get(key, "nothing")
            yield from different(*both, within=within, at=f"{at}/{key}")
    elif isinstance(old, str | None) or isinstance(new, str | None):
        if old != new:
            yield f"{at}: {old} -> {new}"
    else:
        had, has = np.asarray(old, dtype=float), np.asarray(new, dtype=float)
        least = within * np.abs(had).max(initial=0)
        if had.shape != has.shape or not np.allclose(has, had, rtol=within, atol=least):
            yield f"{at}: {old} -> {new}"


@pytest.mark.parametrize(("door", "case", "measure", "within"), list(cases()))
def test_what_comes_out_at_a_door_is_what_was_recorded(door, case, measure, within, tmp_path):
    with chdir(tmp_path), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = measure()
    changed = list(different(doors.recorded(door)[case], found, within=within))
    assert changed == [], (
        f"{door}, {case} is another result now. If that is meant, record it with 'PYTHONPATH=src:"
        f"tests python -m golden.doors {door}', and say in the change why. Else it is a mistake."
    )


def test_nothing_is_recorded_that_is_not_measured():
    assert {door: list(doors.recorded(door)) for door in doors.DOORS} == {
        door: list(measures) for door, measures in doors.DOORS.items()
    }


def test_a_change_above_rounding_is_told_and_one_below_is_not():
    old = {"labels": "01", "gram": [1.0, 2.0]}
    changes = {"gram": [1.0, 2.0 + 1e-7]}, {"gram": [1.0, 2.1]}, {"gram": [1.0]}, {"labels": ""}
    assert [len([*different(old, old | new, within=1e-6)]) for new in changes] == [0, 1, 1, 1]
