"""The round behind `simulate`: keys from a seed, and the agreement that nobody signs.

A module of its own, because it takes all of the round with it: whoever imports `simulate` waits
for that until the first call.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, cast, get_args

import numpy as np
import numpy.typing as npt

from cobasis.algorithms import AlignerName, AnchorKind, BasisName, SpanCondition
from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS
from cobasis.algorithms.base import Aligner
from cobasis.algorithms.bases import bases_under
from cobasis.errors import FeatureError, LabelError, OptionError, ShapeError
from cobasis.features.contract import (
    CategoryFeature,
    NumericFeature,
    listed_features,
    numeric_features,
    width_of,
)
from cobasis.features.encoder import column_names, encode
from cobasis.linalg.rng import KEY_BYTES
from cobasis.models import Estimator, ModelName, Task
from cobasis.models.families import DEFAULT_MODELS
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.analyst import Analyst
from cobasis.protocol.dp_terms import DPTerms
from cobasis.protocol.messages import as_labels
from cobasis.protocol.party import Party
from cobasis.protocol.round import Round, Rows
from cobasis.protocol.secrets import ConsortiumSecret, PartyKey, SecretBasis, public_rows_digest

WORDS: Final[Mapping[str, Any]] = {
    "task": Task,
    "aligner": AlignerName,
    "anchor": AnchorKind,
    "basis": BasisName,
    "model": ModelName,
    "span_condition": SpanCondition,
}
"""The options that are one of some words; an aligner and a model may be objects as well."""

_PAIR = 2
_OF_THE_RUN = ("exclude", "allow_row_carrying")


def round_of(
    *,
    rows: Rows,
    rng: np.random.Generator,
    complete_bases: bool,
    span_condition: SpanCondition | None,
    aligner: AlignerName | Aligner,
    public_rows: npt.ArrayLike | None,
    **options: Any,  # noqa: ANN401
) -> tuple[Round, dict[str, SecretBasis] | None]:
    """Return a round ready to run, and everybody's basis where a condition makes them."""
    given = options | {"span_condition": span_condition, "public_rows": public_rows}
    _refuse_options(rows, rng=rng, aligner=aligner, **given)
    table, _ = next(iter(rows.values()))
    try:
        shape = np.shape(table)
    except ValueError:  # of rows of several lengths
        shape = ()
    if len(shape) != 2:  # noqa: PLR2004 -- a table has two dimensions
        raise ShapeError(
            f"the first party's rows are no table: they have shape {shape}, or are of several "
            "lengths. Give 2 dimensions, every row as long as the others."
        )
    secret = ConsortiumSecret(rng.bytes(KEY_BYTES), simulated=True)
    keys = {name: PartyKey(rng.bytes(KEY_BYTES), simulated=True) for name in rows}
    agreement = _agreement(
        *(rows, secret, f"simulation-{rng.bytes(8).hex()}"),
        aligner=aligner if isinstance(aligner, str) else "odc",
        public_rows=public_rows,
        **{name: value for name, value in options.items() if name not in _OF_THE_RUN},
    )
    join = partial(Party, agreement=agreement, secret=secret, complete_basis=complete_bases)
    parties = {name: join(name, key=key, public_rows=public_rows) for name, key in keys.items()}
    analyst = Analyst(agreement, aligner=None if isinstance(aligner, str) else aligner)
    made = Round(agreement=agreement, parties=parties, analyst=analyst)
    return made, span_condition and _under(span_condition, rows, agreement, keys)


def _refuse_options(rows: object, *, rng: object, **options: Any) -> None:  # noqa: ANN401
    """Raise OptionError for all that the call gave and `simulate` does not take."""
    aligner, model, public_rows = options["aligner"], options["model"], options["public_rows"]
    public = options["anchor"] in FROM_PUBLIC_ROWS or options["basis"] == "public"
    wrong = {
        "rows is no mapping of party names to (X, y)": not isinstance(rows, Mapping),
        "rng is no numpy.random.Generator; take np.random.default_rng(seed)": not isinstance(
            rng, np.random.Generator
        ),
        "aligner is neither a name nor an aligner such as ODC()": not isinstance(aligner, str)
        and (isinstance(aligner, type) or not hasattr(aligner, "fit_kind")),
        "model is neither a family's name nor an estimator with fit": not (
            isinstance(model, str | None) or hasattr(model, "fit")
        ),
        "dp is no DPTerms": not isinstance(options["dp"], DPTerms | None),
        "public_rows go with a public basis or a public or smote anchor, only with one": public
        != (public_rows is not None),
    }
    found = [what for what, it_is in wrong.items() if it_is]
    for name, words in WORDS.items():
        value, taken = options[name], get_args(words)
        if value not in taken and (isinstance(value, str) or name in {"task", "anchor", "basis"}):
            found.append(f"{name}={value!r} does not exist; there are {', '.join(taken)}")
    for name in ("n_components", "n_anchor_rows"):
        value = options[name]
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and value > 0
        if not whole and (name, value) != ("n_anchor_rows", None):
            found.append(f"{name}={value!r} is no whole number above zero")
    if isinstance(rows, Mapping):
        pairs = (isinstance(own, tuple | list) and len(own) == _PAIR for own in rows.values())
        named = all(isinstance(name, str) and name for name in rows)
        if not (named and all(pairs)):
            found.append("rows is not all of the form {'north': (X, y)}; without labels (X, None)")
    if found:
        raise OptionError(f"{'; '.join(found)}. Nothing has run yet: correct it.")
    if not rows:
        raise ShapeError(
            "there is no party, so there is nothing to simulate. Give rows={'north': (X, y)}."
        )


