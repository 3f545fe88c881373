"""The four span conditions of the ODC paper's eq. (92), for simulation and experiments."""

from collections.abc import Mapping
from typing import Literal, get_args

from cobasis.algorithms.bases import require_components
from cobasis.errors import OptionError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.leading import leading_directions
from cobasis.linalg.rng import KeyStream, haar_columns

SpanCondition = Literal["samespan_orth", "samespan", "diffspan_orth", "diffspan"]


def bases_under(
    condition: SpanCondition,
    rows: Mapping[str, Matrix],
    *,
    n_components: int,
    streams: Mapping[str, KeyStream],
) -> dict[str, Matrix]:
    """Make every party's basis under one of the four conditions.

    ODC paper, eq. (92).
    """
    if condition not in get_args(SpanCondition):
        known = ", ".join(get_args(SpanCondition))
        raise OptionError(f"span condition '{condition}' does not exist. Choose one of {known}.")
    first = next(iter(rows))
    spans: dict[str, Matrix] = {}
    bases: dict[str, Matrix] = {}
    for party, stream in streams.items():
        source = first if condition.startswith("samespan") else party
        if source not in spans:
            spans[source] = _span(rows[source], n_components=n_components, party=source)
        bases[party] = spans[source] @ _factor(condition, stream, n_components)
    return bases


def _span(rows: Matrix, *, n_components: int, party: str) -> Matrix:
    """Return V_i, all of it."""
    found = leading_directions(rows, n_wanted=n_components).directions
    require_components(found, n_components=n_components, n_rows=len(rows), party=party)
    return found


def _factor(condition: SpanCondition, stream: KeyStream, size: int) -> Matrix:
    """Draw E_i."""
    if condition.endswith("_orth"):
        return haar_columns(stream, n_rows=size, n_columns=size)
    return stream.uniform((size, size))
