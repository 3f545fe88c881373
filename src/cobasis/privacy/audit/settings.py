"""In which ways an upload could be made: what an audit compares, and a consortium can choose."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cobasis.algorithms import BasisName
from cobasis.errors import OptionError
from cobasis.linalg.arrays import Matrix
from cobasis.privacy.audit.subject import Subject
from cobasis.privacy.clipping import Adjacency, clip_rows

_KINDS = {"haar": "random", "public": "public rows'"}
"""Kinds of bases in words that say more."""


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
        """Move rows into the ball."""
        return clip_rows(rows, radius=self.radius, centre=self.centre or None)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One way in which an upload could be made."""

    n_components: int
    basis: BasisName | Literal[""] = ""  # empty for the upload's own
    # standard deviation as a share of the rows' root mean square distance from their mean
    noise: float = 0.0
    budget: Budget | None = None
    labels: bool = True  # whether they are sent
    groups: tuple[tuple[int, ...], ...] = ()  # classes that are sent as one
    step: float = 0.0  # numbers as labels are rounded to multiples of this; 0 for none
    without: tuple[int, ...] = ()  # classes whose rows are left out

    def told_beside(self, own: "Setting") -> str:
        """Return in words how it differs from the upload's own setting."""
        told = []
        if self.n_components != own.n_components:
            told.append(f"{self.n_components:,} component{'s' * (self.n_components > 1)}")
        if self.budget is not None and self.budget != own.budget:
            told.append(f"epsilon {self.budget.epsilon:g}")
        if self.basis and self.basis != own.basis:
            told.append(f"{_KINDS.get(self.basis, self.basis)} basis")
        told += [f"noise {self.noise:g}"] if self.noise else []
        told += [] if self.labels else ["no labels"]
        told += [f"labels in {len(self.groups):,} classes"] if self.groups else []
        told += [f"labels rounded to {self.step:g}"] if self.step else []
        if self.without:
            few = len(self.without)
            told.append(f"without {few:,} small class{'es' * (few > 1)}")
        return ", ".join(told) or "as it is"


def settings_of(
    subject: Subject,
    *,
    n_components: Sequence[int] = (),
    noise: Sequence[float] = (),
    own: Setting | None = None,
) -> tuple[Setting, ...]:
    """Return what to measure: as it is, then what was asked for, or the usual."""
    size = subject.n_components
    check_asked(n_components=n_components, noise=noise, n_features=subject.rows.shape[1])
    now = own or Setting(n_components=size)
    fewer = n_components or sorted({max(1, size // 2), max(1, size // 4)} - {size}, reverse=True)
    found = [now]
    found += [replace(now, n_components=each) for each in fewer if each != size]
    found += [replace(now, noise=scale, budget=None) for scale in noise or (0.1, 0.4)]
    found.append(replace(now, basis="haar"))
    if subject.classes is not None:
        found.append(replace(now, labels=False))
    return tuple(found)


def check_asked(*, n_components: Sequence[int], noise: Sequence[float], n_features: int) -> None:
    """Raise OptionError for more components than features, and for noise that is none."""
    for size in n_components:
        if not 1 <= size <= n_features:
            raise OptionError(
                f"n_components={size} is not from 1 to {n_features}, the features. Ask for less."
            )
    for scale in noise:
        if not 0 < scale <= 100:  # noqa: PLR2004 -- a hundred times as long as the rows
            raise OptionError(
                f"noise={scale!r} is no share of the rows' length above 0. Ask for 0.1, say."
            )
