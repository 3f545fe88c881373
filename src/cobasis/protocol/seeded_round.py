"""The round behind `simulate`: keys from a seed, and the agreement that nobody signs.

A module of its own, because it takes all of the round with it: whoever imports `simulate` waits
for that until the first call.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, get_args

import numpy as np

from cobasis.algorithms import AlignerName, AnchorKind, BasisName, SpanCondition
from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS
from cobasis.algorithms.bases import bases_under
from cobasis.errors import FeatureError, LabelError, OptionError, ShapeError
from cobasis.features.contract import listed_features, numeric_features, width_of, with_bases
from cobasis.features.encoder import column_names, encode
from cobasis.features.maps import Columns, Mixed, RandomFourier, width_under
from cobasis.features.outcome import VALUE
from cobasis.linalg.arrays import Matrix, as_table
from cobasis.linalg.rng import KEY_BYTES
from cobasis.models import DEFAULT_MODELS, TABULAR, ModelName, Task
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.analyst import Analyst
from cobasis.protocol.dp_terms import DPTerms
from cobasis.protocol.masks import MaskKey
from cobasis.protocol.messages import as_labels
from cobasis.protocol.newton import N_STEPS
from cobasis.protocol.party import Party
from cobasis.protocol.round import Round, Rows, SumsRound, run_sums
from cobasis.protocol.secrets import ConsortiumSecret, PartyKey, SecretBasis, public_rows_digest
from cobasis.protocol.simulation import simulate
from cobasis.protocol.sums_terms import MOST_MAPS, Release, SumsTerms

WORDS: Final[Mapping[str, Any]] = {
    "task": Task,
    "aligner": AlignerName,
    "anchor": AnchorKind,
    "basis": BasisName,
    "model": ModelName,
    "span_condition": SpanCondition,
    "release": Release,
}
"""The options that are one of some words; an aligner and a model may be objects as well."""

_PAIR = 2  # rows and labels
NO_OBJECTS = {"task", "anchor", "basis", "release"}


def round_of(*, rows: Rows, **given: Any) -> tuple[Round, dict[str, Any]]:  # noqa: ANN401
    """Return a round ready to run, and with what: bases where a condition makes them, and more."""
    _refuse_options(rows, given, () if given["maps"] is None else _not_maps(given["maps"], most=1))
    rng, aligner, condition = given["rng"], given["aligner"], given["span_condition"]
    secret = ConsortiumSecret(rng.bytes(KEY_BYTES), simulated=True)
    keys = {name: PartyKey(rng.bytes(KEY_BYTES), simulated=True) for name in rows}
    agreement = _agreement(rows, secret, f"simulation-{rng.bytes(8).hex()}", given)
    same = {"agreement": agreement, "secret": secret, "public_rows": given["public_rows"]}
    parties = {name: Party(name, key=key, **same) for name, key in keys.items()}
    analyst = Analyst(agreement, aligner=None if isinstance(aligner, str) else aligner)
    made = Round(agreement=agreement, parties=parties, analyst=analyst)
    told = {name: given[name] for name in ("exclude", "allow_row_carrying")}
    told["model"] = None if isinstance(given["model"], str) else given["model"]
    return made, told | {"bases": condition and _under(condition, rows, agreement, keys)}


def _refuse_options(rows: object, given: dict[str, Any], wrong: Iterable[str] = ()) -> None:
    """Raise OptionError for what `simulate` does not take; note whether it is to give a table."""
    aligner, model, dp = given["aligner"], given["model"], given["dp"]
    named = DEFAULT_MODELS.get(given["task"]) if model is None else model  # a forest is falsy
    given["tabular"] = isinstance(named, str) and named in TABULAR
    public = given["anchor"] in FROM_PUBLIC_ROWS or given["basis"] == "public"
    made = hasattr(aligner, "fit_kind") and not isinstance(aligner, type)
    right = {
        "rng is no numpy.random.Generator; take np.random.default_rng(seed)": (
            isinstance(given["rng"], np.random.Generator)
        ),
        "aligner is neither a name nor an aligner such as ODC()": isinstance(aligner, str) or made,
        "model is neither a family's name nor an estimator with fit": (
            isinstance(model, str | None) or hasattr(model, "fit")
        ),
        "dp is no DPTerms": isinstance(dp, DPTerms | None),
        "task='table' is for parties' own tables, in a round": given["task"] != "table",
        f"span_condition makes all bases, so basis={given['basis']!r} would have no effect": (
            given["span_condition"] is None or given["basis"] == "svd"
        ),
        "public_rows go with basis='public' or anchor='public' or 'smote'; give both, or neither": (
            public == (given["public_rows"] is not None)
        ),
    }
    found = [*wrong, *(what for what, it_is in right.items() if not it_is)]
    for name, words in WORDS.items():
        value, taken = given[name], get_args(words)
        if value not in taken and (isinstance(value, str) or name in NO_OBJECTS):
            found.append(f"{name} {value!r} does not exist; there are {', '.join(taken)}")
    for name in ("n_components", "n_anchor_rows", "n_clusters") * (given["release"] != "sums"):
        value = given[name]
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and value > 0
        if not whole and (value is not None or (name == "n_components" and not given["tabular"])):
            found.append(f"{name}={value!r} is no whole number above zero")
    if not isinstance(rows, Mapping) or not all(
        isinstance(name, str) and name and isinstance(own, tuple | list) and len(own) == _PAIR
        for name, own in rows.items()
    ):
        found.append("rows is not of the form {'north': (X, y)}; without labels (X, None)")
    if found:
        raise OptionError(f"{'; '.join(found)}. Nothing has run yet: correct it.")
    if not rows:
        raise ShapeError(
            "there is no party, so there is nothing to simulate. Give rows={'north': (X, y)}."
        )


def _not_maps(maps: object, *, most: int) -> Iterator[str]:
    if not (
        isinstance(maps, Sequence)
        and 0 < len(maps) <= most
        and all(isinstance(each, Columns | RandomFourier | Mixed) for each in maps)
    ):
        yield f"maps are not 1 to {most} of Columns, RandomFourier and Mixed"


def _not_of_sums(given: Mapping[str, Any]) -> Iterator[str]:
    right = inspect.signature(simulate).parameters
    taken = {"rng", "release", "task", "maps", "features", "dp"}
    taken |= {"model", "outcome"} if given["tabular"] else set()
    if given["dp"] is not None and given["maps"] is None:
        yield "dp takes a map with it, maps=[RandomFourier(...)]: the default one looks at rows"
    for name in filter(given.__contains__, right):
        value = given[name]
        default = right[name].default  # to compare a table with nothing would give a table
        if name not in taken and value is not default and (np.ndim(value) or value != default):
            told = name if np.ndim(value) else f"{name} {value!r:.40}"
            yield f"{told} is for rows, and release='sums' sends none"
    if given["maps"] is not None:
        yield from _not_maps(given["maps"], most=MOST_MAPS)


def round_of_sums(*, rows: Rows, **given: Any) -> SumsRound:  # noqa: ANN401
    _refuse_options(rows, given, _not_of_sums(given))
    rng, tabular, shared = given["rng"], given["tabular"], _shared(rows, given)
    tables = {name: encode(own, shared["features"], party=name) for name, (own, _) in rows.items()}
    sizes = [len(each) for each in tables.values()]
    agreement = Agreement(
        **shared,
        round_id=f"simulation-{rng.bytes(8).hex()}",
        model=(given["model"] or DEFAULT_MODELS[given["task"]]) if tabular else "ridge",
        minimum_parties=len(rows),
        release="sums",
        sums=SumsTerms(
            maps=() if tabular else tuple(given["maps"] or _default_maps(tables)),
            most_rows=max(sizes) if given["dp"] is None else given["dp"].most_rows,
            most_rows_in_all=sum(sizes),
            **_ranges(rows, given),
        ),
    )
    keys = {name: MaskKey(rng.bytes(KEY_BYTES), simulated=True) for name in rows}
    return run_sums(rows, agreement=agreement, keys=keys)


def _ranges(rows: Rows, given: Mapping[str, Any]) -> dict[str, Any]:
    task, outcome, found = given["task"], given["outcome"], dict[str, Any]()
    if task in {"regression", "count"}:
        low, high = _range_of(rows, VALUE)
        found["target_range"] = (0.0 if task == "count" else low, high)
    if outcome is not None and outcome.exposure:
        found["most_exposure"] = _range_of(rows, outcome.exposure)[1]
    if given["tabular"] and task != "regression":
        found["steps"] = 2 * N_STEPS if task == "count" else N_STEPS  # steep counts take 9 or 10
    return found


def _range_of(rows: Rows, column: str) -> tuple[float, float]:
    """Return a column's lowest and highest number; what is no number each party refuses."""
    told = (
        as_labels(labels, name=f"the labels of party '{name}'", column=column).ravel()
        for name, (_, labels) in rows.items()
    )
    numbers = [each for each in told if each.dtype.kind in "fiu" and np.isfinite(each).all()]
    low = min((float(each.min()) for each in numbers if len(each)), default=0.0)
    high = max((float(each.max()) for each in numbers if len(each)), default=0.0)
    return low, high if high > low else low + 1.0


