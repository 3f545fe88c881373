"""What a task and a release of rows ask of an agreement: models, sizes, who holds which columns.

Where not every party holds every column, ``[[holdings]]`` say so. A party's basis stands on its own
columns, which is a basis of all with zeros elsewhere. Parties of one block hold columns of the same
people: their uploads, side by side, are one upload.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS, MAX_ISOMETRIC_FEATURES
from cobasis.algorithms.bases import BASES
from cobasis.features.contract import CategoryFeature, width_of
from cobasis.features.maps import map_problems
from cobasis.features.outcome import Outcome
from cobasis.linalg.arrays import Places
from cobasis.models import FAMILIES, MODELLESS, TABULAR, UNLABELLED, family
from cobasis.protocol.sums_terms import FEWEST_PARTIES, NEEDED_FOR_ROWS
from cobasis.statistics.sample import FEWEST
from cobasis.strict_json import Strict

if TYPE_CHECKING:
    from cobasis.protocol.agreement import Agreement

Word = Annotated[str, Field(min_length=1, max_length=100)]


class Holding(Strict):
    """What a party holds that does not hold every column of an agreement.

    Attributes
    ----------
    party : str
        Whose columns these are.
    columns : tuple of str
        Names of agreed features.
    block : str
        Parties of one block hold columns of the same people, known by the agreement's ``id``; empty
        for people of the party's own.
    n_components : int or None
        Of a party of a block: the columns of its basis. Those of a block add up to the agreement's.
    labels : bool
        Whether it holds the label; of a block one party has to.

    Notes
    -----
    **Who sees what.** Public: a field of the agreement. **Cost.** None.
    """

    party: Word
    columns: Annotated[tuple[Word, ...], Field(min_length=1)]
    block: Annotated[str, Field(max_length=100)] = ""
    n_components: Annotated[int | None, Field(ge=1)] = None
    labels: bool = True


def holding_problems(agreement: "Agreement") -> Iterator[str]:
    if agreement.sums is not None:
        yield "[[holdings]] go with release='rows': a sum takes every column of a row"
        return
    found = [*_party_problems(agreement)]
    yield from found or _block_problems(agreement)


def _group_problems(agreement: "Agreement") -> Iterator[str]:
    labs, every = {x.name for x in agreement.groups if x.role == "analyst"}, agreement.groups
    if len(labs) < max(len(every), FEWEST_PARTIES) or agreement.analyst not in {None, *every}:
        told = f"{FEWEST_PARTIES} different analysts or more, this agreement's own among them"
        yield f"[[groups]] names {', '.join(x.name for x in every)}, and has to name {told}"
    other = (agreement.sums, agreement.holdings, agreement.server, agreement.outcome)
    if agreement.model not in {"ridge", "rff"} or any(other):  # which are by sums
        words = "release='rows' and model='ridge' or 'rff'"
        yield f"[[groups]] go with {words}, and with no [outcome], [[holdings]] or server"


def other_groups(agreement: "Agreement") -> list[str]:
    """Return whose rows shape the model besides those of the parties that are named."""
    return [f"the group of {lab.name}" for lab in agreement.groups if lab != agreement.analyst]


def blocks_of(agreement: "Agreement") -> Mapping[str, tuple[Holding, ...]]:
    found: dict[str, tuple[Holding, ...]] = {}
    for each in agreement.holdings:
        if each.block:
            found[each.block] = (*found.get(each.block, ()), each)
    return found


def others_of(agreement: "Agreement") -> tuple[str, ...]:
    """Return who holds other columns of the same people as the party that this concerns."""
    own = agreement.holding
    block = blocks_of(agreement).get(own.block, ()) if own else ()
    return tuple(each.party for each in block if each != own)


def places_of(agreement: "Agreement") -> Places:
    held, features = {*agreement.columns}, agreement.whole.features
    return np.flatnonzero(np.concatenate([[x.name in held] * width_of([x]) for x in features]))


def _party_problems(agreement: "Agreement") -> Iterator[str]:
    rule, seen = BASES[agreement.basis], set[str]()
    if not rule.span.startswith("own"):
        yield f"basis='{agreement.basis}' is of all columns: with [[holdings]] take 'svd' or 'pca'"
    if any(each.kind == "interaction" for each in agreement.features):
        yield "interactions are of columns that not every party holds"
    if agreement.tabular:
        yield f"model='{agreement.model}' has coefficients, which need every column at every party"
    for each in agreement.holdings:
        who = f"the holding of '{each.party}'"
        if each.party not in agreement.parties or each.party in seen:
            yield f"{who} is of no party of this agreement, or there are two"
        seen.add(each.party)
        if strange := sorted({*each.columns} - {*agreement.columns}):
            yield f"{who} names {', '.join(strange)}, which the agreement has not"
        if len({*each.columns}) < len(each.columns):
            yield f"{who} names a column twice"
        if not each.block and not (each.n_components is None and each.labels):
            yield f"{who} has n_components or labels of its own, which go with a block"
        if each.block in agreement.parties:
            yield f"{who} is of block '{each.block}', which is a party's name"


def _block_problems(agreement: "Agreement") -> Iterator[str]:
    blocks = blocks_of(agreement)
    if blocks and not agreement.id:
        yield "parties of a block know their people by the column id, and none is named"
    for name, parts in blocks.items():
        columns = [column for each in parts for column in each.columns]
        sizes = [each.n_components or 0 for each in parts]
        if len(parts) < 2 or len({*columns}) < len(columns):  # noqa: PLR2004 -- a join takes two
            yield f"block '{name}' is of one party, or two of its parties hold one column"
        if 0 in sizes or sum(sizes) != agreement.n_components:
            told = ", ".join(map(str, sizes))
            rule = f"each has to be 1 or more, and all together {agreement.n_components}"
            yield f"n_components of block '{name}' are {told}: {rule}"
        if not any(each.labels for each in parts):
            yield f"no party of block '{name}' holds the label"
    yield from _stranger_problems(agreement)
    for each in agreement.holdings:
        for problem in rows_problems(agreement.held_by(each.party)):
            yield f"of '{each.party}': {problem}"


def _stranger_problems(agreement: "Agreement") -> Iterator[str]:
    held = {each.party for each in agreement.holdings}
    units: dict[str, set[str]] = {}
    for each in agreement.holdings:
        units.setdefault(each.block or each.party, set()).update(each.columns)
    units |= {name: {*agreement.columns} for name in agreement.parties if name not in held}
    holders = Counter(column for columns in units.values() for column in columns)
    if nobodys := sorted({*agreement.columns} - {*holders}):
        yield f"nobody holds {', '.join(nobodys)}"
    for name, columns in units.items() if agreement.anchor == "isometric" else ():
        if len(units) > 1 and all(holders[column] == 1 for column in columns):
            yield f"'{name}' holds no column that anybody else holds: nothing tells how to align it"


def _map_problems(agreement: "Agreement") -> Iterator[str]:
    kind = agreement.map.kind
    yield from map_problems(agreement.map, agreement.features)
    beside = {"coefficients": agreement.tabular, "[[holdings]]": agreement.holdings}
    for what in filter(beside.get, beside):
        yield f"{what} are of single columns, and the map '{kind}' is of all: take 'columns'"


def rows_problems(agreement: "Agreement") -> Iterator[str]:
    yield from () if agreement.map.kind == "columns" else _map_problems(agreement)
    n_features, n_anchor_rows = agreement.n_features, agreement.n_anchor_rows
    if agreement.sums is not None or not all(getattr(agreement, each) for each in NEEDED_FOR_ROWS):
        yield f"release='rows' needs {', '.join(NEEDED_FOR_ROWS)}, and has no [sums] table"
    if agreement.n_components > n_features:
        yield f"n_components={agreement.n_components} is above the {n_features} features"
    whole = [x.name for x in agreement.features if x.kind == "category" and x.base is None]
    whole = [] if agreement.map.kind == "rff" else whole  # no sum of waves is constant
    rule = BASES[agreement.basis]
    rank = n_features - max(0, len(whole) - (not rule.centred))
    if rank < agreement.n_components <= n_features and not rule.under_dp:
        yield (
            f"n_components={agreement.n_components} is above the {rank} columns that no rows make "
            f"dependent, since those of each of {', '.join(whole)} add up to one: name a base for "
            f"{'each' if rule.centred else 'all but one'} of them, or n_components={rank} at most"
        )
    if n_anchor_rows < agreement.n_components:
        yield f"n_anchor_rows={n_anchor_rows} is below n_components, so images would lack rank"
    if agreement.anchor == "isometric" and n_anchor_rows < n_features:
        yield f"an isometric anchor needs n_anchor_rows >= {n_features}, not {n_anchor_rows}"
    if agreement.anchor == "isometric" and n_features > MAX_ISOMETRIC_FEATURES:
        yield f"{n_features} features are above {MAX_ISOMETRIC_FEATURES}: use anchor='gaussian'"
    needs_public = agreement.anchor in FROM_PUBLIC_ROWS or agreement.basis == "public"
    if needs_public != (agreement.public_rows_sha256 is not None):
        yield "public_rows_sha256 goes with a public basis or a public or smote anchor"
    if (agreement.precision == "int8") != (agreement.int8_range is not None):
        yield "int8_range goes with precision='int8', and only with it"


_REGRESSIONS = ("classification", "regression", "count", "survival")
FOR_TASKS = {
    **dict.fromkeys(("time", "fewest_leavers"), ("table",)),
    **dict.fromkeys(("event", "horizons"), ("survival", "effect", "table")),
    **dict.fromkeys(("entry", "stratum", "strata_by_party"), ("survival",)),
    **dict.fromkeys(("errors", "compare_parties"), _REGRESSIONS),
    "weight": (*_REGRESSIONS, "table"),
    **dict.fromkeys(("treatment", "estimators", "trim", "caliper"), ("effect",)),
    "exposure": ("count",),
    "grid": ("survival", "table"),
}
"""The terms of an outcome, and which tasks they are for."""


def _minimum_problems(agreement: "Agreement") -> Iterator[str]:
    if agreement.minimum_parties > len(agreement.parties):
        n_parties = len(agreement.parties)
        yield f"minimum_parties={agreement.minimum_parties} is above the {n_parties} parties"


def task_problems(agreement: "Agreement") -> Iterator[str]:
    yield from _minimum_problems(agreement)
    task, model = agreement.task, agreement.model
    grouped = task in {"classification", "clustering"} or bool(task == "table" and agreement.label)
    if grouped != (len(agreement.classes) > 1):
        yield "classification, clustering, a table by label need at least two classes, others none"
    release = "sums" if task == "table" else "rows" if task in UNLABELLED else agreement.release
    if agreement.release != release:
        yield f"task='{task}' goes with release='{release}'"
    if (task in MODELLESS) != (model is None):
        yield "every task but representation and table names a model, and these have none"
    elif model is not None:
        family(model, task)
    for name in agreement.models:
        if task not in FAMILIES[name].tasks:
            yield f"models names '{name}', which is no family for {task}"
        if FAMILIES[name].carries_rows:
            yield f"models names '{name}', whose file is made of rows that every party could read"
    if agreement.models and model is not None and model not in agreement.models:
        yield f"model='{model}' is not among models"
    real = agreement.enrolled or agreement.analyst
    if real and model is not None and FAMILIES[model].carries_rows:
        yield f"model='{model}' carries rows and is for simulations, and somebody is enrolled here"
    beside = agreement.outcome or model in TABULAR
    yield from _outcome_problems(agreement, agreement.outcome) if beside else ()
    yield from _group_problems(agreement) if agreement.groups else ()


def _outcome_problems(agreement: "Agreement", outcome: Outcome | None) -> Iterator[str]:
    task, given, usual = agreement.task, outcome or Outcome(), dict(Outcome())
    named = [agreement.label, *given.columns.values()]
    if len({*named}) < len(named):
        yield "label and what [outcome] names are not of different columns"
    for name, value in given:
        if value != usual[name] and task not in FOR_TASKS[name]:
            tasks = "', '".join(FOR_TASKS[name])
            yield f"outcome.{name} is for task='{tasks}' alone"
    for name in ("grid", "horizons"):
        if [*(times := getattr(given, name))] != sorted({*times}):
            yield f"the times of outcome.{name} do not rise"
    if task == "table":
        yield from _curve_problems(given)
        return
    if agreement.model in TABULAR:
        yield from _table_problems(agreement)
    else:
        yield "an [outcome] table goes with a model of coefficients, as 'cox', 'ols' or 'logit'"
    yield from _effect_problems(given) if task == "effect" else _other_problems(given, agreement)
    if given.horizons and (given.stratum or given.strata_by_party):
        yield "outcome.horizons take one baseline, and with strata each has its own"


def _curve_problems(outcome: Outcome) -> Iterator[str]:
    curves = [bool(each) for each in (outcome.time, outcome.event, outcome.grid)]
    alone = outcome.weight and outcome.fewest_leavers == Outcome().fewest_leavers
    if any(curves) != all(curves) or not (all(curves) or alone):
        yield "task='table' takes time, event and grid of an [outcome] table, weight, or no table"
    if outcome.horizons and outcome.horizons[-1] > max(outcome.grid, default=0.0):
        yield "outcome.horizons lie beyond the last time of grid, where nothing is counted"


def _other_problems(given: Outcome, agreement: "Agreement") -> Iterator[str]:
    task, model = agreement.task, agreement.model
    if model == "firth" and given.errors != "model":
        yield "model='firth' takes errors='model'"
    if model == "negative_binomial" and given.weight:
        yield "model='negative_binomial' takes no weight: 'poisson' does, with errors='robust'"
    if given.errors == "party" and 0 < len(agreement.parties) < FEWEST:
        yield f"errors='party' takes {FEWEST} parties or more: from few they are far too small"
    if task == "survival" and not given.event:
        yield "task='survival' needs an [outcome] table with event, and time as the label"


def _effect_problems(given: Outcome) -> Iterator[str]:
    if not given.treatment:
        yield "task='effect' needs an [outcome] table with treatment, a column of 0 and 1"
    if bool(given.event) != bool(given.horizons):
        yield "outcome.event and outcome.horizons of an effect go together"
    if given.event and given.estimators != ("weighting",):
        yield "outcome.event takes estimators=['weighting']: others need every row's whole time"
    if len({*given.estimators}) < len(given.estimators):
        yield "outcome.estimators name one twice"


def _table_problems(agreement: "Agreement") -> Iterator[str]:
    model, n_features = agreement.model, agreement.n_features
    if agreement.dp is not None:
        yield f"model='{model}' takes no [dp]"
    by_rows = agreement.release == "rows"
    if by_rows and agreement.n_components != n_features:
        yield f"model='{model}' takes n_components={n_features}: with fewer, coefficients are wrong"
    if by_rows and agreement.precision not in {"fp64", "fp32"}:
        yield f"model='{model}' takes precision='fp64' or 'fp32': rounding would hide dependence"
    if by_rows and agreement.outcome is not None and agreement.outcome.grid:
        yield "outcome.grid goes with release='sums': of rows times are exact"
    if by_rows and agreement.basis != "haar":
        yield f"model='{model}' takes basis='haar', which every party can make whatever its rows"
    if len(agreement.allowed_models) > 1:
        yield f"model='{model}' stands alone in models: who tries several, prints the luckiest"
    if model in {"logit", "firth"} and len(agreement.classes) != 2:  # noqa: PLR2004 -- odds are of two
        yield f"model='{model}' takes two classes, the second of which is what odds are of"
    some = [each for each in agreement.features if isinstance(each, CategoryFeature)]
    if whole := [each.name for each in some if each.base is None and len(each.levels) > 1]:
        yield f"a table compares levels with a base, and {', '.join(whole)} has none"
