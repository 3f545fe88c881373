"""Rows and what is known of them, and why some determine no regression table."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from cobasis.errors import EstimateError
from cobasis.features.outcome import Outcome, Records, part_of
from cobasis.linalg.arrays import Array, Mask, Matrix, Places
from cobasis.models import RegressionName

FEWEST = 10
"""So many events, and rows beyond columns, a party needs for estimates of its own; and so many
parties errors by party need: from few they are far too small."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    model: RegressionName
    outcome: Outcome
    rows: Matrix
    labels: Records
    owners: Array

    def some(self, kept: Mask) -> Self:
        rows, labels, owners = self.rows[kept], self.labels[kept], self.owners[kept]
        return replace(self, rows=rows, labels=labels, owners=owners)

    def part(self, role: str, *, otherwise: float) -> Matrix:
        """Return a column beside the label, or one number where it was not agreed on."""
        found = part_of(self.labels, role)
        return np.full(len(self.rows), otherwise) if found is None else found

    @property
    def value(self) -> Matrix:
        """The label: a number, a class's position, a count, a time."""
        return np.asarray(part_of(self.labels), dtype=np.float64)

    @property
    def weights(self) -> Matrix:
        return self.part("weight", otherwise=1.0)

    @property
    def exposure(self) -> float:
        return float(self.part("exposure", otherwise=1.0).mean())

    @property
    def offset(self) -> Matrix:
        """Logarithms of exposures over their mean; far from 0, a fit's first step overflows."""
        return np.log(self.part("exposure", otherwise=1.0) / self.exposure)

    @cached_property
    def strata(self) -> Places:
        """In whose baseline hazard a row is; of other models than Cox's all 0."""
        if self.model != "cox":
            return np.zeros(len(self.rows), dtype=np.intp)
        parties, owners = np.unique(self.owners, return_inverse=True)
        owners = owners * self.outcome.strata_by_party
        kinds = np.column_stack([self.part("stratum", otherwise=0.0), owners])
        found, strata = np.unique(kinds, axis=0, return_inverse=True)
        empty = found[np.bincount(strata, self.labels["event"]) == 0]
        if len(empty):
            of = " of party '{1}'" if self.outcome.strata_by_party else ""
            named = [f"{{0:g}}{of}".format(kind, parties[int(at)]) for kind, at in empty[:5]]
            raise EstimateError(
                f"strata without an event tell nothing: {len(empty)} of {len(found)} "
                f"({', '.join(named)}). Merge strata, or leave those rows out."
            )
        return strata


_FEW: Mapping[RegressionName, str] = {
    "ols": "all labels are one number",
    "logit": "all rows are of one class",
    "firth": "all rows are of one class",
    "cox": "no row has an event",
}


def nothing_told(model: RegressionName) -> str:
    return (
        f"{_FEW.get(model, 'all counts are 0')}, so nothing can be told of any column. Look at the "
        "columns of labels that parties agreed on."
    )


def refuse_few(sample: Sample, *, n_events: int, n_columns: int, fewest: int) -> None:
    """Refuse rows that give no table, were the numbers of rows and columns all that is known."""
    model, outcome, value, n_rows = sample.model, sample.outcome, sample.value, len(sample.rows)
    if not n_rows:
        raise EstimateError(
            f"all weights in column '{outcome.weight}' are 0, so no row counts. Correct the "
            "column, or agree on none."
        )
    two, n_parties = model in {"logit", "firth"}, len(np.unique(sample.owners))
    rarer = n_rows * bool(np.ptp(value)) if model == "ols" else n_events
    if (min(rarer, n_rows - rarer) if two else rarer) < fewest:
        raise EstimateError(nothing_told(model))
    if n_rows - n_columns < fewest:
        raise EstimateError(
            f"there are {n_rows} rows for {n_columns} columns, an intercept counted. Agree on "
            "fewer columns."
        )
    if outcome.errors == "party" and n_parties < FEWEST:
        raise EstimateError(
            f"errors='party' needs {FEWEST} parties, and there are {n_parties}: errors from few "
            "are far too small. Agree on errors='robust'."
        )
    if max(outcome.horizons, default=0.0) > value.max():
        raise EstimateError(
            f"the horizon {max(outcome.horizons):g} lies beyond the longest follow-up of all "
            "parties. Agree on an earlier one."
        )


def grouped(codes: Places, table: Matrix, *, count: int) -> Matrix:
    found = np.zeros((count, table.shape[1]))
    np.add.at(found, codes, table)
    return found
