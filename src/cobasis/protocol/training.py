"""All parties' aligned rows, eq. (7), and what is fitted to them besides a family with labels.

Aligned rows are a view of uploads, made anew whenever it is looked at. Where they fit in memory
they are one block, party after party. Otherwise a block takes from each party one of equal stripes
of its rows: a party's rows are in an order that only it knows, so a stripe is a random sample of
them, and a block one of everybody's. Blocks party by party would show mini-batches the labels of
one party at a time. Inside such a block rows are shuffled as well.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from cobasis.errors import LabelError, NotFiniteError, OptionError
from cobasis.features.outcome import Outcome
from cobasis.linalg.arrays import Integers, Matrix
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
from cobasis.models.passes import Block
from cobasis.models.trainer import Model, train
from cobasis.models.worth import COMPARED_ROWS, Figure, cross_validated
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import Return, Upload
from cobasis.statistics.effects import fit_effects
from cobasis.statistics.regression import fit_regression

if TYPE_CHECKING:
    from cobasis.protocol.analyst import Analyst

MOST_CELLS = 2**27
"""Numbers of all rows together that are one block: 1 GiB."""

BLOCK_BYTES = 64 * 2**20
"""Large enough for quick reads, small enough that several are in memory at once."""

_ROWS_AT_ONCE = 32_768

Part = tuple[str, int, int]  # a party, and its first row and the one behind its last


class AlignedRows:
    """Everybody's ``X_i F_i G_i``, with labels, block by block."""

    def __init__(
        self, uploads: Mapping[str, Upload], changes_of_basis: Mapping[str, Matrix]
    ) -> None:
        self._uploads, self._changes = uploads, changes_of_basis
        self.sizes = {party: uploads[party].rows.shape[0] for party in uploads}
        self.n_rows = sum(self.sizes.values())
        self.n_columns = int(changes_of_basis[next(iter(uploads))].shape[1])
        n_cells, self.n_blocks = self.n_rows * self.n_columns, 1
        if n_cells > MOST_CELLS:
            self.n_blocks = min(self.n_rows, -(-8 * n_cells // BLOCK_BYTES))

    def block(self, index: int) -> Block:
        """Read, align and shuffle one block; a single one keeps the parties' order."""
        parts = list(self._stripes(index))
        if self.n_blocks == 1:
            return self._read(parts, None)
        n_rows = sum(stop - start for _, start, stop in parts)
        # seeded by the block: every pass, and every worker, sees the same rows in the same order
        return self._read(parts, np.random.default_rng([index, n_rows]).permutation(n_rows))

    def sample(self, n_rows: int) -> Block:
        """Read the first rows of each party, as many as are its share; at most all."""
        parts = [(party, 0, size) for party, size in self.shares(n_rows).items() if size]
        return self._read(parts, None)

    def shares(self, n_rows: int) -> dict[str, int]:
        ends = np.cumsum([0, *self.sizes.values()]) * min(n_rows, self.n_rows) // self.n_rows
        return dict(zip(self.sizes, np.diff(ends).tolist(), strict=True))

    def only(self, blocks: Sequence[int]) -> "AlignedRows":
        """Return a view that holds uploads and changes of basis of these blocks alone."""
        parties = {party for index in blocks for party, *_ in self._stripes(index)}
        view = object.__new__(AlignedRows)
        view.__dict__.update(self.__dict__)
        view._uploads = {party: self._uploads[party] for party in self.sizes if party in parties}
        view._changes = {party: self._changes[party] for party in view._uploads}
        return view

    def _stripes(self, index: int) -> Iterator[Part]:
        # what does not divide evenly goes to one block after the other, party after party: were it
        # each party's first blocks, 10,000 parties of one row would all be in block 0
        whole, first = self.n_blocks, 0
        for party, size in self.sizes.items():
            each, more = divmod(size, whole)
            start, stop = (
                each * bound
                + max(0, min(bound, first + more) - first)
                + max(0, min(bound, first + more - whole))
                for bound in (index, index + 1)
            )
            first = (first + more) % whole
            if start < stop:
                yield party, start, stop

    def _read(self, parts: Sequence[Part], places: Integers | None) -> Block:
        n_rows, done = sum(stop - first for _, first, stop in parts), 0
        rows, labels = np.empty((n_rows, self.n_columns)), np.zeros(0)
        for party, first, last in parts:
            upload, change = self._uploads[party], self._changes[party]
            for start in range(first, last, _ROWS_AT_ONCE):
                stop = min(start + _ROWS_AT_ONCE, last)
                aligned = upload.rows[start:stop].astype(np.float64, copy=False) @ change
                whole = upload.labels
                told = np.zeros(stop - start) if whole is None else whole[start:stop]
                # what came in was finite; a store's disk may have turned a bit since
                numbers = told.view("<f8") if told.dtype.names else told
                if not (np.isfinite(aligned).all() and np.isfinite(numbers).all()):
                    raise NotFiniteError(
                        f"the rows or labels of party '{party}' are not all finite, so no "
                        "model can be trained on them. Have the upload made again, or leave the "
                        "party out."
                    )
                if not done:
                    labels = np.empty(n_rows, dtype=told.dtype)
                place = slice(done, done + stop - start)
                here: slice | Integers = place if places is None else places[place]
                rows[here], labels[here] = aligned, told
                done += stop - start
        return Block(rows, labels)


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
    rest = {name: each for name, each in analyst.uploads.items() if name != returned.party}
    model = AGREED_AS[like.family][0] if isinstance(like, Chain) else None
    if (
        returned.party not in analyst.uploads  # one of a block, whose rows are not its alone
        or model is None
        or not FAMILIES[model].additive
        or agreed.dp is not None
        or agreed.groups
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
