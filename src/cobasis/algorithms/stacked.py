"""The leading directions of all anchor images together, in one pass where that is exact.

Columns are gathered until they are as many as rows, and from then on summed into one Gram
matrix of the rows; what is smaller is decomposed. A Gram matrix squares the singular values,
so where the wanted ones are too far apart for that, a second pass goes without squaring.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg.blas import dsyrk

from cobasis.algorithms.images import Images, batches, factored
from cobasis.errors import DimensionError
from cobasis.linalg.arrays import Matrix, numerical_rank, right_singular
from cobasis.linalg.leading import by_iteration, of_columns, of_gram, stacked
from cobasis.linalg.threads import in_order

GRAM_ROWS = 6000
"""Up to this many anchor rows their Gram matrix (288 MB) is made, whatever c is."""

HELD_BYTES = 2**29
"""Above that many rows, images are held side by side up to this, and sketched beyond."""


@dataclass(frozen=True, kw_only=True)
class Leading:
    """The leading directions, and what else one pass over the images shows."""

    directions: Matrix  # top left singular vectors of all images side by side
    singular_values: Matrix
    gain: float  # root mean square over parties of what the anchor makes of a unit vector


@dataclass(kw_only=True)
class _Pass:
    """Passes over the images: their columns in wide blocks, and what the first one saw."""

    images: Images
    orthonormalised: bool
    workers: int | None
    widths: list[int] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)

    def tables(self) -> Iterator[Matrix]:
        """Read the images batch by batch; each batch becomes one table."""
        self.widths, self.gains = [], []
        yield from in_order(self._side_by_side, batches(self.images), workers=self.workers)

    def _side_by_side(self, batch: dict[str, Matrix]) -> Matrix:
        """Put a batch side by side, orthonormalised if asked."""
        for party, table in batch.items():
            energy = float(np.vdot(table, table))
            if self.orthonormalised or not np.isfinite(energy):
                batch[party] = factored(party, table).orthonormal
            self.widths.append(table.shape[1])
            self.gains.append(energy / table.shape[1])
        return np.hstack(list(batch.values()))


def leading_directions(
    images: Images,
    *,
    size: int | Callable[[list[int]], int],
    orthonormalised: bool = False,
    workers: int | None = None,
) -> Leading:
    """Return the top left singular vectors and values of the images side by side."""
    run = _Pass(images=images, orthonormalised=orthonormalised, workers=workers)
    wide = _wide(run.tables())
    together = next(wide)
    n_rows, n_columns = together.shape
    if n_rows > GRAM_ROWS and together.nbytes > HELD_BYTES:
        wide.close()
        del together
        return _by_sketch(run, size)
    gram = _added(None, together) if n_columns > n_rows else None
    for table in wide:
        gram = _added(gram, table)
    wanted = size if isinstance(size, int) else size(run.widths)
    gain = float(np.sqrt(np.mean(run.gains)))
    if gram is None:
        found = of_columns(together, wanted) or _precisely(iter([together]), wanted)
    else:
        del together
        found = of_gram(gram, wanted) or _precisely(_wide(run.tables()), wanted)
    return Leading(directions=found[0], singular_values=found[1], gain=gain)


def _wide(tables: Iterator[Matrix]) -> Generator[Matrix]:
    """Gather tables until their columns are more than their rows, or too many to hold."""
    held: list[Matrix] = []
    for table in tables:
        held.append(table)
        n_rows, n_columns = table.shape[0], sum(each.shape[1] for each in held)
        much = n_rows * n_columns * table.itemsize > HELD_BYTES
        if much if n_rows > GRAM_ROWS else n_columns > n_rows:
            yield np.hstack(held)
            held.clear()
    if held:
        yield np.hstack(held)


def _added(gram: Matrix | None, table: Matrix) -> Matrix:
    """Add ``W W'`` to the lower triangle of a Gram matrix, in place."""
    if gram is None:
        gram = np.zeros((table.shape[0],) * 2, order="F")
    added: Matrix = dsyrk(1.0, table.T, beta=1.0, c=gram, trans=1, lower=1, overwrite_c=1)
    return added


def _precisely(tables: Iterator[Matrix], wanted: int) -> tuple[Matrix, Matrix]:
    """Return the leading left singular vectors and values without squaring anything."""
    triangle: list[Matrix] = []
    n_columns = 0
    for table in tables:
        n_columns += table.shape[1]
        triangle = [stacked(*triangle, table.T)]
    found = right_singular(triangle[0])
    rank = numerical_rank(found.singular_values, (len(found.directions), n_columns))
    if not 1 <= wanted <= rank:
        raise DimensionError(
            f"n_components={wanted} is not between 1 and the rank {rank} of all anchor images "
            "together, so the target has no such directions. Use a number between the two."
        )
    return found.directions[:, :wanted], found.singular_values[:wanted]


def _by_sketch(run: _Pass, size: int | Callable[[list[int]], int]) -> Leading:
    """Return the leading directions of what is too large in both directions."""
    shape = (0, 0)
    for table in run.tables():
        shape = table.shape
    wanted = size if isinstance(size, int) else size(run.widths)
    gain = float(np.sqrt(np.mean(run.gains)))
    directions, values = sketched(run.tables, n_rows=shape[0], size=wanted)
    return Leading(directions=directions, singular_values=values, gain=gain)


MAX_PASSES = 12
OVERSAMPLED = 20
STILL = 1e-10
"""Iteration ends when no wanted singular value moves by more than this share of it."""


def sketched(
    tables: Callable[[], Iterator[Matrix]], *, n_rows: int, size: int
) -> tuple[Matrix, Matrix]:
    """Return the leading left singular vectors and values of all tables side by side.

    Block power iteration with 20 more columns than wanted; a pass shrinks the error of
    direction k by the squared ratio of singular value ``size + 21`` to value k, so that
    directions without a gap behind them are the less exact ones.
    """
    rng = np.random.default_rng(0)
    start = rng.normal(size=(n_rows, min(size + OVERSAMPLED, n_rows)))

    def product(_: int, basis: Matrix) -> Matrix:
        image = np.zeros_like(basis)
        for table in tables():
            image += table @ (table.T @ basis)
        return image

    directions, values = by_iteration(product, start, count=size, passes=MAX_PASSES, still=STILL)
    rank = numerical_rank(values, (len(directions), len(directions)))
    if not 1 <= size <= rank:
        raise DimensionError(
            f"n_components={size} is not between 1 and the rank {rank} that a sketch of all anchor "
            "images together shows. Use a number between the two."
        )
    return directions[:, :size], values[:size]
