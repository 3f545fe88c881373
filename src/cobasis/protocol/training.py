"""What an analyst fits besides a family with labels: regressions, clusters, what is compared."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from cobasis.errors import LabelError, OptionError
from cobasis.features.outcome import Outcome
from cobasis.models import (
    AGREED_AS,
    FAMILIES,
    Estimator,
    Mixture,
    ModelName,
    RegressionName,
    family,
)
from cobasis.models.chain import Chain, regression_chain
from cobasis.models.local import MOST_PARTIES
from cobasis.models.mixtures import FEWEST, MOST_ROWS, fit_clusters, fit_novelty
from cobasis.models.trainer import Model, train
from cobasis.models.worth import COMPARED_ROWS, Figure, cross_validated
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.aligned import AlignedRows
from cobasis.protocol.messages import Return
from cobasis.statistics.effects import fit_effects
from cobasis.statistics.regression import fit_regression

if TYPE_CHECKING:
    from cobasis.protocol.analyst import Analyst


def fit_agreed(rows: AlignedRows, agreement: Agreement) -> Chain:
    if rows.n_blocks > 1:
        raise OptionError(
            f"model='{agreement.model}' holds all rows in memory, and {rows.n_rows:,} rows of "
            f"{rows.n_columns} columns are more than is held. Agree on fewer columns."
        )
    outcome = agreement.outcome or Outcome()
    owners = np.repeat([*rows.sizes], [*rows.sizes.values()])
    if agreement.task == "effect":
        seed = int.from_bytes(agreement.digest()[:4])
        fit = fit_effects(*rows.block(0), outcome=outcome, seed=seed)
    else:
        model = cast("RegressionName", agreement.model)
        fit = fit_regression(*rows.block(0), model=model, outcome=outcome, owners=owners)
    return regression_chain(fit, n_classes=len(agreement.classes))


def weighed_by_place(model: Estimator, agreement: Agreement) -> Estimator:
    """Return an estimator whose class weights go, as labels do, by the places of classes."""
    from sklearn.base import clone  # noqa: PLC0415 -- keeps imports light

    places = {name: at for at, name in enumerate(agreement.classes)}
    weights = {
        name: {places[label]: weight for label, weight in told.items()}
        for name, told in getattr(model, "get_params", dict)().items()
        if name.endswith("class_weight") and isinstance(told, Mapping) and {*told} <= {*places}
    }
    return clone(model).set_params(**weights) if weights else model


def fit_unlabelled(
    rows: AlignedRows, agreement: Agreement, *, model: ModelName | Estimator, report: Report
) -> Chain:
    """Fit agreed clusters, or the density of rows; an estimator of the user's own is refused."""
    family(model, agreement.task)
    report(f"fitting {model}", 0, 1)
    fewest, seed = max(FEWEST, agreement.fewest_rows), int.from_bytes(agreement.digest()[:4])
    some, sizes = rows.sample(MOST_ROWS).rows, [*rows.shares(MOST_ROWS).values()]
    owners, told = np.repeat(np.arange(len(sizes)), sizes), {"fewest": fewest, "seed": seed}
    if agreement.task == "novelty":
        return fit_novelty(some, owners, **told)
    kind, names = cast("Mixture", model), agreement.classes
    return fit_clusters(some, owners, model=kind, names=names, **told)


def shares_of(analyst: "Analyst") -> tuple[float, ...]:
    """Return how much of all rows each cluster has, to whole percent; empty in other tasks."""
    if analyst.agreement.task != "clustering":
        return ()
    model = cast("Model", analyst.train())
    rows = AlignedRows(analyst.uploads, analyst.alignment.changes_of_basis)
    found = model.predict(rows.sample(MOST_ROWS).rows)
    counts = np.bincount(found, minlength=len(analyst.agreement.classes)) / len(found)
    return tuple(np.round(counts, 2).tolist())


def model_without(analyst: "Analyst", returned: Return) -> Chain | None:
    """Train a return's family on everybody's rows but its party's.

    None under noise, for other families, for fewer than two others or too many, and for rows that
    are more than one block.
    """
    agreed, like = analyst.agreement, returned.model
    if returned.party not in analyst.uploads:  # one of a block, whose rows are not its alone
        return None
    rest = {name: each for name, each in analyst.uploads.items() if name != returned.party}
    model = AGREED_AS[like.family][0] if isinstance(like, Chain) else None
    if (
        model is None
        or not FAMILIES[model].additive
        or agreed.dp is not None
        or not 1 < len(rest) < MOST_PARTIES
    ):
        return None
    rows = AlignedRows(rest, analyst.alignment.changes_of_basis)
    seed, n_classes = int.from_bytes(agreed.digest()[:4]), len(agreed.classes)
    if rows.n_blocks > 1:
        return None
    try:
        made = train(rows, model=model, task=agreed.task, seed=seed, n_classes=n_classes)
    except LabelError:  # all of the others are of one class
        return None
    return cast("Chain", made)


def compared(
    analyst: "Analyst", models: Iterable[ModelName], *, report: Report = silent
) -> dict[ModelName, dict[str, Figure | None]]:
    """Cross-validate families on a sample of aligned rows, for these parties and a new one."""
    report("comparing families", 0, 1)
    rows = AlignedRows(analyst.uploads, analyst.alignment.changes_of_basis)
    sizes = [*rows.shares(COMPARED_ROWS).values()]
    block, owners = rows.sample(COMPARED_ROWS), np.repeat(np.arange(len(sizes)), sizes)
    task = analyst.agreement.task
    return {each: cross_validated(block, owners, model=each, task=task, seed=0) for each in models}
