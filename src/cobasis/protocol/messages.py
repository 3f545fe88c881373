"""Everything that travels between a party and the analyst; nothing else does.

Each message is frozen and names the agreement and the anchor it belongs to. `simulated`
marks what was drawn from a seed, which no bundle will carry to a real round. Arrays stay
out of a message's representation, so that no log shows what a person's row was made of.
"""

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.certificate import Evidence
from cobasis.errors import LabelError, LocalError
from cobasis.features.outcome import VALUE, Outcome, check_records, record_type
from cobasis.linalg.arrays import Integers, Matrix, as_matrix
from cobasis.models import OF_NUMBERS, UNLABELLED, Task
from cobasis.models.chain import Chain
from cobasis.models.trainer import TrainedModel
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.card import ModelCard
from cobasis.protocol.totals import Words

Labels: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.float64]
"""Positions of classes, numbers, or records of numbers where an outcome has several columns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    agreement_digest: bytes = field(repr=False)
    simulated: bool

    @property
    def n_bytes(self) -> int:
        """The bytes of a message's arrays, those of a return's models among them."""
        held = [getattr(self, each.name) for each in fields(self)]
        arrays = sum(each.nbytes for each in held if isinstance(each, np.ndarray))
        return arrays + sum(each.n_bytes for each in held if isinstance(each, Chain | TrainedModel))


@dataclass(frozen=True, kw_only=True)
class SpanProposal(Message):
    """Party to analyst, consensus bases only: the party's directions, seen by the anchor."""

    party: str
    anchor_tag: bytes
    # A V_i of its real directions, turned; weighted, A V_i S_i / sqrt(n_i)
    image: Matrix = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ConsensusSpan(Message):
    """Analyst to every party, consensus bases only: the common span, hidden by the anchor."""

    anchor_tag: bytes
    rows: Matrix = field(repr=False)  # Z, orthonormal
    contributors: tuple[str, ...]  # whose directions shaped it

    def digest(self) -> bytes:
        """Return the SHA-256 of all that everybody in the round has to have alike."""
        names = json.dumps(self.contributors).encode()
        rows = np.ascontiguousarray(self.rows, dtype="<f8").tobytes()
        return hashlib.sha256(self.agreement_digest + self.anchor_tag + names + rows).digest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload(Message):
    """Party to analyst: all that a party ever shows of its rows.

    Attributes
    ----------
    party : str
        Who sends it.
    agreement_digest, anchor_tag : bytes
        Which agreement and which anchor it belongs to.
    rows : ndarray of shape (n_rows, n_components)
        ``X_i F_i``, in an order that only the party knows.
    labels : ndarray of shape (n_rows,) or None
        Positions in the agreement's classes, or numbers; None where a task has none.
    anchor_image : ndarray of shape (n_anchor_rows, n_components)
        ``A F_i``.
    simulated : bool
        Drawn from a seed.
    linked : bytes
        Tag of the people, in whose common order the rows are, where the party is one of a block.

    Notes
    -----
    Whoever takes one asks its tables for shape and slices alone: they may lie on a disk.

    **Who sees what.** The analyst sees all of it, and nobody else. **Cost.** What its arrays weigh.
    """

    party: str
    anchor_tag: bytes = field(repr=False)
    linked: bytes = field(default=b"", repr=False)
    rows: Matrix = field(repr=False)
    labels: Labels | None = field(repr=False)
    anchor_image: Matrix = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class MaskedSums(Message):
    """Party to analyst: its sums, under masks that cancel in everybody's total."""

    party: str
    roster: bytes  # `roster_of` all keys that the masks were made with
    attempt: int  # of the exchange, from 1
    exchange: int = 1
    words: Words = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Return(Message):
    """Analyst to one party: its own change of basis, and the model that all get.

    Attributes
    ----------
    party : str
        Whom it is for, and for nobody else.
    agreement_digest : bytes
        Which agreement it belongs to.
    change_of_basis : ndarray of shape (n_components, n_components) or None
        G_i; None where parties sent sums.
    model : Chain, TrainedModel or None
        What travels, or an estimator in a simulation; None for representation.
    others : Chain or None
        The same family, trained without this party's rows, for its local fit.
    card : ModelCard or None
        Who and what made the model; None in a simulation.
    total : ndarray of shape (n_words,) of int64, or None
        Of a baseline table alone: everybody's sums, of which each party makes the table.
    evidence : {"not a random turn", "cannot tell"}
        What the certificate says of this party.
    trained_on, target_carries : tuple of str
        Whose rows shaped the model; whose trace the target carries, with those that left.
    simulated : bool
        Drawn from a seed.

    Notes
    -----
    **Who sees what.** For its party alone: with its basis, ``F_i G_i`` projects everybody's rows
    back. **Cost.** What its arrays weigh.
    """

    party: str
    change_of_basis: Matrix | None = field(default=None, repr=False)
    model: Chain | TrainedModel | None
    evidence: Evidence = "cannot tell"
    trained_on: tuple[str, ...]
    target_carries: tuple[str, ...] = ()
    others: Chain | None = None
    card: ModelCard | None = None
    total: Integers | None = field(default=None, repr=False)


def encode_labels(
    labels: npt.ArrayLike | None, agreement: Agreement, *, n_rows: int, party: str
) -> Labels | None:
    """Check labels against the agreement and turn classes into their positions."""
    labelled = agreement.classes or agreement.outcome or agreement.task in OF_NUMBERS
    elsewhere = agreement.holdings and agreement.unlabelled
    if agreement.task in UNLABELLED or not labelled or elsewhere:
        return None
    if agreement.outcome is not None:
        return _records(labels, agreement, agreement.outcome, n_rows=n_rows, party=party)
    return encode_column(labels, agreement, n_rows=n_rows, party=party)