def _agreement(
    rows: Rows,
    secret: ConsortiumSecret,
    round_id: str,
    *,
    task: Task,
    n_components: int,
    anchor: AnchorKind,
    n_anchor_rows: int | None,
    model: ModelName | Estimator | None,
    features: Iterable[NumericFeature | CategoryFeature] | None,
    public_rows: npt.ArrayLike | None,
    **fields: Any,  # noqa: ANN401
) -> Agreement:
    """Write the agreement that the simulated parties would have signed."""
    table, _ = next(iter(rows.values()))
    if features is not None:
        named = listed_features(features)
    elif hasattr(table, "columns"):
        named = numeric_features(_names_of(table))
    else:
        named = numeric_features(f"x{column}" for column in range(np.shape(table)[1]))
    n_features = width_of(named)
    if n_anchor_rows is None:
        n_anchor_rows = n_features if anchor == "isometric" else max(1000, n_features)
        if public_rows is not None and anchor == "public":
            n_anchor_rows = len(np.asarray(public_rows))
    family = cast("ModelName", model) if isinstance(model, str) else DEFAULT_MODELS[task]
    return Agreement(
        round_id=round_id,
        parties=tuple(rows),
        features=named,
        task=task,
        n_components=int(n_components),
        classes=_classes(rows) if task == "classification" else (),
        anchor=anchor,
        n_anchor_rows=int(n_anchor_rows),
        public_rows_sha256=None if public_rows is None else public_rows_digest(public_rows),
        model=None if task == "representation" else family,
        commitment=secret.commitment(round_id),
        **fields,
    )


def _names_of(frame: object) -> tuple[str, ...]:
    """Return the names of a data frame's columns; FeatureError where they are no text."""
    names = column_names(frame)
    if names is None:
        raise FeatureError(
            "the first party's data frame has columns without a name that is text. Write "
            "X.columns = X.columns.astype(str), or give arrays."
        )
    return names


def _classes(rows: Rows) -> tuple[Any, ...]:
    """Return all labels that occur, sorted, as Python's own integers or text."""
    found: set[Any] = set()
    for name, (_, labels) in rows.items():
        if labels is None:
            raise LabelError(
                f"party '{name}' gave no labels, and task='classification' needs one per row."
            )
        found.update(as_labels(labels, name=f"the labels of party '{name}'").ravel().tolist())
    kinds = {type(label) for label in found}
    if kinds and kinds <= {int, bool}:
        found = {int(label) for label in found}
    elif kinds != {str}:
        listed = ", ".join(sorted(kind.__name__ for kind in kinds)) or "none"
        raise LabelError(
            f"the parties' labels are of type {listed}; classes are either all integers or all "
            "text. Convert them, or use task='regression'."
        )
    if len(found) == 1:
        raise LabelError(
            f"all labels of all {len(rows)} parties are of one class, so there is nothing to tell "
            "apart. Check the label column."
        )
    return tuple(sorted(found))


def _under(
    condition: SpanCondition,
    rows: Rows,
    agreement: Agreement,
    keys: Mapping[str, PartyKey],
) -> dict[str, SecretBasis]:
    """Make every party's basis under one of the papers' four conditions."""
    if agreement.basis != "svd":
        raise OptionError(
            f"span_condition='{condition}' makes all bases itself, so basis='{agreement.basis}' "
            "would have no effect. Give one of the two."
        )
    tables = {
        name: encode(table, agreement.features, party=name) for name, (table, _) in rows.items()
    }
    columns = bases_under(
        condition,
        tables,
        n_components=agreement.n_components,
        streams={name: key.stream("rotation") for name, key in keys.items()},
    )
    oblique = not condition.endswith("_orth")
    return {name: SecretBasis(each, party=name, oblique=oblique) for name, each in columns.items()}
