"""How a party chooses its secret basis, and what public rows it may need. Party side only."""

import hashlib
from collections.abc import MutableMapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.anchors import Anchor
from cobasis.algorithms.bases import BASES, filled, local_directions, require_components
from cobasis.algorithms.consensus import weighted_directions
from cobasis.errors import (
    AgreementError,
    MessageError,
    OrthonormalityError,
    ShapeError,
    StepError,
)
from cobasis.features.category import CategoryFeature
from cobasis.features.encoder import encode
from cobasis.linalg.arrays import ORTHONORMAL, Blocks, Matrix, as_matrix, orthonormality_defect
from cobasis.linalg.leading import leading_directions
from cobasis.linalg.rng import haar_columns
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import ConsensusSpan
from cobasis.protocol.secrets import ConsortiumSecret, PartyKey, SecretBasis

Memory = MutableMapping[str, Matrix]
"""Where a party keeps what a pass over its rows gave, until its upload is whole. Private."""


@dataclass(frozen=True, kw_only=True)
class Chooser:
    """What a party chooses its basis with."""

    party: str
    agreement: Agreement
    secret: ConsortiumSecret  # gives the common Haar span
    key: PartyKey  # gives the party's own rotation
    public_rows: Matrix | None  # on the agreed scale
    complete: bool = False  # fill up with Haar columns where rows are too few; simulation only

    def directions(self, rows: Matrix | Blocks, *, memory: Memory | None = None) -> Matrix:
        """Return the party's own real directions, at most n_components, weighted if agreed."""
        if memory is not None and "directions" in memory:
            return memory["directions"]
        size, name = self.agreement.n_components, self.agreement.basis
        if name == "lpp":
            found = local_directions(rows, n_components=size, party=self.party)
        else:
            own = leading_directions(rows, n_wanted=size, centred=name == "pca")  # eq. (5)
            weighted = BASES[name].weighted
            found = weighted_directions(own, n_rows=rows.shape[0]) if weighted else own.directions
        if memory is not None and found.shape[1] == size:  # of fewer no upload can be made
            memory["directions"] = found
        return found

    def basis(
        self,
        rows: Blocks,
        *,
        anchor: Anchor,
        consensus: ConsensusSpan | None,
        kept: SecretBasis | None = None,
        memory: Memory | None = None,
    ) -> SecretBasis:
        """Return the basis that was kept, or the one that the agreement names, turned."""
        name, size = self.agreement.basis, self.agreement.n_components
        if kept is not None:
            self._refuse_unfit(kept, (rows.shape[1], size))
            return kept
        if BASES[name].exchanges > 1:
            span = self._common_span(anchor, consensus)
        elif name == "haar":
            stream = self.secret.stream(f"span/{self.agreement.round_id}")
            span = haar_columns(stream, n_rows=self.agreement.n_features, n_columns=size)
        elif name == "public" and self.public_rows is not None:
            span = self._public_span(self.public_rows)
        else:
            span = self.directions(rows, memory=memory)
            if self.complete:
                span = filled(span, self.key.stream("filling"), n_components=size)
            require_components(span, n_components=size, n_rows=rows.shape[0], party=self.party)
        return SecretBasis(self.turned(span), party=self.party)

    def turned(self, span: Matrix, *, use: str = "rotation") -> Matrix:
        """Return the span's basis turned by a rotation of the party's own, E_i."""
        size = span.shape[1]
        return span @ haar_columns(self.key.stream(use), n_rows=size, n_columns=size)

    def _refuse_unfit(self, kept: SecretBasis, shape: tuple[int, int]) -> None:
        """Refuse a basis of another round's sizes, or an oblique one outside a simulation."""
        if kept.oblique and not self.key.simulated:
            raise OrthonormalityError(
                f"the basis that party '{self.party}' kept is not orthonormal, which only "
                "simulations of the papers' conditions accept. Leave it out, so that one is made."
            )
        if kept.shape != shape:
            raise ShapeError(
                f"the basis that party '{self.party}' kept has shape {kept.shape}, this round's "
                f"features and components need {shape}. Leave it out, so that one is made."
            )

    def _common_span(self, anchor: Anchor, consensus: ConsensusSpan | None) -> Matrix:
        """Return the span that the analyst made of everybody's directions."""
        if consensus is None:
            raise StepError(
                f"party '{self.party}' has no consensus yet, and basis='{self.agreement.basis}' "
                "takes two exchanges. Propose first, and prepare the upload with the consensus= "
                "that comes back from the analyst."
            )
        span = anchor.apply_transposed(consensus.rows)
        if orthonormality_defect(span) > ORTHONORMAL:
            raise MessageError(
                f"the consensus that party '{self.party}' got is no orthonormal span of this "
                "round's anchor. Ask the analyst to make it again."
            )
        return span

    def _public_span(self, public_rows: Matrix) -> Matrix:
        """Return the leading directions of the agreed public rows."""
        found = self.directions(public_rows)
        if found.shape[1] < self.agreement.n_components:
            raise AgreementError(
                f"the {len(public_rows)} public rows have {found.shape[1]} independent directions, "
                f"fewer than n_components={self.agreement.n_components}. Agree on more public rows "
                "or on fewer components."
            )
        return found


def require_proposals(agreement: Agreement, *, party: str) -> None:
    """Raise StepError where parties propose no spans."""
    if BASES[agreement.basis].exchanges > 1:
        return
    raise StepError(
        f"basis='{agreement.basis}' takes one exchange, so there is nothing for party '{party}' to "
        "propose. Its upload is the only message: prepare that."
    )


def public_rows_digest(rows: npt.ArrayLike) -> str:
    """Return the SHA-256 of public rows, for the agreement."""
    table = as_matrix(rows, name="public_rows")
    header = f"{table.shape[0]}x{table.shape[1]}\0".encode()
    return hashlib.sha256(header + np.ascontiguousarray(table, dtype="<f8").tobytes()).hexdigest()


def check_public_rows(
    rows: npt.ArrayLike | None, agreement: Agreement, *, party: str
) -> Matrix | None:
    """Return public rows on the agreed scale, if they are the agreement's."""
    expected = agreement.public_rows_sha256
    encoded = None if rows is None else encode(rows, agreement.features, party=party)
    words = any(isinstance(each, CategoryFeature) for each in agreement.features)
    table = encoded if words else rows
    given = None if table is None else public_rows_digest(table)
    if given != expected:
        have = "no public rows" if given is None else f"public rows with digest {given[:12]}..."
        want = "none" if expected is None else f"{expected[:12]}..."
        raise AgreementError(
            f"party '{party}' has {have}, the agreement says {want}: with other public rows its "
            "anchor or basis would not be the others'. Take the file that was agreed on."
        )
    return encoded
