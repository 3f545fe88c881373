"""How a party's rows become its upload, all at once or part by part. Party side only."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cobasis.linalg.arrays import Matrix
from cobasis.linalg.blocks import WholeTable
from cobasis.linalg.hidden import Hidden
from cobasis.protocol.messages import Labels, Upload
from cobasis.protocol.secrets import SecretBasis


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(Hidden):
    """What is settled before a row is projected: the basis, and where each row will stand.

    Attributes
    ----------
    party : str
        Whose it is.
    agreement_digest, anchor_tag : bytes
        Which agreement and which anchor it belongs to.
    basis : SecretBasis
        F_i.
    anchor_image : ndarray of shape (n_anchor_rows, n_components)
        ``A F_i``.
    order : ndarray of shape (n_rows,)
        The upload's first row is the party's row ``order[0]``, and so on.
    simulated : bool
        Drawn from a seed.

    Notes
    -----
    **Who sees what.** The party alone: with the basis and the order, everything that it
    uploads can be read.

    **Cost.** 8 bytes per row.
    """

    party: str
    agreement_digest: bytes
    anchor_tag: bytes
    basis: SecretBasis
    anchor_image: Matrix
    order: npt.NDArray[np.intp]
    simulated: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Of the upload's rows: n_rows and n_components."""
        return len(self.order), self.basis.shape[1]

    def upload(self, rows: Matrix, *, labels: Labels | None) -> Upload:
        """Return the whole upload of a table in memory.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)
            On the agreed scale, in the party's own order.
        labels : ndarray of shape (n_rows,) or None
            Encoded, in that order.

        Returns
        -------
        Upload
            In the upload's order.

        Notes
        -----
        **Who sees what.** What is returned is for the analyst.

        **Cost.** One product.
        """
        return Upload(
            party=self.party,
            agreement_digest=self.agreement_digest,
            anchor_tag=self.anchor_tag,
            rows=np.vstack(list(WholeTable(rows).over(self._projected, step="")))[self.order],
            labels=None if labels is None else labels[self.order],
            anchor_image=self.anchor_image,
            simulated=self.simulated,
        )

    def _projected(self, _: int, blocks: Iterator[Matrix]) -> Matrix:
        return np.vstack(list(map(self.basis.project, blocks)))
