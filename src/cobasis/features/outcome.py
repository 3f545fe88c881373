"""What is known of each row besides its features: times and events, counts, weights.

Labels of several columns are one structured array, a record a row, so that whatever goes through
labels (order, blocks, noise, seals) need not know how many columns they have.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from cobasis.errors import LabelError

Records = npt.NDArray[Any]
Column = Annotated[str, Field(max_length=200)]
Time = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Errors = Literal["model", "robust", "party"]

VALUE = "value"
ROLES = ("event", "entry", "stratum", "exposure", "weight")
"""Of the columns beside the label, in the order in which they travel."""

MOST_HORIZONS = 50


class Outcome(BaseModel):
    """Columns beside the label, and how a regression table reads them.

    Attributes
    ----------
    event : str
        Survival: the column that is 1 where the event was seen at the label's time, 0 where the
        row was followed until then without it.
    entry : str
        Survival: the time from which a row was followed; empty for 0.
    stratum : str
        Survival: whole numbers; each has a baseline hazard of its own.
    exposure : str
        Count: over how much time, or over how many people, a row was counted.
    weight : str
        How many rows a row stands for, or any weight of 0 or more.
    horizons : tuple of float
        Survival: times for which the model gives the share that is still without event.
    strata_by_party : bool
        Survival: whether every party has a baseline hazard of its own.
    errors : {"model", "robust", "party"}
        Standard errors by the model, by the sandwich of rows, or by that of whole parties.
    compare_parties : bool
        Whether everybody also gets each party's own estimates, and how far they agree.

    Notes
    -----
    **Who sees what.** Public: a section of the agreement. What the columns hold travels as labels
    do, and times are as telling as a date of birth. **Cost.** None.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    event: Column = ""
    entry: Column = ""
    stratum: Column = ""
    exposure: Column = ""
    weight: Column = ""
    horizons: Annotated[tuple[Time, ...], Field(max_length=MOST_HORIZONS)] = ()
    strata_by_party: bool = False
    errors: Errors = "model"
    compare_parties: bool = False

    @property
    def columns(self) -> Mapping[str, str]:
        """The names of the columns that are agreed on, by role."""
        return {role: name for role in ROLES if (name := getattr(self, role))}


def record_type(roles: Mapping[str, str]) -> np.dtype[Any]:
    """Return the type of labels: the value, then what else is known of a row."""
    return np.dtype([(role, "<f8") for role in (VALUE, *roles)])


def part_of(labels: Records, role: str = VALUE) -> npt.NDArray[Any] | None:
    """Return one column of labels; None where it was not agreed on."""
    names = labels.dtype.names
    if names is None:
        return labels if role == VALUE else None
    found: npt.NDArray[Any] | None = labels[role] if role in names else None
    return found


def check_records(labels: Records, *, task: str, party: str) -> Records:
    """Refuse what no row can be: a negative time, an event of 2, a count with a fraction."""
    columns = [labels[name] for name in labels.dtype.names or (...,)]
    refused = {"a cell that is empty or infinite": ~np.isfinite(columns).all(axis=0)}
    value, entry = columns[0], part_of(labels, "entry")
    if task == "survival":
        refused |= {
            "a time that is not above 0": ~(value > 0),
            "an event that is neither 0 nor 1": ~np.isin(labels["event"], (0, 1)),
        }
        if entry is not None:
            late = (entry >= 0) & (entry < value)
            refused |= {"an entry below 0, or not before its time": ~late}
    if task == "classification":
        refused |= {"a class that is neither of the two": ~np.isin(value, (0, 1))}
    if task == "count":
        refused |= {"a count that is no whole number of 0 or more": (value < 0) | (value % 1 != 0)}
    if (stratum := part_of(labels, "stratum")) is not None:
        refused |= {"a stratum that is no whole number": stratum % 1 != 0}
    if (exposure := part_of(labels, "exposure")) is not None:
        refused |= {"an exposure that is not above 0": ~(exposure > 0)}
    if (weight := part_of(labels, "weight")) is not None:
        refused |= {"a weight below 0": weight < 0}
    problems = [what for what, rows in refused.items() if rows.any()]
    if problems:
        raise LabelError(
            f"the label columns of party '{party}' have rows with {'; with '.join(problems)}. "
            "Correct or drop these rows by a rule that all parties share."
        )
    return labels
