"""The one door through which a seed comes in: a whole round in one process."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.anchors import AnchorKind
from cobasis.algorithms.base import Aligner
from cobasis.algorithms.bases import BasisName
from cobasis.algorithms.conditions import SpanCondition, bases_under
from cobasis.algorithms.options import AlignerName
from cobasis.errors import LabelError, OptionError, ShapeError
from cobasis.features.category import CategoryFeature
from cobasis.features.encoding import encode, width_of
from cobasis.features.numeric import NumericFeature, numeric_features
from cobasis.linalg.rng import KEY_BYTES
from cobasis.models.families import Estimator, ModelName, Task, default_model
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.analyst import Analyst
from cobasis.protocol.choice import public_rows_digest
from cobasis.protocol.dp_terms import DPTerms
from cobasis.protocol.messages import as_labels
from cobasis.protocol.party import Party
from cobasis.protocol.round import Round, Rows
from cobasis.protocol.secrets import ConsortiumSecret, PartyKey, SecretBasis


def simulate(
    rows: Rows,
    *,
    rng: np.random.Generator,
    n_components: int,
    task: Task = "classification",
    aligner: AlignerName | Aligner = "odc",
    anchor: AnchorKind = "isometric",
    n_anchor_rows: int | None = None,
    basis: BasisName = "svd",
    model: ModelName | Estimator | None = None,
    features: Iterable[NumericFeature | CategoryFeature] | None = None,
    public_rows: npt.ArrayLike | None = None,
    span_condition: SpanCondition | None = None,
    complete_bases: bool = False,
    exclude: Iterable[str] = (),
    allow_row_carrying: bool = False,
    dp: DPTerms | None = None,
) -> Round:
    """Run a whole round in one process, with the real messages and secrets from a seed.

    Parameters
    ----------
    rows : mapping of str to (X, y)
        Every party's rows of shape (n_rows, n_features) and labels of shape (n_rows,).
    rng : numpy.random.Generator
        Fills the 32-byte keys. Everything made from them is marked as simulated.
    n_components : int
        l, columns of every secret basis.
    task : {"classification", "regression", "representation"}
        What the model is for.
    aligner : str or Aligner
        "odc", "gopp", "whitened", "imakura", "kawakami", or one with other options, of which
        the agreement then does not know.
    anchor : {"isometric", "gaussian", "uniform", "public", "smote"}
        The anchor's kind.
    n_anchor_rows : int, optional
        a; by default the number of features, for Gaussian, uniform and smote anchors at
        least 1,000, and that of the public rows for public ones.
    basis : {"svd", "pca", "lpp", "haar", "public", "consensus", "weighted_consensus"}
        How parties choose their bases.
    model : str or scikit-learn estimator, optional
        A family, or an estimator that is fitted as it is; by default logistic or ridge.
    features : iterable of NumericFeature or CategoryFeature, optional
        Names, centres and scales; by default x0, x1, ... as they are.
    public_rows : array-like of shape (n_public, n_features), optional
        For public and smote anchors and for public bases.
    span_condition : str, optional
        One of the papers' four, eq. (92), instead of a basis.
    complete_bases : bool
        Fill bases up with Haar columns where a party has too few rows.
    exclude : iterable of str
        Parties that the analyst leaves out by name.
    allow_row_carrying : bool
        Accept models that store rows.
    dp : DPTerms, optional
        Noise with a guarantee. From a seed it protects nobody, and costs what it costs.

    Returns
    -------
    Round
        ``round.parties[name].predict(rows)``, ``round.analyst.certificate``.

    Raises
    ------
    CobasisError
        As the steps of the round.

    Warns
    -----
    PrivacyWarning
        For uniform, public and smote anchors.

    Notes
    -----
    **Who sees what.** Everything is in one process, for research and for trying out. Between
    organisations use `Party` and `Analyst`, which have no seed.

    **Cost.** As ``Round.run``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(7)
    >>> table = rng.normal(size=(90, 5))
    >>> label = (table @ [3, 2, 1, 0, 0] > 0).astype(int)
    >>> rows = {name: (table[i::3], label[i::3]) for i, name in enumerate(["a", "b", "c"])}
    >>> done = simulate(rows, rng=rng, n_components=4)
    >>> done.parties["a"].predict(table[:3]).shape
    (3,)
    """
    _refuse_options(rows, rng, aligner, model)
    secret = ConsortiumSecret(rng.bytes(KEY_BYTES), simulated=True)
    keys = {name: PartyKey(rng.bytes(KEY_BYTES), simulated=True) for name in rows}
    agreement = _agreement(
        *(rows, secret, f"simulation-{rng.bytes(8).hex()}"),
        task=task,
        n_components=n_components,
        anchor=anchor,
        n_anchor_rows=n_anchor_rows,
        basis=basis,
        aligner=aligner if isinstance(aligner, str) else "odc",
        model=model,
        features=features,
        public_rows=public_rows,
        dp=dp,
    )
    join = partial(Party, agreement=agreement, secret=secret, complete_basis=complete_bases)
    parties = {name: join(name, key=key, public_rows=public_rows) for name, key in keys.items()}
    analyst = Analyst(agreement, aligner=None if isinstance(aligner, str) else aligner)
    return Round(agreement=agreement, parties=parties, analyst=analyst).run(
        rows,
        bases=None if span_condition is None else _under(span_condition, rows, agreement, keys),
        exclude=exclude,
        model=None if isinstance(model, str) else model,
        allow_row_carrying=allow_row_carrying,
    )


def _refuse_options(rows: object, rng: object, aligner: object, model: object) -> None:
    """Refuse what is no mapping, generator, aligner or estimator at all, and rows of nobody."""
    wrong = []
    if not isinstance(rows, Mapping):
        wrong.append("rows is no mapping of party names to (X, y)")
    if not isinstance(rng, np.random.Generator):
        wrong.append("rng is no numpy.random.Generator; take np.random.default_rng(seed)")
    if not isinstance(aligner, str) and (
        isinstance(aligner, type) or not hasattr(aligner, "fit_kind")
    ):
        wrong.append("aligner is neither a name nor an aligner such as ODC()")
    if not isinstance(model, str | None) and not hasattr(model, "fit"):
        wrong.append("model is neither a family's name nor an estimator with fit")
    if wrong:
        raise OptionError(f"simulate cannot start: {'; '.join(wrong)}. Change it in the call.")
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
    try:
        shape = np.shape(table)
    except ValueError:  # of rows of several lengths
        shape = ()
    if len(shape) != 2:  # noqa: PLR2004 -- a table has two dimensions
        raise ShapeError(
            f"the first party's rows are no table: they have shape {shape}, or are of several "
            "lengths. Give 2 dimensions, every row as long as the others."
        )
    named = tuple(features or numeric_features(f"x{column}" for column in range(shape[1])))
    if n_anchor_rows is None and public_rows is not None and anchor == "public":
        n_anchor_rows = len(np.asarray(public_rows))
    n_features = width_of(named)
    default_rows = n_features if anchor == "isometric" else max(1000, n_features)
    family = cast("ModelName", model) if isinstance(model, str) else default_model(task)
    return Agreement(
        round_id=round_id,
        parties=tuple(rows),
        features=named,
        task=task,
        n_components=int(n_components) if isinstance(n_components, np.integer) else n_components,
        classes=_classes(rows) if task == "classification" else (),
        anchor=anchor,
        n_anchor_rows=default_rows if n_anchor_rows is None else n_anchor_rows,
        public_rows_sha256=None if public_rows is None else public_rows_digest(public_rows),
        model=None if task == "representation" else family,
        commitment=secret.commitment(round_id),
        **fields,
    )


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
