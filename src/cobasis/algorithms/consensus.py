"""The consensus bases: one span for all, from everybody's directions, hidden by the anchor.

Each party sends ``A V_i`` for its real directions. The analyst orthonormalises each, so that
nobody can shout, and returns the leading common span Z; a party's basis is ``A' Z E_i``.
The weighted form sends ``A V_i S_i / sqrt(n_i)``, and the analyst caps what is too loud.
"""

import numpy as np

from cobasis.algorithms.bases import check_basis_rule
from cobasis.algorithms.images import Images, batches
from cobasis.errors import ConsensusError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.directions import Leading
from cobasis.linalg.threads import one_blas_thread

MIN_GAP = 1e-6
"""Smallest gap between the last span direction kept and the first dropped, per party.

In squares of singular values, against the mean square of a column of all images.
"""

NEGLIGIBLE = 1e-8
"""Weights below this, against a party's largest, are lost in rounding when squared."""


def weighted_directions(own: Leading, *, n_rows: int) -> Matrix:
    """Return a party's directions with their energy per row: ``V_i S_i / sqrt(n_i)``."""
    values = own.singular_values
    real = values > NEGLIGIBLE * values.max(initial=0.0)
    return np.asarray(own.directions[:, real] * (values[real] / np.sqrt(n_rows)))


def consensus_span(images: Images, *, n_components: int, weighted: bool = False) -> Matrix:
    """Return the leading span of all parties' directions on the anchor.

    No paper has it; decision record 0002 in ``docs/decisions``.
    """
    check_basis_rule(
        "weighted_consensus" if weighted else "consensus", anchor="isometric", n_parties=len(images)
    )
    checked = {party: image for batch in batches(images) for party, image in batch.items()}
    with one_blas_thread():
        if weighted:  # what is louder than the median party is scaled down to it
            norms = {party: float(np.linalg.norm(image)) for party, image in checked.items()}
            cap = sorted(norms.values())[(len(norms) - 1) // 2]
            each = [image * min(1.0, cap / norms[party]) for party, image in checked.items()]
        else:
            each = [np.linalg.qr(image)[0] for image in checked.values()]
        stacked = np.hstack(each)
        left, values, _ = np.linalg.svd(stacked, full_matrices=False)
    shares = np.append(values**2, np.zeros(n_components))
    gap = float(shares[n_components - 1] - shares[n_components])
    scale = float(np.mean(np.sum(stacked**2, axis=0)))  # 1 where columns are orthonormal
    least = MIN_GAP * len(checked) * scale
    if gap < least:
        sent = int(np.count_nonzero(shares >= least))
        raise ConsensusError(
            f"all parties together sent {sent} directions that stand out, and number "
            f"{n_components} does no more than the next, so there is no such common span. Agree on "
            f"{'fewer' if sent < n_components else 'more, or fewer,'} components."
        )
    return left[:, :n_components]
