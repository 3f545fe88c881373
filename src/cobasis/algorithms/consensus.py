"""The consensus bases: one span for all, from everybody's directions, hidden by the anchor.

Each party sends ``A V_i`` for its real directions. The analyst orthonormalises each, so that
nobody can shout, and returns the leading common span Z; a party's basis is ``A' Z E_i``.
The weighted form sends ``A V_i S_i / sqrt(n_i)``, and the analyst caps what is too loud.
"""

import numpy as np

from cobasis.algorithms.bases import BasisName, check_basis_rule
from cobasis.algorithms.images import Images, check_images
from cobasis.errors import ConsensusError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.leading import Leading
from cobasis.linalg.threads import one_blas_thread

MIN_GAP = 1e-6
"""Smallest gap between the last span direction kept and the first dropped, per party.

In squares of singular values, against the mean square of a column of all images.
"""

NEGLIGIBLE = 1e-8
"""Weights below this, against a party's largest, are lost in rounding when squared."""


def weighted_directions(own: Leading, *, n_rows: int) -> Matrix:
    """Return a party's directions with their energy per row: ``V_i S_i / sqrt(n_i)``.

    Parameters
    ----------
    own : Leading
        Directions and singular values of the party's rows.
    n_rows : int
        n_i, so that a party does not count more because it has more rows.

    Returns
    -------
    ndarray of shape (n_features, r_i)
        Orthogonal columns, strongest first; those of less than 1e-8 of the strongest are
        left out.

    Notes
    -----
    **Who sees what.** The party alone; turned and seen by the anchor, the analyst gets the
    singular values, which the rows of an upload under basis ``svd`` show as well.

    **Cost.** None.
    """
    values = own.singular_values
    real = values > NEGLIGIBLE * values.max(initial=0.0)
    weighted: Matrix = own.directions[:, real] * (values[real] / np.sqrt(n_rows))
    return weighted


def consensus_span(images: Images, *, n_components: int, weighted: bool = False) -> Matrix:
    """Return the leading span of all parties' directions on the anchor.

    Parameters
    ----------
    images : mapping of str to ndarray of shape (n_anchor_rows, r_i)
        ``A V_i`` by party name, with ``r_i <= n_components`` real directions; weighted,
        ``A V_i S_i / sqrt(n_i)``.
    n_components : int
        l.
    weighted : bool
        Whether columns count by their lengths. An image whose norm is above the median of all
        (of an even number, the lower one) is scaled down to it, so that nobody owns the span by
        being loud while at least half of the parties are honest. Otherwise every image is
        orthonormalised.

    Returns
    -------
    ndarray of shape (n_anchor_rows, n_components)
        Z, orthonormal.

    Raises
    ------
    AgreementError
        Fewer than three parties.
    ConsensusError
        All directions together are too few, or the last one kept stands out from the first
        one dropped by less than 1e-6 of the number of parties times a column's mean square.

    Notes
    -----
    **Who sees what.** The analyst learns the angles between the parties' spans, which the
    upload shows anyway; weighted, also how strong every direction of a party is, as an
    upload under basis ``svd`` shows it. A party learns the common span; all others together
    can recover the last party's span from it while its angles to Z stay below 45 degrees. A
    party that sends equally strong directions, within the cap, gets more of a weighted span's
    last ones than its rows are worth; the plain form gives nobody more for that.

    **Cost.** A thin SVD of an ``a x sum r_i`` matrix.

    References
    ----------
    No paper has it; decision record 0002 in ``docs/decisions``.
    """
    name: BasisName = "weighted_consensus" if weighted else "consensus"
    check_basis_rule(name, anchor="isometric", n_parties=len(images))
    checked = check_images(images)
    if sum(image.shape[1] for image in checked.values()) < n_components:
        msg = (
            f"all {len(checked)} parties together sent fewer directions than "
            f"n_components={n_components}, so there is no such span. Agree on fewer components."
        )
        raise ConsensusError(msg)
    with one_blas_thread():
        stacked = np.hstack(_capped(checked) if weighted else _orthonormalised(checked))
        left, values, _ = np.linalg.svd(stacked, full_matrices=False)
    shares = np.append(values**2, np.zeros(n_components))
    gap = float(shares[n_components - 1] - shares[n_components])
    scale = float(np.mean(np.sum(stacked**2, axis=0)))  # 1 where columns are orthonormal
    if gap < MIN_GAP * len(checked) * scale:
        msg = (
            f"component {n_components} and the next stand out equally, so the "
            f"common span is not determined. Try n_components={n_components - 1} or "
            f"{n_components + 1}."
        )
        raise ConsensusError(msg)
    return left[:, :n_components]


def _orthonormalised(images: Images) -> list[Matrix]:
    return [np.linalg.qr(image)[0] for image in images.values()]


def _capped(images: Images) -> list[Matrix]:
    """Scale what is louder than the median party down to it."""
    norms = {party: float(np.linalg.norm(image)) for party, image in images.items()}
    cap = sorted(norms.values())[(len(norms) - 1) // 2]
    return [image * min(1.0, cap / norms[party]) for party, image in images.items()]
