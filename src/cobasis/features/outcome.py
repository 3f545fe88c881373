"""What is known of each row besides its features: times and events, counts, weights.

Labels of several columns are one structured array, a record a row, so that whatever goes through
labels (order, blocks, noise, seals) need not know how many columns they have.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import Field

from cobasis.errors import LabelError
from cobasis.linalg.arrays import Array
from cobasis.strict_json import Strict

Records = Array
Column = Annotated[str, Field(max_length=200)]
Time = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Errors = Literal["model", "robust", "party"]
EffectName = Literal["weighting", "matching", "doubly_robust", "dml"]

VALUE = "value"
ROLES = ("time", "event", "entry", "stratum", "exposure", "weight", "treatment")
"""Of the columns beside the label, in the order in which they travel."""

MOST_HORIZONS = 50
MOST_TIMES = 200


class Outcome(Strict):
    """Columns beside the label, and how a regression table, or survival curves, read them.

    Attributes
    ----------
    time : str
        Table: the column of times; elsewhere they are the label, which groups a table.
    event : str
        Survival, table: the column that is 1 where the event was seen at the row's time, 0 where
        the row was followed until then without it.
    entry : str
        Survival: the time from which a row was followed; empty for 0.
    stratum : str
        Survival: whole numbers; each has a baseline hazard of its own.
    exposure : str
        Count: over how much time, or over how many people, a row was counted.
    weight : str
        How many rows a row stands for, or any weight of 0 or more.
    horizons : tuple of float
        Survival: times for which the model gives the share that is still without event. Table:
        times up to which means are taken; none for the last at which all groups are followed.
    grid : tuple of float
        Sums: ends of the intervals of time, rising, from 0 on; times are rounded up to these.
    fewest_leavers : int
        Table: how many rows of a group leave between two times of a curve, if any do.
    strata_by_party : bool
        Survival: whether every party has a baseline hazard of its own.
    errors : {"model", "robust", "party"}
        Standard errors by the model, by the sandwich of rows, or by that of whole parties.
    compare_parties : bool
        Whether everybody also gets each party's own estimates, and how far they agree.
    treatment : str
        Effect: the column that is 1 where a row was treated, 0 where it was not.
    estimators : tuple of {"weighting", "matching", "doubly_robust", "dml"}
        Effect: how it is estimated; whatever is named is told.
    trim : float
        Effect: rows whose propensity is nearer to 0 or to 1 are left out.
    caliper : float
        Effect: how far a match may be, in standard deviations of the propensity's logit.

    Notes
    -----
    **Who sees what.** Public: a section of the agreement. What the columns hold travels as labels
    do, and times are as telling as a date of birth. **Cost.** None.
    """

    time: Column = ""
    event: Column = ""
    entry: Column = ""
    stratum: Column = ""
    exposure: Column = ""
    weight: Column = ""
    horizons: Annotated[tuple[Time, ...], Field(max_length=MOST_HORIZONS)] = ()
    grid: Annotated[tuple[Time, ...], Field(max_length=MOST_TIMES)] = ()
    fewest_leavers: Annotated[int, Field(ge=1)] = 5
    strata_by_party: bool = False
    errors: Errors = "model"
    compare_parties: bool = False
    treatment: Column = ""
    estimators: Annotated[tuple[EffectName, ...], Field(min_length=1)] = get_args(EffectName)
    trim: Annotated[float, Field(ge=0, lt=0.5)] = 0.01
    caliper: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.2

    @property
    def columns(self) -> Mapping[str, str]:
        """The names of the columns that are agreed on, by role."""
        return {role: name for role in ROLES if (name := getattr(self, role))}


def times_of(name: str, words: str) -> tuple[float, ...]:
    """Read times between slashes; ``30/60/../720`` goes on in equal steps."""
    first, _, last = words.replace(" ", "").partition("/../")
    try:
        found = [Fraction(each) for each in first.split("/")]  # steps of 0.1 add up to 0.3
        end = Fraction(last or found[-1])
    except ValueError:
        raise ValueError(f"{name}={words} are not numbers like 30/60/90") from None
    step = found[-1] - found[-2] if len(found) > 1 else end
    while 0 < step <= end - found[-1] and len(found) < MOST_TIMES:
        found.append(found[-1] + step)
    if found[-1] != end:
        raise ValueError(f"{name}={words} does not reach its end in {MOST_TIMES} equal steps")
    return tuple(map(float, found))


def record_type(roles: Mapping[str, str]) -> np.dtype[Any]:
    return np.dtype([(role, "<f8") for role in (VALUE, *roles)])


def part_of(labels: Records | None, role: str = VALUE) -> Array | None:
    """Return one column of labels; None where it was not agreed on, or there are none."""
    if labels is None:
        return None
    if labels.dtype.names is None:
        return labels if role == VALUE else None
    return labels[role] if role in labels.dtype.names else None


_WRONG: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "stratum": ("a stratum that is no whole number", lambda column: column % 1 != 0),
    "exposure": ("an exposure that is not above 0", lambda column: ~(column > 0)),
    "treatment": ("a treatment that is neither 0 nor 1", lambda column: ~np.isin(column, (0, 1))),
    "weight": ("a weight below 0", lambda column: column < 0),
}


def check_records(labels: Records, *, task: str, party: str) -> Records:
    """Refuse what no row can be: a negative time, an event of 2, a count with a fraction."""
    columns = [labels[name] for name in labels.dtype.names or (...,)]
    refused = {"a cell that is empty or infinite": ~np.isfinite(columns).all(axis=0)}
    value, entry, event = columns[0], part_of(labels, "entry"), part_of(labels, "event")
    time = value if task in {"survival", "effect"} else part_of(labels, "time")
    if event is not None and time is not None:
        refused["a time that is not above 0"] = ~(time > 0)
        refused["an event that is neither 0 nor 1"] = ~np.isin(event, (0, 1))
    if entry is not None:
        late = (entry >= 0) & (entry < value)
        refused["an entry below 0, or not before its time"] = ~late
    if task == "classification":
        refused["a class that is neither of the two"] = ~np.isin(value, (0, 1))
    if task == "count":
        refused["a count that is no whole number of 0 or more"] = (value < 0) | (value % 1 != 0)
    for role, (what, wrong) in _WRONG.items():
        if (column := part_of(labels, role)) is not None:
            refused[what] = wrong(column)
    problems = [what for what, rows in refused.items() if rows.any()]
    if problems:
        raise LabelError(
            f"the label columns of party '{party}' have rows with {'; with '.join(problems)}. "
            "Correct or drop these rows by a rule that all parties share."
        )
    return labels
