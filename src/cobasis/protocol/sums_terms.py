"""What an agreement says where parties send masked sums: its ``[sums]`` section."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING, Annotated, Literal, cast

from pydantic import Field

from cobasis.errors import StepError
from cobasis.features.contract import Finite, NumericFeature, columns_in, formula_of
from cobasis.features.maps import (
    Columns,
    FeatureMap,
    RandomFourier,
    map_problems,
    range_of,
    width_under,
)
from cobasis.features.outcome import Outcome
from cobasis.privacy.aggregate import GREEN
from cobasis.privacy.discrete import LEAST_SCALE, MOST_SCALE, zcdp_epsilon, zcdp_scale
from cobasis.protocol.baseline import TableLayout
from cobasis.protocol.dp_terms import DPTerms, problems_among
from cobasis.protocol.newton import BY_SUMS, FEWEST_BITS, MOST_STEPS, NewtonLayout
from cobasis.protocol.scores import ScoreLayout
from cobasis.protocol.totals import Layout
from cobasis.strict_json import IF_ANY, Strict

if TYPE_CHECKING:
    from cobasis.models import RegressionName
    from cobasis.protocol.agreement import Agreement

Release = Literal["rows", "sums"]
Rows = Annotated[int, Field(ge=1, le=10**12)]

MOST_MAPS = 8
FEWEST_PARTIES = 3
"""Of two, each would read the other's sums off the total."""

