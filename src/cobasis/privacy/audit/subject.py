"""What an audit looks at: arrays that are to leave, what is agreed, and what could be instead."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from cobasis.algorithms import AnchorKind, BasisName
from cobasis.features.contract import Feature
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.models import ModelName, Task
from cobasis.privacy.attacks import Release
from cobasis.privacy.sensitivity import Adjacency, clip_rows

MOST_ROWS, MOST_CELLS, FEWEST_ROWS = 2_000, 1_600_000, 400
"""How large a sample is at most: so many rows, or cells where a row is wide, but not fewer rows."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Subject(Hidden):
    """One party's upload, and the raw rows that it was made of, in the same order."""

    rows: Matrix  # X_i on the agreed scale
    release: Release  # after noise and rounding, as it is written
    basis: Matrix
    labels: npt.NDArray[Any] | None = None  # as they are in the table, also where others are sent
    features: tuple[Feature, ...] = ()  # as agreed; empty where each column is a number
    precision: str = "fp64"
    noisy: bool = False
    sensitive: Mapping[str, Matrix] = field(default_factory=dict)  # as numbers
    public_rows: Matrix | None = None
    # inside the agreed ball: everybody knows it, so an attacker moves people into it as well
    clipped: Matrix | None = None

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    @property
    def n_components(self) -> int:
        return int(self.basis.shape[1])

    @property
    def listed(self) -> Matrix:
        """The rows as whoever has a list of these people compares them with the upload."""
        return self.rows if self.clipped is None else self.clipped

    @property
    def classes(self) -> npt.NDArray[Any] | None:
        """The labels that are sent, where an attacker can match people class by class."""
        sent = self.release.labels
        return None if sent is None or sent.dtype.kind == "f" else sent

    def some(self, most: int, *, seed: int) -> Self:
        """Return a random part; all in their order where there are no more."""
        if self.n_rows <= most:
            return self
        return self.only(np.random.default_rng(seed).permutation(self.n_rows)[:most])

    def only(self, places: npt.NDArray[np.intp]) -> Self:
        def taken(values: npt.NDArray[Any] | None) -> Any:  # noqa: ANN401 -- an array for an array
            return None if values is None else values[places]

        release = self.release
        return replace(
            self,
            rows=self.rows[places],
            release=replace(release, rows=release.rows[places], labels=taken(release.labels)),
            labels=taken(self.labels),
            sensitive={name: values[places] for name, values in self.sensitive.items()},
            clipped=taken(self.clipped),
        )


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A guarantee of differential privacy, each condition of which the agreement enforces."""

    epsilon: float  # of the features of one person in this upload
    delta: float
    statement: str  # as agreement and ledger state it; one sentence without full stop
    labels: str  # how they are treated, in words

    def verdict(self, covered: str) -> str:
        told = f"eps={self.epsilon:g}, delta={self.delta:g}, per record"
        return f"Protected by differential privacy: {told}, {covered}."


@dataclass(frozen=True, kw_only=True)
class Facts:
    n_rows: int  # of the whole upload
    anchor: AnchorKind
    basis: BasisName
    task: Task
    models: tuple[ModelName, ...] = ()  # families that the analyst may train; empty where none is
    class_counts: tuple[int, ...] = ()  # people of each class that is sent
    marked_counts: tuple[int, ...] = ()  # people with an event and without, treated and not
    times_alone: float | None = None  # share of all times that one row alone has, where any is sent
    sensitive_label: bool = False
    # kept where these rows have a basis; forced where a second one was insisted on
    span: Literal["fresh", "kept", "forced"] = "fresh"
    added: int | None = None  # beside the earlier file that differs by the fewest; None if first
    gone: int | None = None
    # share of rows whose identifier is new, and whose values were uploaded before
    renamed: float = 0.0
    n_uploads: int = 0  # of these rows, before this one
    guarantee: Guarantee | None = None


def sample_size(n_rows: int, n_features: int) -> int:
    return min(n_rows, MOST_ROWS, max(FEWEST_ROWS, MOST_CELLS // n_features))


_KINDS = {"haar": "random", "public": "public rows'"}  # kinds of bases in words that say more


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Noise that comes with a guarantee, as an agreement's ``[dp]`` section would have it."""

    epsilon: float  # of the features of one person
    delta: float
    radius: float  # of the L2 ball that rows are clipped to, from public rows or agreed
    centre: tuple[float, ...] = ()  # empty for the origin
    adjacency: Adjacency = "replace-one"  # which two tables have to look alike
    rows_per_person: int = 1
    label_epsilon: float | None = None  # with randomised response; None where labels are public
    n_classes: int = 0

    def clipped(self, rows: Matrix) -> Matrix:
        return clip_rows(rows, radius=self.radius, centre=self.centre or None)


@dataclass(frozen=True, kw_only=True)
class Setting:
    n_components: int
    basis: BasisName
    budget: Budget | None = None
    precision: str = "fp64"

    def told_beside(self, own: "Setting") -> str:
        size, epsilon = self.n_components, getattr(self.budget, "epsilon", 0)
        told = {
            f"{size:,} component{'s' * (size > 1)}": size != own.n_components,
            f"epsilon {epsilon:g}": epsilon and self.budget != own.budget,
            f"{_KINDS.get(self.basis, self.basis)} basis": self.basis != own.basis,
            f"numbers as {self.precision}": self.precision != own.precision,
        }
        return ", ".join(words for words, differs in told.items() if differs) or "as it is"
