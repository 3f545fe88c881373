"""Locality preserving projections: a party's directions along which near rows stay near."""

import numpy as np
from scipy.linalg import eigh

from cobasis.errors import OptionError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.blocks import Blocks, WholeTable
from cobasis.linalg.leading import leading_directions
from cobasis.linalg.threads import one_blas_thread

NEIGHBOURS = 5
"""Rows that each row is joined with, and more where several are as near as the last."""

ENERGY = 0.98
"""Of the rows about their mean, in the principal directions that are looked at."""

WIDER = 2
"""Principal directions that are looked at, at most, in multiples of n_components."""

LARGEST_GRAPH = 20_000
"""Rows above which comparing each with all others would take minutes."""

PART_CELLS = 2**22
"""Distances that are held at a time."""

TIED = 1e-12
"""Squared distances that differ by less than this, against the longest row, are one."""


def local_directions(rows: Matrix | Blocks, *, n_components: int, party: str) -> Matrix:
    """Return the directions along which a party's neighbouring rows differ least.

    Rows are first brought to their leading principal directions, so that the eigenproblem
    ``P'(D - W)P b = v P'D P b`` is regular for wide tables too: those that keep 98 % of the
    rows' energy, at least l and at most 2 l of them. W joins each row with its five nearest
    (weight 1, one half where only one of the two names the other).

    X. He and P. Niyogi, Locality preserving projections, NIPS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(30, 6))
    >>> found = local_directions(rows, n_components=2, party="north")
    >>> bool(np.allclose(found.T @ found, np.eye(2)))
    True
    """
    table = _in_memory(rows, party)
    n_rows, n_features = table.shape
    wanted = min(WIDER * n_components, n_features, n_rows - 1)
    if wanted < n_components:  # the caller refuses too few directions
        return leading_directions(table, n_wanted=n_components, centred=True).directions
    axes = leading_directions(table, n_wanted=wanted, centred=True).directions
    if axes.shape[1] <= n_components:
        return axes
    with one_blas_thread():
        centred = table - table.mean(axis=0)
        scores = centred @ axes
        kept = np.cumsum(np.sum(scores**2, axis=0)) / np.sum(centred**2)
        count = max(n_components, int(np.searchsorted(kept, ENERGY)) + 1)
        axes, scores = axes[:, :count], scores[:, :count]
        sizes = np.linalg.norm(scores, axis=0)
        near, degrees = _graph(scores, scores / sizes)
        turn = eigh(degrees - near, degrees, subset_by_index=[0, n_components - 1])[1]
        found: Matrix = np.linalg.qr(axes @ (turn / sizes[:, None]))[0]
    weights = np.cos(np.arange(n_features))  # any fixed vector that no direction is square to
    return found * np.where(weights @ found < 0, -1.0, 1.0)


def _in_memory(rows: Matrix | Blocks, party: str) -> Matrix:
    """Return the whole table, or refuse one that is streamed or has too many rows."""
    if isinstance(rows, Blocks) and not isinstance(rows, WholeTable):
        raise OptionError(
            f"basis='lpp' of party '{party}' compares every row with all others, so it takes no "
            "table that is read in blocks. Agree on basis='svd' or 'pca', or give prepare() the "
            "rows as an array."
        )
    if rows.shape[0] > LARGEST_GRAPH:
        raise OptionError(
            f"party '{party}' has {rows.shape[0]} rows, and basis='lpp' compares every row with "
            f"all others: {LARGEST_GRAPH} rows are its limit. Agree on basis='svd' or 'pca'."
        )
    return rows.table if isinstance(rows, WholeTable) else rows


def _graph(scores: Matrix, columns: Matrix) -> tuple[Matrix, Matrix]:
    """Return P'WP and P'DP for the neighbourhood graph W of `scores` and P = `columns`.

    W is the mean of "j is near i" and "i is near j"; neither it nor the distances are held.
    """
    n_rows = len(scores)
    squares = np.sum(scores**2, axis=1)
    slack = TIED * float(squares.max())
    joined = np.zeros((columns.shape[1], columns.shape[1]))
    degrees = np.zeros(n_rows)
    count = min(NEIGHBOURS, n_rows - 1)
    step = max(1, PART_CELLS // n_rows)
    for start in range(0, n_rows, step):
        part = slice(start, min(start + step, n_rows))
        apart = squares[part, None] + squares - 2 * scores[part] @ scores.T
        np.fill_diagonal(apart[:, part], np.inf)
        last = np.partition(apart, count - 1, axis=1)[:, count - 1]
        near = (apart <= last[:, None] + slack).astype(np.float64)
        joined += columns[part].T @ (near @ columns)
        degrees[part] += near.sum(axis=1) / 2
        degrees += near.sum(axis=0) / 2
    return (joined + joined.T) / 2, (columns * degrees[:, None]).T @ columns
