"""What an agreement says where parties send masked sums: its ``[sums]`` section."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from cobasis.errors import StepError
from cobasis.features.contract import Finite
from cobasis.features.maps import FeatureMap, refuse_unfit, width_under
from cobasis.privacy.aggregate import GREEN
from cobasis.protocol.enrolment import Strict
from cobasis.protocol.totals import Layout

if TYPE_CHECKING:
    from cobasis.protocol.agreement import Agreement

Release = Literal["rows", "sums"]
Rows = Annotated[int, Field(ge=1, le=10**12)]

MOST_MAPS = 8
FEWEST_PARTIES = 3
"""Of two, each would read the other's sums off the total."""

NEEDED_FOR_ROWS = ("n_components", "n_anchor_rows", "commitment")
FOR_ROWS = (
    *(*NEEDED_FOR_ROWS, "anchor", "basis", "aligner"),
    *("public_rows_sha256", "precision", "int8_range", "scale_band", "fewest_rows"),
)
"""Fields that say how rows are projected and aligned, which sums are not."""


class SumsTerms(Strict):
    """Of what sums are made, and how many rows they may be of.

    Attributes
    ----------
    maps : tuple of Columns, RandomFourier or Mixed
        Feature maps, each with a total of its own; the analyst takes the one with the largest
        evidence.
    most_rows : int
        The most rows that any party may sum up.
    most_rows_in_all : int
        The most of all parties together; it bounds every total.
    least_rows : int
        A party with fewer takes no part.
    target_range : tuple of float or None
        Regression only: the target's low and high; values beyond are refused.

    Notes
    -----
    **Who sees what.** Public. Ranges must not come from private rows. **Cost.** None.
    """

    maps: Annotated[tuple[FeatureMap, ...], Field(min_length=1, max_length=MOST_MAPS)]
    most_rows: Rows
    most_rows_in_all: Rows
    least_rows: Annotated[int, Field(ge=0)] = 0
    target_range: tuple[Finite, Finite] | None = None


def sums_problems(agreement: "Agreement", terms: SumsTerms | None) -> Iterator[str]:
    """Yield what contradicts a release of sums."""
    if terms is None:
        yield "release='sums' goes with a [sums] table"
        return
    default = {name: type(agreement).model_fields[name].default for name in FOR_ROWS}
    if given := [name for name in FOR_ROWS if getattr(agreement, name) != default[name]]:
        yield f"{', '.join(given)} say how rows are projected, and release='sums' sends none"
    if min(len(agreement.parties), agreement.minimum_parties) < FEWEST_PARTIES:
        yield f"sums need minimum_parties={FEWEST_PARTIES} or more: a total of two tells each other"
    if agreement.model != "ridge" or agreement.models not in {(), ("ridge",)}:
        yield "sums train model='ridge' alone, on each of their maps"
    if agreement.dp is not None:
        yield "sums with noise are not built yet: leave [dp] out"
    if (agreement.task == "regression") != (terms.target_range is not None):
        yield "target_range goes with a regression, and only with one"
    if terms.target_range is not None and terms.target_range[0] >= terms.target_range[1]:
        yield f"target_range={terms.target_range} does not go from low to high"
    if not terms.least_rows <= terms.most_rows <= terms.most_rows_in_all:
        yield "least_rows, most_rows and most_rows_in_all are not in this order"
    for each in terms.maps:
        refuse_unfit(each, agreement.features)


def terms_of(agreement: "Agreement") -> SumsTerms:
    """Return the terms of a release of sums; StepError for one of rows."""
    if agreement.sums is None:
        raise StepError(
            f"round '{agreement.round_id}' has release='rows', so no sums are sent in it. Use "
            "Party and Analyst, or agree on release='sums'."
        )
    return agreement.sums


def roster_of(keys: Mapping[str, str]) -> bytes:
    """Return the digest of who takes part under which public mask key, in the agreement's order."""
    return hashlib.sha256("".join(f"{name}={key};" for name, key in keys.items()).encode()).digest()


def least_difference(agreement: "Agreement") -> int:
    """Return of how many rows two totals have to differ at least, if they differ."""
    return GREEN * max(layout_of(agreement).n_features)


def layout_of(agreement: "Agreement") -> Layout:
    """Return where each sum stands in a message."""
    terms = terms_of(agreement)
    return Layout(
        n_features=tuple(width_under(each, agreement.features) for each in terms.maps),
        n_targets=len(agreement.classes) or 1,
        one_hot=agreement.task == "classification",
        most_rows=terms.most_rows_in_all,
    )