NEEDED_FOR_ROWS = ("n_components", "n_anchor_rows", "commitment")
FOR_ROWS = (
    *(*NEEDED_FOR_ROWS, "anchor", "basis", "aligner"),
    *("public_rows_sha256", "precision", "int8_range", "scale_band", "fewest_rows", "map"),
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
        Regression and counts only: the target's low and high; values beyond are refused.
    scores : bool
        Whether a second exchange follows, of scores on held-back rows, which makes probabilities.
    importance : bool
        Whether scores also say by how much the model is worse where a column is shuffled.
    n_bins : int or None
        Baseline table only: bins of each number's histogram, from its low to its high.
    steps : int or None
        Logistic, Poisson and Cox tables only: the most exchanges, each a step of Newton's method.
    most_exposure : float or None
        With an exposure only: the largest that a row may have.
    most_weight : float or None
        Baseline table with a weight only: the largest that a row may have.

    Notes
    -----
    **Who sees what.** Public. Ranges must not come from private rows. **Cost.** None.
    """

    maps: Annotated[tuple[FeatureMap, ...], Field(max_length=MOST_MAPS)] = ()
    most_rows: Rows
    most_rows_in_all: Rows
    least_rows: Annotated[int, Field(ge=0)] = 0
    target_range: tuple[Finite, Finite] | None = None
    scores: Annotated[bool, IF_ANY] = False
    importance: Annotated[bool, IF_ANY] = False
    n_bins: Annotated[int | None, Field(ge=1, le=200), IF_ANY] = None
    steps: Annotated[int | None, Field(ge=1, le=MOST_STEPS), IF_ANY] = None
    most_exposure: Annotated[float | None, Field(gt=0, allow_inf_nan=False), IF_ANY] = None
    most_weight: Annotated[float | None, Field(gt=0, allow_inf_nan=False), IF_ANY] = None


def sums_problems(agreement: "Agreement", terms: SumsTerms | None) -> Iterator[str]:
    if terms is None:
        yield "release='sums' goes with a [sums] table"
        return
    default = {name: type(agreement).model_fields[name].default for name in FOR_ROWS}
    if given := [name for name in FOR_ROWS if getattr(agreement, name) != default[name]]:
        yield f"release='sums' projects no rows: leave out {', '.join(given)}"
    if min(len(agreement.parties), agreement.minimum_parties) < FEWEST_PARTIES:
        yield f"sums need minimum_parties={FEWEST_PARTIES} or more: a total of two tells each other"
    if not terms.least_rows <= terms.most_rows <= terms.most_rows_in_all:
        yield "least_rows <= most_rows <= most_rows_in_all does not hold"
    table, fitted = agreement.task == "table", agreement.tabular
    yield from _pair_problems(agreement, terms)
    if terms.scores and (table or fitted or agreement.dp is not None or not agreement.holdout):
        yield "scores take holdout above 0, and neither [dp], task='table' nor coefficients"
    if terms.importance and not terms.scores:
        yield "importance goes with scores, whose exchange it takes"
    if table == (terms.n_bins is None) or (table or fitted) == bool(terms.maps):
        yield "n_bins goes with task='table', and maps with all that is no table or coefficients"
    elif table:
        yield from _table_problems(agreement)
    else:
        yield from (_newton_problems if fitted else _model_problems)(agreement, terms)


def _pair_problems(agreement: "Agreement", terms: SumsTerms) -> Iterator[str]:
    task, fitted, outcome = agreement.task, agreement.tabular, agreement.outcome or Outcome()
    stepped = fitted and agreement.model != "ols"
    for name, needed, what in (
        ("target_range", task in {"regression", "count"}, "a regression or a count"),
        ("most_weight", task == "table" and outcome.weight, "outcome.weight of task='table'"),
        ("steps", stepped, "a model 'logit', 'poisson' or 'cox' of sums"),
        ("most_exposure", fitted and outcome.exposure, "outcome.exposure of coefficients"),
    ):
        if bool(needed) != (getattr(terms, name) is not None):
            yield f"sums.{name} goes with {what}, and only with one"


def _table_problems(agreement: "Agreement") -> Iterator[str]:
    yield from map_problems(Columns(), agreement.features)
    for each in columns_in(agreement.features):
        if isinstance(each, NumericFeature) and each.fill is not None:
            low, high = range_of(each)
            if low <= each.fill <= high:
                yield f"fill={each.fill:g} of column '{each.name}' lies in its range: take another"
    if formula := formula_of(agreement.features):
        yield f"task='table' counts columns as they are, and not {formula:.200}"
    if agreement.dp is not None:
        yield "[dp] is not for task='table': what counts people would take larger noise"


def _model_problems(agreement: "Agreement", terms: SumsTerms) -> Iterator[str]:
    if agreement.model != "ridge" or agreement.models not in {(), ("ridge",)}:
        yield "sums train model='ridge' alone, on each of their maps"
    if agreement.dp is not None:
        yield from _noise_problems(agreement, terms, agreement.dp)
    if terms.target_range is not None and terms.target_range[0] >= terms.target_range[1]:
        yield f"target_range={terms.target_range} does not go from low to high"
    if terms.importance and any(each.kind == "interaction" for each in agreement.features):
        yield "importance is of columns alone, and interactions would not follow a shuffled one"
    for each in terms.maps:
        yield from map_problems(each, agreement.features)


def _newton_problems(agreement: "Agreement", terms: SumsTerms) -> Iterator[str]:
    model, outcome = agreement.model, agreement.outcome or Outcome()
    if model not in BY_SUMS:
        yield f"sums make tables of {', '.join(BY_SUMS)}, and model='{model}' takes release='rows'"
        return
    kept = Outcome(**{name: getattr(outcome, name) for name in ("event", "exposure", "horizons")})
    if outcome != kept.model_copy(update={"grid": outcome.grid}):
        yield "of [outcome] sums take event, exposure, horizons and grid alone"
    if (model == "cox") != bool(outcome.grid):
        yield "model='cox' of sums takes outcome.grid, times that all times are rounded up to"
    elif outcome.grid and max(outcome.horizons, default=0) > outcome.grid[-1]:
        yield f"outcome.horizons go beyond the grid, which ends at {outcome.grid[-1]:g}"
    low, high = terms.target_range or (0.0, 1.0)
    if low >= high or (model == "poisson" and low):
        yield f"target_range={low:g}:{high:g} does not go from low to high, of counts from 0"
    elif newton_layout(agreement).scales.min() < 2**FEWEST_BITS:
        yield f"most_rows_in_all and target_range are too large for 64 bits: {high:g} is the most"
    yield from map_problems(Columns(), agreement.features)


def _noise_problems(agreement: "Agreement", terms: SumsTerms, dp: "DPTerms") -> Iterator[str]:
    """Yield what the guarantee of sums does not hold under; of none of these it is proven."""
    if len(terms.maps) != 1 or not isinstance(terms.maps[0], RandomFourier):
        yield "[dp] of sums takes one map 'rff' of one bandwidth: every row has length 1 there"
        return
    if (dp.radius, dp.centre, dp.labels, dp.label_epsilon) != (1.0, (), None, None):
        yield "[dp] of sums has radius=1 and no centre, and covers labels too: name no labels"
    if dp.adjacency != "replace-one":
        yield "[dp] of sums is for adjacency='replace-one', and shows how many rows there are"
    if dp.most_rows != terms.most_rows:
        yield f"dp.most_rows={dp.most_rows} is not that of [sums]"
    if not 1 <= dp.colluders < agreement.minimum_parties:
        yield (
            f"dp.colluders={dp.colluders} is not from 1 to below minimum_parties="
            f"{agreement.minimum_parties}: a party subtracts its own noise, so one at least"
        )
        return
    yield from problems_among(dp, most_rows_in_all=terms.most_rows_in_all)
    own = cast("SumsNoise", noise_of(agreement)).own
    if not 2 * LEAST_SCALE <= own <= MOST_SCALE or 12 * own * len(agreement.parties) >= 2**62:
        yield f"dp.epsilon={dp.epsilon:g} takes noise that sums of 64 bits cannot hold"


SENSITIVITY = 4.5**0.5
"""How far one row that is another moves the sums: see docs/explanation/differential-privacy.md."""

_ROUNDING = 1 + 1e-9
"""What rounding in floats may lengthen a row of waves by, and more."""


@dataclass(frozen=True, kw_only=True)
class SumsNoise:
    """Discrete Gaussian noise on everybody's sums, a share of it by each party."""

    scale: float  # of that of the honest parties together, in units of Z'Z
    mu: float  # how far one person moves the sums, over it
    own: int  # of one party's, in steps of the grid


def noise_of(agreement: "Agreement") -> SumsNoise | None:
    dp = agreement.dp
    if dp is None or agreement.sums is None:
        return None
    honest, unit = agreement.minimum_parties - dp.colluders, 4 ** model_layout(agreement).bits
    moved = dp.rows_per_person * SENSITIVITY * _ROUNDING
    least = zcdp_scale(epsilon=dp.epsilon, delta=dp.delta, sensitivity=moved)
    own = ceil(least * unit / sqrt(honest))  # squares of scales add up
    scale = own * sqrt(honest) / unit
    return SumsNoise(scale=scale, mu=moved / scale, own=own)


def guarantee_of(agreement: "Agreement") -> str:
    """Return what noise promises, in one sentence without full stop; empty without noise."""
    dp, noise = agreement.dp, noise_of(agreement)
    if dp is None:
        return ""
    if noise is None:
        return dp.statement(basis=agreement.basis)
    bits = 2 * model_layout(agreement).bits
    share = "row" if dp.rows_per_person == 1 else f"{dp.rows_per_person} rows"
    return (
        f"differential privacy, epsilon {dp.epsilon:g}, delta {dp.delta:g}, features and labels, "
        f"one person ({share}) replaced by another, against the analyst with the help of "
        f"{dp.colluders} of the parties at most; discrete Gaussian noise of scale "
        f"{noise.scale:.6g} in steps of 2^-{bits}"
    )


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


def may_leave_out(agreement: "Agreement", *, attempt: int = 2) -> bool:
    """Whether sums may begin again without a party, whose own the difference of totals shows.

    Noise hides that, and each attempt spends anew of what a party promised for life.
    """
    dp, noise = agreement.dp, noise_of(agreement)
    if dp is None or noise is None:
        return terms_of(agreement).least_rows >= least_difference(agreement)
    return zcdp_epsilon(mu=noise.mu * sqrt(attempt), delta=dp.delta) <= dp.lifetime_epsilon


def layout_of(agreement: "Agreement") -> Layout | TableLayout | NewtonLayout:
    terms = terms_of(agreement)
    if agreement.tabular:
        return newton_layout(agreement)
    return model_layout(agreement) if terms.n_bins is None else table_layout(agreement)


def table_layout(agreement: "Agreement") -> TableLayout:
    terms = terms_of(agreement)
    return TableLayout(
        features=columns_in(agreement.features),
        n_bins=terms.n_bins or 0,
        n_groups=len(agreement.classes) or 1,
        most_rows=terms.most_rows_in_all,
        grid=() if agreement.outcome is None else agreement.outcome.grid,
        most_weight=terms.most_weight or 0.0,
    )


def newton_layout(agreement: "Agreement") -> NewtonLayout:
    terms, outcome = terms_of(agreement), agreement.outcome or Outcome()
    return NewtonLayout(
        model=cast("RegressionName", agreement.model),
        n_columns=agreement.n_features,
        most_rows=terms.most_rows_in_all,
        steps=terms.steps or 1,
        between=terms.target_range or (0.0, 1.0),
        most_exposure=terms.most_exposure or 1.0,
        grid=outcome.grid,
    )


def score_layout(agreement: "Agreement") -> ScoreLayout:
    terms = terms_of(agreement)
    return ScoreLayout(
        n_classes=len(agreement.classes),
        between=terms.target_range,
        most_rows=terms.most_rows_in_all,
        n_shuffled=len(agreement.features) if terms.importance else 0,
    )


def model_layout(agreement: "Agreement") -> Layout:
    terms = terms_of(agreement)
    return Layout(
        n_features=tuple(width_under(each, agreement.features) for each in terms.maps),
        n_targets=len(agreement.classes) or 1,
        one_hot=agreement.task == "classification",
        most_rows=terms.most_rows_in_all,
        bare=agreement.dp is not None,
    )