def encode_column(
    labels: npt.ArrayLike | None, agreement: Agreement, *, n_rows: int, party: str
) -> Labels:
    """Check the label's own column, whatever others are agreed on beside it."""
    array = as_labels(labels, name=f"the labels of party '{party}'")
    if array.ndim != 1 or len(array) != n_rows:
        raise LabelError(
            f"party '{party}' has labels of shape {array.shape} for {n_rows} rows; one column with "
            "one label per row is needed. Train several outputs in several rounds."
        )
    if not agreement.classes:
        return _numbers(array, task=agreement.task, party=party)
    words, listed = isinstance(agreement.classes[0], str), array.tolist()
    if array.dtype.kind == "O":
        alike = words and all(isinstance(label, str) for label in listed)
    else:  # 1, 1.0 and True are equal, and one dictionary's key
        alike = array.dtype.kind in ("US" if words else "iub")
    if not alike:
        expected = "text" if words else "integers"
        raise LabelError(
            f"party '{party}' has labels of dtype {array.dtype}, the agreement's classes are "
            f"{expected}. Convert the labels, so that equal classes are written equally."
        )
    positions = {label: position for position, label in enumerate(agreement.classes)}
    found = np.array([positions.get(label, -1) for label in listed], dtype=np.int64)
    if np.any(found < 0):
        raise LabelError(
            f"party '{party}' has {np.sum(found < 0)} label(s) that are none of the "
            f"{len(positions)} agreed classes. Correct them, or agree on more classes."
        )
    return found


def _numbers(array: npt.NDArray[np.generic], *, task: Task, party: str) -> Labels:
    found = None
    with suppress(LocalError):
        if array.dtype.kind in "fiu":
            found = as_matrix(array[:, np.newaxis], name="labels")[:, 0].copy()
    if found is not None:
        return check_records(found, task=task, party=party)
    raise LabelError(
        f"party '{party}' has labels of dtype {array.dtype} for a {task}, which need to be finite "
        "real numbers that float64 holds. Convert them, and drop rows without a label."
    )


def _records(
    labels: npt.ArrayLike | None, agreement: Agreement, outcome: Outcome, *, n_rows: int, party: str
) -> Labels:
    columns = outcome.columns
    kind = record_type(columns)
    if getattr(labels, "dtype", None) == kind:  # were read as they travel
        found = np.asarray(labels)
    else:
        value, given = agreement.label or VALUE, cast("Any", labels)
        given = given if columns or np.ndim(given) != 1 else {value: given}  # of one column
        names = {VALUE: value, **columns}
        if agreement.task == "table" and not agreement.label:
            del names[VALUE]  # all rows are of one group
        try:
            cells = {role: np.asarray(given[name]) for role, name in names.items()}
        except (KeyError, IndexError, TypeError, ValueError):
            raise LabelError(
                f"the labels of party '{party}' lack one of the columns {', '.join(names.values())}"
                " that are agreed on. Give them as a data frame, or an array, with these names."
            ) from None
        found = np.zeros(n_rows, dtype=kind)
        if agreement.classes:
            cells[VALUE] = encode_column(cells[VALUE], agreement, n_rows=n_rows, party=party)
        for role, each in cells.items():
            if each.shape != (n_rows,) or each.dtype.kind not in "fiub":
                raise LabelError(
                    f"the label column '{names[role]}' of party '{party}' is {each.dtype} of shape "
                    f"{each.shape}, and one number for each of {n_rows} rows is needed. Convert it."
                )
            found[role] = each
    return check_records(found, task=agreement.task, party=party)


def as_labels(
    labels: npt.ArrayLike | None, *, name: str, column: str = ""
) -> npt.NDArray[np.generic]:
    """Return labels as an array, unless there are none, or some are ragged, masked or swapped.

    Of a table that has such a `column`, that alone.
    """
    if labels is None:
        raise LabelError(f"{name} are missing, and this task needs one per row.")
    listed = getattr(labels, "columns", getattr(getattr(labels, "dtype", None), "names", None))
    if listed is not None and column in listed:
        labels = cast("Any", labels)[column]
    try:
        array = np.asarray(labels)
    except ValueError:
        array = np.empty(0, dtype="V1")
    if array.dtype.kind == "V" or np.ma.is_masked(labels) or not array.dtype.isnative:
        raise LabelError(
            f"{name} cannot be used: they are ragged, masked or of another machine's byte order, "
            "so some would be guessed. Give one plain label per row."
        )
    return array


def decode_labels(predicted: Labels, agreement: Agreement) -> npt.NDArray[np.generic]:
    if agreement.classes:
        return np.array(agreement.classes)[predicted.astype(np.int64)]
    return predicted


def figure_of(
    truth: npt.NDArray[np.generic], predicted: npt.NDArray[np.generic], *, task: Task
) -> float:
    """Return accuracy for classification, R2 for regression."""
    if task == "classification":
        return float(np.mean(truth == predicted))
    true, found = truth.astype(np.float64), predicted.astype(np.float64)
    spread, missed = np.sum((true - true.mean()) ** 2), np.sum((true - found) ** 2)
    return float(1 - missed / spread) if spread else float(missed == 0)
