"""The leading directions of all anchor images together, in one pass where that is exact."""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce

import numpy as np
from scipy.linalg.blas import dsyrk

from cobasis.algorithms.fits import factored
from cobasis.algorithms.images import Images, batches
from cobasis.errors import DimensionError
from cobasis.linalg.arrays import Matrix, numerical_rank
from cobasis.linalg.directions import (
    Leading,
    by_iteration,
    of_columns,
    of_gram,
    right_singular,
    stacked,
)
from cobasis.linalg.threads import in_order

GRAM_ROWS = 6000  # up to this many anchor rows their Gram matrix (288 MB) is made, whatever c is

HELD_BYTES = 2**29
"""Above that many rows, images are held side by side up to this, and sketched beyond."""

MAX_PASSES, OVERSAMPLED = 12, 20
"""Of a sketch: how often the images are read at most, and how many columns it has to spare."""

STILL = 1e-10  # a sketch ends when no wanted singular value moves by more than this share of it


def leading_directions(
    images: Images,
    *,
    size: int | Callable[[list[int]], int],
    orthonormalised: bool = False,
    workers: int | None = None,
) -> tuple[Leading, float]:
    """Return the top left singular vectors and values of the images side by side, and the gain.

    That is the root mean square over parties of what the anchor makes of a unit vector.
    """
    widths: dict[str, int] = {}
    gains: dict[str, float] = {}

    def side_by_side(batch: dict[str, Matrix]) -> Matrix:
        for party, table in batch.items():
            energy = float(np.vdot(table, table))
            if orthonormalised or not np.isfinite(energy):  # factors say what is wrong with it
                batch[party] = factored(party, table)[0]
            widths[party], gains[party] = table.shape[1], energy / table.shape[1]
        return np.hstack(list(batch.values()))

    def tables() -> Iterator[Matrix]:
        return in_order(side_by_side, batches(images), workers=workers)

    # Columns are gathered until they are more than the rows, and from then on summed into one Gram
    # matrix of the rows: what is smaller is decomposed, and each image is read once.
    gram, sketched = None, False
    for together in _wide(tables()):
        n_rows, n_columns = together.shape
        if sketched or (n_rows > GRAM_ROWS and together.nbytes > HELD_BYTES):
            sketched = True
        elif gram is not None or n_columns > n_rows:
            gram = np.zeros((n_rows, n_rows), order="F") if gram is None else gram
            gram = dsyrk(1.0, together.T, beta=1.0, c=gram, trans=1, lower=1, overwrite_c=1)
    wanted = size if isinstance(size, int) else size([widths[party] for party in images])
    gain = float(np.sqrt(np.mean([gains[party] for party in images])))
    shape = n_rows, sum(widths.values())
    if sketched:
        found = sketch(tables, n_rows=n_rows, size=wanted)
    elif gram is None:
        found = of_columns(together, wanted) or _precisely([together], shape=shape, size=wanted)
    else:
        found = of_gram(gram, wanted) or _precisely(_wide(tables()), shape=shape, size=wanted)
    return found, gain


def _wide(tables: Iterator[Matrix]) -> Iterator[Matrix]:
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


def _precisely(tables: Iterable[Matrix], *, shape: tuple[int, int], size: int) -> Leading:
    """Return the leading left singular vectors and values without squaring anything."""
    found = right_singular(reduce(stacked, (table.T for table in tables)), shape=shape)
    return _refuse_beyond(len(found.singular_values), found, size)


def sketch(tables: Callable[[], Iterator[Matrix]], *, n_rows: int, size: int) -> Leading:
    """Return the leading left singular vectors and values by block power iteration."""
    # Directions without a gap behind the spare columns are the less exact ones: see by_iteration.
    rng = np.random.default_rng(0)
    start = rng.normal(size=(n_rows, min(size + OVERSAMPLED, n_rows)))

    def product(_: int, basis: Matrix) -> Matrix:
        return reduce(lambda image, table: image + table @ (table.T @ basis), tables(), 0 * basis)

    found = by_iteration(product, start, count=size, passes=MAX_PASSES, still=STILL)
    rank = numerical_rank(found.singular_values, (n_rows, n_rows))
    return _refuse_beyond(rank, found, size)


def _refuse_beyond(rank: int, found: Leading, wanted: int) -> Leading:
    """Return as many directions as are wanted, or refuse to where there are fewer."""
    if not 1 <= wanted <= rank:
        raise DimensionError(
            f"n_components={wanted} is not between 1 and the rank {rank} of all anchor images "
            "together, so the target has no such directions. Use a number between the two."
        )
    return found.first(wanted)
