"""Anchor rows between public rows and their neighbours, the same at every party (SMOTE)."""

import numpy as np
import numpy.typing as npt

from cobasis.errors import AnchorError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.rng import KeyStream

NEIGHBOURS = 25
"""Nearest rows that a partner is drawn from."""

STRETCH = 1.5
"""How far towards the partner an anchor may lie; above 1 it lies beyond."""

STEPS = 2**12
"""Whole steps to a standard deviation, when distances are compared."""

FARTHEST = 64
"""Standard deviations at which a value counts as no farther away."""

PART_ROWS = 512


def mixed_rows(pool: Matrix, *, stream: KeyStream, n_rows: int) -> Matrix:
    """Draw rows on lines from public rows through their neighbours.

    Imakura, Kihira, Okada and Sakurai, Expert Systems with Applications 228 (2023) 120385.
    """
    n_public = len(pool)
    if n_public <= NEIGHBOURS:
        raise AnchorError(
            f"anchor='smote' mixes each public row with one of its {NEIGHBOURS} nearest, and there "
            f"are {n_public} public rows. Agree on more than {NEIGHBOURS}."
        )
    turns = np.resize(stream.permutation(n_public), n_rows)
    drawn = stream.uniform((n_rows, 2))
    which = (drawn[:, 0] * NEIGHBOURS).astype(np.intp)
    used = turns[: min(n_rows, n_public)]
    near = nearest(pool, used)[np.arange(n_rows) % len(used), which]
    start = pool[turns]
    return start + STRETCH * drawn[:, 1:] * (pool[near] - start)


def nearest(pool: Matrix, places: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the 25 nearest other rows of some rows, nearest first, ties by place."""
    whole = _in_steps(pool)
    sizes = np.sum(whole**2, axis=1)
    found = []
    for start in range(0, len(places), PART_ROWS):
        chosen = places[start : start + PART_ROWS]
        apart = sizes[chosen, None] + sizes - 2 * whole[chosen] @ whole.T
        apart[np.arange(len(chosen)), chosen] = np.inf
        found.append(np.argsort(apart, axis=1, kind="stable")[:, :NEIGHBOURS])
    return np.vstack(found)


def _in_steps(pool: Matrix) -> Matrix:
    """Standardise columns and round to whole steps.

    Products and sums of such numbers stay below 2^53, so they are exact in whatever order a
    machine adds them, and all parties see the same neighbours.
    """
    rows = np.ascontiguousarray(pool)
    apart = rows - rows.sum(axis=0) / len(rows)
    spread = np.sqrt((apart**2).sum(axis=0) / len(rows))
    standard = apart / np.where(spread > 0, spread, 1.0)
    whole: Matrix = np.clip(np.rint(STEPS * standard), -STEPS * FARTHEST, STEPS * FARTHEST)
    return whole
