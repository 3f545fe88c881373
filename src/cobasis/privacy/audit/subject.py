"""What an audit looks at: arrays that are to leave, what is agreed, and what could be instead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from cobasis.algorithms import AnchorKind, BasisName
from cobasis.errors import OptionError
from cobasis.features.contract import Feature
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.linalg.directions import leading_directions
from cobasis.linalg.rng import KeyStream, haar_columns
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
    columns: tuple[str, ...] = ()
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


class Spans(Hidden):
    """Leading directions by kind, found once, of which every number can be taken."""

    def __init__(self, subject: Subject, *, own: BasisName, largest: int, key: bytes) -> None:
        self._subject, self._own, self._largest, self._key = subject, own, largest, key
        self._found: dict[str, Matrix] = {}

    def basis(self, kind: BasisName, size: int) -> Matrix | None:
        """Return a basis of a kind, without a rotation: no figure depends on one."""
        own = self._subject.basis
        if kind == self._own and size == own.shape[1]:
            return own
        if kind not in self._found:
            self._found[kind] = self._directions(kind)
        found = self._found[kind]
        return found[:, :size] if size <= found.shape[1] else None

    def _directions(self, kind: BasisName) -> Matrix:
        """Return as many directions of a kind as there are, strongest first."""
        subject, most, n_features = self._subject, self._largest, self._subject.rows.shape[1]
        if kind == "haar":
            stream = KeyStream(self._key, "audit/haar")
            return haar_columns(stream, n_rows=n_features, n_columns=most)
        if "consensus" in kind:  # a party alone can only leave out directions of the common span
            inside = subject.rows @ subject.basis
            return subject.basis @ leading_directions(inside, n_wanted=inside.shape[1]).directions
        rows = subject.public_rows if kind == "public" else subject.rows
        if rows is None:
            return np.empty((n_features, 0))
        return leading_directions(rows, n_wanted=most, centred=kind == "pca").directions


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
    # standard deviation as a share of the rows' root mean square distance from their mean
    noise: float = 0.0
    budget: Budget | None = None
    precision: str = "fp64"
    labels: bool = True  # whether they are sent
    groups: tuple[tuple[int, ...], ...] = ()  # classes that are sent as one
    step: float = 0.0  # numbers as labels are rounded to multiples of this; 0 for none
    without: tuple[int, ...] = ()  # classes whose rows are left out

    def told_beside(self, own: "Setting") -> str:
        """Return in words how it differs from the upload's own setting."""
        size, few = self.n_components, len(self.without)
        epsilon = getattr(self.budget, "epsilon", 0)
        told = {
            f"{size:,} component{'s' * (size > 1)}": size != own.n_components,
            f"epsilon {epsilon:g}": epsilon and self.budget != own.budget,
            f"{_KINDS.get(self.basis, self.basis)} basis": self.basis != own.basis,
            f"noise {self.noise:g}": self.noise,
            f"numbers as {self.precision}": self.precision != own.precision,
            "no labels": not self.labels,
            f"labels in {len(self.groups):,} classes": self.groups,
            f"labels rounded to {self.step:g}": self.step,
            f"without {few:,} small class{'es' * (few > 1)}": few,
        }
        return ", ".join(words for words, differs in told.items() if differs) or "as it is"


def settings_of(
    subject: Subject, own: Setting, *, n_components: Sequence[int] = (), noise: Sequence[float] = ()
) -> tuple[Setting, ...]:
    """Return what to measure: the own setting, then what was asked for, or the usual."""
    size = own.n_components
    check_asked(n_components=n_components, noise=noise, n_features=subject.rows.shape[1])
    fewer = n_components or [max(1, size // 2), max(1, size // 4)]
    found = [own, *(replace(own, n_components=each) for each in fewer)]
    found += [replace(own, noise=scale, budget=None) for scale in noise or (0.1, 0.4)]
    found += [replace(own, basis="haar"), replace(own, precision="int8")]
    if subject.classes is not None:
        found.append(replace(own, labels=False))
    return tuple(dict.fromkeys(found))


def check_asked(
    *,
    n_components: Sequence[int],
    noise: Sequence[float],
    n_features: int,
    epsilon: Sequence[float] = (),
) -> None:
    """Refuse more components than features, noise that is none, and what no agreement may have."""
    bounds = {
        "n_components": (n_components, n_features),
        "noise": (noise, 100),
        "epsilon": (epsilon, 64),
    }
    for name, (values, most) in bounds.items():
        for each in values:
            if not 0 < each <= most:
                raise OptionError(
                    f"{name}={each!r} is not above 0 and at most {most}. Ask for another one."
                )
