"""How a party's rows become its upload, all at once or part by part. Party side only."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cobasis.linalg.arrays import Matrix
from cobasis.linalg.blocks import WholeTable
from cobasis.linalg.hidden import Hidden
from cobasis.protocol.messages import Labels, Upload
from cobasis.protocol.noising import Noising
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
    noising : Noising or None
        What hides each person, where the agreement has a ``[dp]`` section.
    """

    party: str
    agreement_digest: bytes
    anchor_tag: bytes
    basis: SecretBasis
    anchor_image: Matrix
    order: npt.NDArray[np.intp]
    simulated: bool
    noising: Noising | None = None

    @property
    def release(self) -> str:
        """What the noise was drawn for, 64 hexadecimal digits; empty without noise."""
        return "" if self.noising is None else self.noising.release

    @property
    def shape(self) -> tuple[int, int]:
        """Of the upload's rows: n_rows and n_components."""
        return len(self.order), self.basis.shape[1]

    def upload(self, rows: Matrix, *, labels: Labels | None) -> Upload:
        """Return the whole upload of a table in memory."""
        parts = list(WholeTable(rows).over(self.projected, step=""))
        self.confirm(marks for _, marks in parts)
        projected = np.vstack([block for blocks, _ in parts for block in blocks])
        return Upload(
            party=self.party,
            agreement_digest=self.agreement_digest,
            anchor_tag=self.anchor_tag,
            rows=projected[self.order],
            labels=self.labels(labels),
            anchor_image=self.anchor_image,
            simulated=self.simulated,
        )

    def projected(self, first: int, blocks: Iterator[Matrix]) -> tuple[list[Matrix], bytes]:
        """Return a part's rows as they are uploaded, in the table's order."""
        if self.noising is not None:
            return self.noising.projected(first, blocks)
        return list(map(self.basis.project, blocks)), b""

    def confirm(self, parts: Iterable[bytes]) -> None:
        """Go through the marks of all parts; refuse rows that noise was not drawn for."""
        if self.noising is not None:
            self.noising.confirm(parts, party=self.party)
        else:
            for _ in parts:
                pass

    def labels(self, labels: Labels | None) -> Labels | None:
        """Return labels as they are uploaded, in the upload's order."""
        if labels is None:
            return None
        told = labels if self.noising is None else self.noising.labels(labels, party=self.party)
        found: Labels = told[self.order]
        return found
