"""What an audit looks at: arrays that are about to leave, and what is agreed about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from cobasis.algorithms import AnchorKind, BasisName
from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix
from cobasis.models import ModelName, Task
from cobasis.privacy.attacks.release import Release

MOST_ROWS, MOST_CELLS, FEWEST_ROWS = 2_000, 1_600_000, 400
"""How large a sample is at most: so many rows, or cells where a row is wide, but not fewer rows."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Subject(Hidden):
    """One party's upload, and the raw rows that it was made of, in the same order."""

    rows: Matrix  # X_i on the agreed scale
    release: Release  # after noise and rounding, as it is written
    basis: Matrix
    labels: npt.NDArray[Any] | None = None  # as they are in the table, also where others are sent
    columns: tuple[str, ...] = ()
    sensitive: Mapping[str, Matrix] = field(default_factory=dict)  # as numbers
    public_rows: Matrix | None = None
    # inside the agreed ball: everybody knows it, so an attacker moves people into it as well
    clipped: Matrix | None = None

    def __post_init__(self) -> None:
        """Refuse tables that do not go together."""
        as_matrix(self.rows, name="rows")
        n_rows, n_features = self.rows.shape
        expected: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
            "release.rows": (self.release.rows.shape, (n_rows, self.basis.shape[1])),
            "basis": (self.basis.shape, (n_features, self.release.rows.shape[1])),
        }
        for name in ("labels", "release.labels"):
            given = self.labels if name == "labels" else self.release.labels
            if given is not None:
                expected[name] = (given.shape, (n_rows,))
        if self.clipped is not None:
            expected["clipped"] = (self.clipped.shape, self.rows.shape)
        for name, values in self.sensitive.items():
            expected[f"sensitive column '{name}'"] = (values.shape, (n_rows,))
        for name, (found, wanted) in expected.items():
            if found != wanted:
                raise ShapeError(
                    f"{name} has shape {found}, and with rows of shape {self.rows.shape} it has "
                    f"to have {wanted}. Give the tables of one upload, in one order."
                )

    @property
    def n_rows(self) -> int:
        """How many people are looked at."""
        return len(self.rows)

    @property
    def n_components(self) -> int:
        """How many numbers of each leave."""
        return int(self.basis.shape[1])

    @property
    def listed(self) -> Matrix:
        """The rows as whoever has a list of these people compares them with the upload."""
        return self.rows if self.clipped is None else self.clipped

    @property
    def places(self) -> npt.NDArray[np.intp]:
        """Where each person stands among these; twins, who cannot be told apart, at one place."""
        _, first, inverse = np.unique(self.rows, axis=0, return_index=True, return_inverse=True)
        found: npt.NDArray[np.intp] = first[inverse.ravel()]
        return found

    @property
    def classes(self) -> npt.NDArray[Any] | None:
        """The labels that are sent, where an attacker can match people class by class."""
        sent = self.release.labels
        return None if sent is None or sent.dtype.kind == "f" else sent

    def called(self, column: int) -> str:
        """Return the name of a feature."""
        return self.columns[column] if self.columns else f"feature {column + 1}"

    def some(self, most: int, *, seed: int) -> Self:
        """Return a random part; all in their order where there are no more."""
        if self.n_rows <= most:
            return self
        return self.only(np.random.default_rng(seed).permutation(self.n_rows)[:most])

    def only(self, places: npt.NDArray[np.intp]) -> Self:
        """Return some of the people, in this order."""
        labels, sent = self.labels, self.release.labels
        return replace(
            self,
            rows=self.rows[places],
            release=replace(
                self.release,
                rows=self.release.rows[places],
                labels=None if sent is None else sent[places],
            ),
            labels=None if labels is None else labels[places],
            sensitive={name: values[places] for name, values in self.sensitive.items()},
            clipped=None if self.clipped is None else self.clipped[places],
        )


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A guarantee of differential privacy, each condition of which the agreement enforces."""

    epsilon: float  # of the features of one person in this upload
    delta: float
    statement: str  # as agreement and ledger state it; one sentence without full stop
    labels: str  # how they are treated, in words


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is agreed, and what was uploaded before."""

    n_rows: int  # of the whole upload
    n_features: int
    n_anchor_rows: int
    n_parties: int
    anchor: AnchorKind
    basis: BasisName
    task: Task
    models: tuple[ModelName, ...] = ()  # families that the analyst may train; empty where none is
    class_counts: tuple[int, ...] = ()  # people of each class that is sent
    sensitive_label: bool = False
    # kept where these rows have a basis; forced where a second one was insisted on
    span: Literal["fresh", "kept", "forced"] = "fresh"
    added: int | None = None  # since the same data set was uploaded last; None for the first time
    gone: int | None = None
    n_uploads: int = 0  # of these rows, before this one
    noise: bool = False  # for which nobody claims a guarantee
    guarantee: Guarantee | None = None


def sample_size(n_rows: int, n_features: int) -> int:
    """Return how many rows of a table are looked at."""
    return min(n_rows, MOST_ROWS, max(FEWEST_ROWS, MOST_CELLS // n_features))