def _default_maps(tables: Mapping[str, Matrix]) -> list[RandomFourier]:
    # The scale that scikit-learn's gamma="scale" stands for. A real agreement takes it from agreed
    # scales, of which encoded columns have a variance about 1.
    scale = float(np.sqrt(np.vstack(list(tables.values())).var(axis=0).sum() / 2)) or 1.0
    return [RandomFourier(bandwidth=share * scale) for share in (0.5, 1.0, 2.0)]


def _agreement(
    rows: Rows, secret: ConsortiumSecret, round_id: str, given: Mapping[str, Any]
) -> Agreement:
    task, anchor, basis = given["task"], given["anchor"], given["basis"]
    model, public, shared = given["model"], given["public_rows"], _shared(rows, given)
    if (task == "clustering") != (given["n_clusters"] is not None):
        raise OptionError("n_clusters goes with task='clustering', and only with it. Give both.")
    if task == "clustering":
        shared["classes"] = tuple(range(1, given["n_clusters"] + 1))
    n_features, n_anchor_rows = width_of(shared["features"]), given["n_anchor_rows"]
    if given["maps"]:
        shared["map"] = given["maps"][0]
        n_features = width_under(shared["map"], shared["features"])
    if n_anchor_rows is None:
        n_anchor_rows = n_features if anchor == "isometric" else max(1000, n_features)
        if anchor == "public":
            n_anchor_rows = len(np.asarray(public))
    if model is None or hasattr(model, "fit"):
        model = DEFAULT_MODELS.get(task)
    return Agreement(
        **shared,
        round_id=round_id,
        n_components=int(given["n_components"] or n_features),
        anchor=anchor,
        n_anchor_rows=int(n_anchor_rows),
        public_rows_sha256=None if public is None else public_rows_digest(public),
        basis="haar" if given["tabular"] and basis == "svd" else basis,
        aligner="odc" if hasattr(given["aligner"], "fit_kind") else given["aligner"],
        model=None if task == "representation" else model,
        commitment=secret.commitment(round_id),
    )


