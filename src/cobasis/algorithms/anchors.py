"""Anchors: rows that all parties share and the analyst never sees."""

import warnings
from dataclasses import dataclass
from typing import get_args

import numpy as np

from cobasis.algorithms import AnchorKind
from cobasis.errors import AnchorError, OptionError, PrivacyWarning
from cobasis.linalg.arrays import Hidden, Matrix, Places, as_matrix
from cobasis.linalg.rng import HaarIsometry, KeyStream

FROM_PUBLIC_ROWS: frozenset[AnchorKind] = frozenset({"public", "smote"})
"""The anchors that are made of public rows, and so need them at every party."""

MAX_ISOMETRIC_FEATURES = 8192
"""Above this, which an agreement refuses, it would take minutes and gigabytes at every party."""

_LEAKS = {
    "uniform": "lets whoever holds A F_i read directions of F_i from it (independent component "
    "analysis; the row means show its column sums at once)",
    "public": "makes the analyst a colluder as soon as it finds the public rows: F_i = A^+ A_i",
    "smote": "mixes public rows two by two: whoever finds the rows knows the law of A, and A F_i "
    "shows that law through F_i (as its covariance does at once)",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class DenseAnchor(Hidden):
    rows: Matrix  # A itself: parties only

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape[0], self.rows.shape[1]

    def apply(self, columns: Matrix) -> Matrix:
        return self.rows @ columns

    def apply_transposed(self, rows: Matrix) -> Matrix:
        return self.rows.T @ rows


WholeAnchor = HaarIsometry | DenseAnchor
"""An anchor A of shape (n_rows, n_features), as far as a party needs it."""


@dataclass(frozen=True, kw_only=True, repr=False)
class HeldColumns(Hidden):
    """An anchor's columns for the features that a party holds."""

    whole: WholeAnchor
    places: Places

    @property
    def shape(self) -> tuple[int, int]:
        return self.whole.shape[0], len(self.places)

    def apply(self, columns: Matrix) -> Matrix:
        """Return A F, F being zero in the columns that are not held."""
        padded = np.zeros((self.whole.shape[1], columns.shape[1]))
        padded[self.places] = columns
        return self.whole.apply(padded)

    def apply_transposed(self, rows: Matrix) -> Matrix:
        return self.whole.apply_transposed(rows)[self.places]


Anchor = WholeAnchor | HeldColumns


def draw_anchor(
    kind: AnchorKind, *, key: bytes, n_rows: int, n_features: int, public_rows: Matrix | None = None
) -> WholeAnchor:
    """Draw the round's anchor from the consortium's key.

    Parameters
    ----------
    kind : {"isometric", "gaussian", "uniform", "public", "smote"}
        Isometric: Haar with A' A = I, by Stewart's construction. Gaussian: i.i.d. N(0, 1).
        Uniform: i.i.d. U[0, 1), the papers'. Public: the rows given. Smote: rows on lines
        between the rows given and their neighbours.
    key : bytes of length 32
        The consortium secret's bytes; an integer is refused.
    n_rows, n_features : int
        The shape (a, m). Isometric needs ``a >= m``.
    public_rows : ndarray of shape (n_public, n_features), optional
        For public and smote anchors only; ``n_public = n_rows`` for public ones.

    Returns
    -------
    Anchor
        Applied to a basis by ``apply``; the same numbers on every platform to 1e-13.

    Raises
    ------
    SecretError
        The key is no 32 bytes.
    AnchorError
        The shape suits no isometric anchor, or public rows are missing or not asked for.
    OptionError
        No such kind.

    Warns
    -----
    PrivacyWarning
        For uniform, public and smote anchors.

    Notes
    -----
    **Who sees what.** Parties only. Whoever has A and A F_i has F_i. Under the isometric
    and the Gaussian anchor A F_i alone has the same law whatever F_i is.

    **Cost.** a m numbers; isometric draws ``a m - m^2 / 2`` Gaussians; smote compares
    ``min(a, n_public)`` public rows with all of them, 2 m operations each.

    References
    ----------
    ODC paper, section 2.1 (uniform: section 7; public: section 9). Smote: Imakura et al.,
    Expert Systems with Applications 228 (2023) 120385.

    Examples
    --------
    >>> import numpy as np
    >>> anchor = draw_anchor("isometric", key=bytes(range(32)), n_rows=6, n_features=4)
    >>> rows = anchor.apply(np.eye(4))
    >>> bool(np.allclose(rows.T @ rows, np.eye(4)))
    True
    """
    if kind not in get_args(AnchorKind):
        raise OptionError(
            f"anchor '{kind}' does not exist. Choose one of {', '.join(get_args(AnchorKind))}."
        )
    if (public_rows is not None) != (kind in FROM_PUBLIC_ROWS):
        verb = "needs" if kind in FROM_PUBLIC_ROWS else "takes no"
        raise AnchorError(
            f"anchor='{kind}' {verb} public rows, so it is not clear which anchor is meant. "
            "Give public_rows with anchor='public' or 'smote', and only with them."
        )
    if kind in _LEAKS:
        warned = (
            f"anchor='{kind}' {_LEAKS[kind]}. It is here to reproduce the papers; use "
            f"anchor='isometric'. [{PrivacyWarning.code}]"
        )
        warnings.warn(warned, PrivacyWarning, stacklevel=2)
    stream = KeyStream(key, f"anchor/{kind}/{n_rows}x{n_features}")
    if kind == "isometric":
        if n_rows < n_features:
            raise AnchorError(
                f"an isometric anchor has at least as many rows as features, not {n_rows} for "
                f"{n_features}. Use n_anchor_rows={n_features}, or anchor='gaussian'."
            )
        return HaarIsometry(stream, n_rows=n_rows, n_columns=n_features)
    if public_rows is not None:
        pool = as_matrix(public_rows, name="public_rows", columns=n_features)
        if kind == "smote":
            return DenseAnchor(rows=mixed_rows(pool, stream=stream, n_rows=n_rows))
        if len(pool) != n_rows:
            raise AnchorError(
                f"public_rows has {len(pool)} rows, the agreement says {n_rows}. "
                "All parties need the very same rows; check the file's digest."
            )
        return DenseAnchor(rows=pool.copy())
    draw = stream.normal if kind == "gaussian" else stream.uniform
    return DenseAnchor(rows=draw((n_rows, n_features)))


def anchor_gain(kind: AnchorKind, n_rows: int) -> float | None:
    """Return what the anchor makes of a unit vector's length, where that is known."""
    return {
        "isometric": 1.0,
        "gaussian": float(np.sqrt(n_rows)),
        "uniform": float(np.sqrt(n_rows / 12)),
    }.get(kind)


NEIGHBOURS = 25  # nearest rows that a partner is drawn from
STRETCH = 1.5  # how far towards the partner an anchor may lie; above 1 it lies beyond
STEPS = 2**12  # whole steps to a standard deviation, when distances are compared
FARTHEST = 64  # standard deviations at which a value counts as no farther away

PART_ROWS = 512


def mixed_rows(pool: Matrix, *, stream: KeyStream, n_rows: int) -> Matrix:
    """Draw rows on lines from public rows through their neighbours."""
    n_public = len(pool)
    if n_public <= NEIGHBOURS:
        raise AnchorError(
            f"anchor='smote' mixes each public row with one of its {NEIGHBOURS} nearest, so "
            f"it needs more than {NEIGHBOURS} public rows, not {n_public}. Agree on more."
        )
    turns = np.resize(stream.permutation(n_public), n_rows)
    drawn = stream.uniform((n_rows, 2))
    which = (drawn[:, 0] * NEIGHBOURS).astype(np.intp)
    used = turns[: min(n_rows, n_public)]
    near = nearest(pool, used)[np.arange(n_rows) % len(used), which]
    start = pool[turns]
    return start + STRETCH * drawn[:, 1:] * (pool[near] - start)


def nearest(pool: Matrix, places: Places) -> Places:
    """Return the 25 nearest other rows of some rows, nearest first, ties by place."""
    # Columns are standardised and rounded to whole steps. Products and sums of such numbers stay
    # below 2^53, so that they are exact in whatever order a machine adds them, and all parties see
    # the same neighbours.
    rows = np.ascontiguousarray(pool)
    apart = rows - rows.sum(axis=0) / len(rows)
    spread = np.sqrt((apart**2).sum(axis=0) / len(rows))
    standard = apart / np.where(spread > 0, spread, 1.0)
    whole = np.clip(np.rint(STEPS * standard), -STEPS * FARTHEST, STEPS * FARTHEST)
    sizes = np.sum(whole**2, axis=1)
    found = []
    for start in range(0, len(places), PART_ROWS):
        chosen = places[start : start + PART_ROWS]
        apart = sizes[chosen, None] + sizes - 2 * whole[chosen] @ whole.T
        apart[np.arange(len(chosen)), chosen] = np.inf
        found.append(np.argsort(apart, axis=1, kind="stable")[:, :NEIGHBOURS])
    return np.vstack(found)
