"""Epsilon-DR as the papers mean it: how far records stay from what a colluder rebuilds of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cobasis.algorithms.consensus import consensus_span
from cobasis.errors import ConsensusError, DimensionError
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.linalg.leading import right_singular
from cobasis.privacy.audit.report import Distance
from cobasis.privacy.audit.subject import Setting, Subject

_WORST = 0.01

_PARTS = 3
"""Parties that a consensus takes."""


@dataclass(frozen=True, kw_only=True)
class Lost:
    """How far records are from what is rebuilt of them, in the rows' unit."""

    mean: float
    worst: float
    average_person: float


def lost(rows: Matrix, basis: Matrix) -> Lost:
    """Measure what is lost of rows by a basis that colluders know."""
    columns = as_matrix(basis, name="basis")
    table = as_matrix(rows, name="rows", columns=len(columns))
    axes = np.linalg.qr(columns)[0]
    distances = np.sort(np.linalg.norm(table - (table @ axes) @ axes.T, axis=1))
    few = max(1, round(_WORST * len(distances)))
    return Lost(
        mean=float(distances.mean()),
        worst=float(distances[:few].mean()),
        average_person=float(np.linalg.norm(table - table.mean(axis=0), axis=1).mean()),
    )


def lost_over(
    rows: Matrix,
    *,
    sizes: Iterable[int],
    rng: np.random.Generator,
    public_rows: Matrix | None = None,
    others: Sequence[Matrix] = (),
) -> Mapping[str, Mapping[int, Lost]]:
    """Measure what is lost by every kind of basis, for a range of sizes."""
    table = as_matrix(rows, name="rows")
    width = table.shape[1]
    wanted = sorted(set(sizes))
    if not wanted or not 1 <= wanted[0] <= wanted[-1] <= width:
        raise DimensionError(
            f"sizes {wanted} of {width} features cannot be measured. "
            f"Give numbers of components from 1 to {width}."
        )
    nested = {
        "svd": _real(table),
        "haar": np.linalg.qr(rng.normal(size=(width, wanted[-1])))[0],
    }
    if public_rows is not None:
        nested["public"] = _real(as_matrix(public_rows, name="public_rows", columns=width))
    found = {
        name: {size: lost(table, columns[:, :size]) for size in wanted if size <= columns.shape[1]}
        for name, columns in nested.items()
    }
    parts = _parts(table, others, rng=rng)
    real = min(each.shape[1] for each in parts) if len(parts) >= _PARTS or others else 0
    found["consensus"] = {
        size: lost(table, _consensus(parts, size)) for size in wanted if size <= real
    }
    return found


def _real(table: Matrix) -> Matrix:
    """Return the right singular vectors that a table really has, strongest first."""
    return right_singular(table).directions


def _parts(
    table: Matrix, others: Sequence[Matrix], *, rng: np.random.Generator
) -> Sequence[Matrix]:
    """Return each party's directions: of those that were given, or of parts of one table."""
    width = table.shape[1]
    if others:
        named = [as_matrix(each, name="others' rows", columns=width) for each in others]
        return [_real(each) for each in (table, *named)]
    dealt = np.array_split(rng.permutation(len(table)), _PARTS)
    return [_real(table[places]) for places in dealt if len(places)]


def _consensus(parts: Sequence[Matrix], size: int) -> Matrix:
    """Return the common span, which an isometric anchor turns and does not change."""
    if size == len(parts[0]):
        return np.eye(size)
    directions = {f"party-{index}": each[:, :size] for index, each in enumerate(parts)}
    return consensus_span(directions, n_components=size)


THIS = "this upload"

_ROWS = 800
"""So many people are enough to compare bases."""


def distances(
    subject: Subject, *, sizes: Sequence[int], rng: np.random.Generator
) -> tuple[Distance, ...]:
    """Measure ``|x - x F F'|`` of the upload, and over l for each kind of basis.

    It is an average over people, and relative to an attacker who knows nothing else: the papers'
    figure, and the weakest of this report.
    """
    own = _share(THIS, subject.n_components, lost(subject.rows, subject.basis))
    some = subject.some(_ROWS, seed=int(rng.integers(2**32))).rows
    try:
        found = lost_over(some, sizes=sizes, rng=rng, public_rows=subject.public_rows)
    except ConsensusError:  # of rows that are nearly all alike
        return (own,)
    others = [
        _share(kind, size, each)
        for kind, by_size in found.items()
        for size, each in by_size.items()
    ]
    return (own, *others)


def swept(subject: Subject, settings: Sequence[Setting]) -> tuple[int, ...]:
    """Return the numbers of components to sweep: a quarter to twice the own, and those asked."""
    own, most = subject.n_components, subject.rows.shape[1]
    sizes = {own // 4, own // 2, own, 2 * own, *(each.n_components for each in settings)}
    return tuple(sorted(each for each in sizes if 0 < each <= most))


def _share(kind: str, size: int, found: Lost) -> Distance:
    """Return distances as shares of that to the average person."""
    whole = found.average_person or 1.0
    return Distance(
        basis=kind, n_components=size, mean=found.mean / whole, worst=found.worst / whole
    )