def _shared(rows: Rows, given: Mapping[str, Any]) -> dict[str, Any]:
    classes = _classes(rows) if given["task"] == "classification" else ()
    party, (table, _) = next(iter(rows.items()))
    if given["features"] is not None:
        features = listed_features(given["features"])
    elif hasattr(table, "columns"):
        names = column_names(table)
        if names is None:
            raise FeatureError(
                "the first party's data frame has columns without a name that is text. Write "
                "X.columns = X.columns.astype(str), or give arrays."
            )
        features = numeric_features(names)
    else:
        n_columns = as_table(table, name=f"the table of party '{party}'").shape[1]
        features = numeric_features(f"x{column}" for column in range(n_columns))
    return {
        "parties": tuple(rows),
        "features": with_bases(features, centred=True) if given["tabular"] else features,
        "classes": classes,
        "task": given["task"],
        "dp": given["dp"],
        "outcome": given["outcome"],
    }


def _classes(rows: Rows) -> tuple[Any, ...]:
    found: set[Any] = set()
    for name, (_, labels) in rows.items():
        own = as_labels(labels, name=f"the labels of party '{name}'", column=VALUE)
        found.update(own.ravel().tolist())
    kinds = {type(label) for label in found}
    if kinds and kinds <= {int, bool}:
        found = {int(label) for label in found}
    elif kinds != {str}:
        listed = ", ".join(sorted(kind.__name__ for kind in kinds)) or "none"
        raise LabelError(
            f"the parties' labels are of type {listed}; classes are either all integers or all "
            "text. Convert them and drop rows without one, or use task='regression'."
        )
    if len(found) == 1:
        raise LabelError(
            f"all labels of all {len(rows)} parties are of one class, so there is nothing to tell "
            "apart. Check the label column."
        )
    return tuple(sorted(found))


def _under(
    condition: SpanCondition, rows: Rows, agreement: Agreement, keys: Mapping[str, PartyKey]
) -> dict[str, SecretBasis]:
    tables = {
        name: agreement.mapped(encode(table, agreement.features, party=name))
        for name, (table, _) in rows.items()
    }
    streams = {name: key.stream("rotation") for name, key in keys.items()}
    size = agreement.n_components
    columns = bases_under(condition, tables, n_components=size, streams=streams)
    oblique = not condition.endswith("_orth")
    return {name: SecretBasis(each, party=name, oblique=oblique) for name, each in columns.items()}
