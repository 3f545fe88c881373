"""Whitened ODC: Procrustes between orthonormalised images (ours)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from cobasis.algorithms import Scale
from cobasis.algorithms.fits import Fit, FitKind, Rotates, Target, with_scale
from cobasis.algorithms.images import Images, batches, factored, reference_of


@dataclass(frozen=True, kw_only=True)
class Whitened(Rotates):
    r"""ODC that does not care whether bases are orthonormal.

    With the thin QR :math:`A_i = Q_i R_i`: :math:`Z = Q_r` and
    :math:`G_i = R_i^{-1} \mathrm{polar}(Q_i' Z)`. Whatever invertible :math:`E_i` a party
    multiplies its basis with, :math:`F_i G_i` stays the same, up to one rotation common to
    all. Under an isometric anchor and orthonormal bases it is ODC.

    Parameters
    ----------
    reference : str, optional
        The party whose span is the target; by default the first.
    scale : float, "measured" or "paper"
        What the anchor makes of a unit vector. 1 for an isometric anchor, the default;
        ``"measured"`` takes the images' root mean square, which does depend on E_i.

    Notes
    -----
    **Who sees what.** Z spans what the reference's image spans.

    **Cost.** ODC's and one thin QR factorisation a party
    (:func:`~cobasis.algorithms.images.factored`).

    References
    ----------
    No paper has it; decision record 0007 in ``docs/decisions``.
    """

    fit_kind: ClassVar[FitKind] = "whitened rotation"

    reference: str | None = None
    scale: Scale = 1.0

    def target(self, images: Images, **_: object) -> Target:
        """Orthonormalise the reference's image."""
        name, image = reference_of(images, self.reference)
        gain = 1.0
        if self.scale == "measured":
            tables = (table for batch in batches(images) for table in batch.values())
            sizes = [np.vdot(table, table) / table.shape[1] for table in tables]
            gain = float(np.sqrt(np.mean(sizes)))
        rows = with_scale(np.linalg.qr(image)[0], gain=gain, scale=self.scale)
        return Target(rows=rows, shaped_by=(name,))

    def fits(self, images: Images, target: Target) -> Mapping[str, Fit]:
        """Rotate the orthonormalised images, and undo the orthonormalisation."""
        found = {party: factored(party, image) for party, image in images.items()}
        turns = super().fits({party: q for party, (q, _, _) in found.items()}, target)
        size = np.linalg.norm(target.rows) / np.sqrt(target.rows.shape[1])
        return {
            party: replace(
                turn, change_of_basis=solve_triangular(found[party][1], turn.change_of_basis * size)
            )
            for party, turn in turns.items()
        }
