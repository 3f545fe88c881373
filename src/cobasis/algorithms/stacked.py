"""The leading directions of all anchor images together, in one pass where that is exact."""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce

import numpy as np
from scipy.linalg.blas import dsyrk

from cobasis.algorithms.images import Images, batches, factored
from cobasis.errors import DimensionError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.directions import Leading, of_columns, of_gram, right_singular, stacked
from cobasis.linalg.threads import in_order


def leading_directions(
    images: Images,
    *,
    size: Callable[[Iterable[int]], int],
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
        return _wide(in_order(side_by_side, batches(images), workers=workers))

    # Columns are gathered until they are more than the rows, and from then on summed into one Gram
    # matrix of the rows: what is smaller is decomposed, and each image is read once.
    gram = None
    for together in tables():
        n_rows, n_columns = together.shape
        if gram is not None or n_columns > n_rows:
            gram = np.zeros((n_rows, n_rows), order="F") if gram is None else gram
            gram = dsyrk(1.0, together.T, beta=1.0, c=gram, trans=1, lower=1, overwrite_c=1)
    wanted = size(widths.values())
    gain = float(np.sqrt(np.mean([gains[party] for party in images])))
    found = of_columns(together, wanted) if gram is None else of_gram(gram, wanted)
    if found is None:  # without squaring anything
        again = [together] if gram is None else tables()
        whole = reduce(stacked, (table.T for table in again))
        precise = right_singular(whole, shape=(n_rows, sum(widths.values())))
        if wanted > (rank := len(precise.singular_values)):
            raise DimensionError(
                f"all anchor images together have rank {rank}, so there are no {wanted} directions "
                "for a target. Agree on fewer components."
            )
        found = precise.first(wanted)
    return found, gain


def _wide(tables: Iterator[Matrix]) -> Iterator[Matrix]:
    """Gather tables side by side until their columns are more than their rows."""
    held: list[Matrix] = []
    for table in tables:
        held.append(table)
        if sum(each.shape[1] for each in held) > table.shape[0]:
            yield np.hstack(held)
            held.clear()
    if held:
        yield np.hstack(held)
