"""What a projection loses of each record: the distance that the papers call epsilon-DR privacy."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cobasis.algorithms.consensus import consensus_span
from cobasis.errors import DimensionError
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.linalg.leading import right_singular

_WORST = 0.01

_PARTS = 3
"""Parties that a consensus takes."""


@dataclass(frozen=True, kw_only=True)
class Lost:
    """How far records are from what is rebuilt of them, in the rows' unit.

    Attributes
    ----------
    mean : float
        ``E |x - x F F'|``: the epsilon of epsilon-DR privacy, for colluders without a prior.
    worst : float
        The same over the 1 % of people (at least one) whose records are rebuilt best.
    average_person : float
        ``E |x - mean|``: how far everybody is from the average person, which is what somebody
        without the release could guess.
    """

    mean: float
    worst: float
    average_person: float


def lost(rows: Matrix, basis: Matrix) -> Lost:
    """Measure what is lost of rows by a basis that colluders know.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Raw.
    basis : ndarray of shape (n_features, n_components)
        F, of full column rank; orthonormal or not.

    Returns
    -------
    Lost
        Mean and worst distance.

    Raises
    ------
    ShapeError
        Rows and basis do not fit each other.

    Notes
    -----
    The definition has an average and an attacker who knows nothing else: people who are rebuilt
    better than most, and attackers with a prior, are not in it. Hence `worst`, and the attacks.

    **Who sees what.** Computed from raw rows: for the party that has them.

    **Cost.** Two products of ``n x m x l``.

    References
    ----------
    ODC paper, section 2.2, after Nguyen et al., Neurocomputing 384 (2020), who define it.

    Examples
    --------
    >>> rows = np.array([[3.0, 4.0], [0.0, 1.0]])
    >>> found = lost(rows, np.array([[1.0], [0.0]]))
    >>> found.mean, found.worst
    (2.5, 1.0)
    """
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


def swept(
    rows: Matrix,
    *,
    sizes: Iterable[int],
    rng: np.random.Generator,
    public_rows: Matrix | None = None,
    others: Sequence[Matrix] = (),
) -> Mapping[str, Mapping[int, Lost]]:
    """Measure what is lost by every kind of basis, for a range of sizes.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        The party's own.
    sizes : iterable of int
        Each l.
    rng : numpy.random.Generator
        Draws a Haar span, which is as good as any other, and the parts below.
    public_rows : ndarray of shape (n_public, n_features), optional
        For the basis ``public``; without them there is none.
    others : sequence of ndarray
        Two other parties' rows or more, for the basis ``consensus``. Without them the party's own
        rows are dealt to three, which is what a consensus with parties like it would be.

    Returns
    -------
    mapping of str to mapping of int to Lost
        By basis (``svd``, ``haar``, ``public``, ``consensus``), then by l. A size that a basis
        cannot have, because there are fewer rows, is left out.

    Raises
    ------
    DimensionError
        A size below 1 or above the number of features.
    ConsensusError
        The parties' directions do not determine a common span of that size.

    Notes
    -----
    **Who sees what.** Computed from raw rows: for the party that has them.

    **Cost.** A singular value decomposition of the rows, of the public ones and of each part, and
    for each size one of ``m x 3 l`` and eight products of ``n x m x l``.
    """
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
