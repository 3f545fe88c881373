"""The consensus basis: one span for all, from everybody's directions, hidden by the anchor.

Each party sends ``A V_i`` for its real directions. The analyst orthonormalises each, so that
nobody can shout, and returns the leading common span Z; a party's basis is ``A' Z E_i``.
"""

import numpy as np

from cobasis.algorithms.bases import check_basis_rule
from cobasis.algorithms.images import Images, check_images
from cobasis.errors import ConsensusError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import one_blas_thread

MIN_GAP = 1e-6
"""Smallest gap between the last span direction kept and the first dropped, per party."""


def consensus_span(images: Images, *, n_components: int) -> Matrix:
    """Return the leading span of all parties' directions on the anchor.

    Parameters
    ----------
    images : mapping of str to ndarray of shape (n_anchor_rows, r_i)
        ``A V_i`` by party name, with ``r_i <= n_components`` real directions.
    n_components : int
        l.

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
        one dropped by less than 1e-6 of the number of parties.

    Notes
    -----
    **Who sees what.** The analyst learns the angles between the parties' spans, which the
    upload shows anyway. A party learns the common span; all others together can recover
    the last party's span from it while its angles to Z stay below 45 degrees.

    **Cost.** A thin SVD of an ``a x sum r_i`` matrix.

    References
    ----------
    No paper has it; decision record 0002 in ``docs/decisions``.
    """
    check_basis_rule("consensus", anchor="isometric", n_parties=len(images))
    checked = check_images(images)
    if sum(image.shape[1] for image in checked.values()) < n_components:
        msg = (
            f"all {len(checked)} parties together sent fewer directions than "
            f"n_components={n_components}, so there is no such span. Agree on fewer components."
        )
        raise ConsensusError(msg)
    with one_blas_thread():
        stacked = np.hstack([np.linalg.qr(image)[0] for image in checked.values()])
        left, values, _ = np.linalg.svd(stacked, full_matrices=False)
    shares = np.append(values**2, np.zeros(n_components))
    gap = float(shares[n_components - 1] - shares[n_components])
    if gap < MIN_GAP * len(checked):
        msg = (
            f"component {n_components} and the next stand out equally, so the "
            f"common span is not determined. Try n_components={n_components - 1} or "
            f"{n_components + 1}."
        )
        raise ConsensusError(msg)
    return left[:, :n_components]
