"""How a party chooses its secret basis, as the agreement says. Party side only."""

from dataclasses import dataclass

from cobasis.algorithms.anchors import Anchor
from cobasis.algorithms.bases import filled, own_directions, require_components
from cobasis.errors import (
    AgreementError,
    MessageError,
    OptionError,
    OrthonormalityError,
    ShapeError,
    StepError,
)
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.rng import haar_columns
from cobasis.linalg.spans import ORTHONORMAL, orthonormality_defect
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import ConsensusSpan
from cobasis.protocol.secrets import ConsortiumSecret, PartyKey, SecretBasis


@dataclass(frozen=True, kw_only=True)
class Chooser:
    """What a party chooses its basis with.

    Attributes
    ----------
    party : str
        Its name.
    agreement : Agreement
        Says which basis.
    secret : ConsortiumSecret
        Gives the common Haar span.
    key : PartyKey
        Gives the party's own rotation.
    public_rows : ndarray of shape (n_public, n_features) or None
        On the agreed scale.
    complete : bool
        Fill a basis up with Haar columns where rows are too few; simulation only.
    """

    party: str
    agreement: Agreement
    secret: ConsortiumSecret
    key: PartyKey
    public_rows: Matrix | None
    complete: bool = False

    def __post_init__(self) -> None:
        """Refuse to fill up a real basis."""
        if self.complete and not self.key.simulated:
            msg = (
                f"complete_basis at party '{self.party}' would add arbitrary directions to a real "
                "basis. Leave it out; it is for simulations."
            )
            raise OptionError(msg)

    def directions(self, rows: Matrix) -> Matrix:
        """Return the party's own real directions, at most n_components of them."""
        return own_directions(
            rows,
            n_components=self.agreement.n_components,
            party=self.party,
            centred=self.agreement.basis == "pca",
        )

    def basis(
        self,
        rows: Matrix,
        *,
        anchor: Anchor,
        consensus: ConsensusSpan | None,
        kept: SecretBasis | None = None,
    ) -> SecretBasis:
        """Return the basis that was kept, or the one that the agreement names, turned."""
        size = self.agreement.n_components
        if kept is not None:
            self._refuse_unfit(kept, (rows.shape[1], size))
            return kept
        return SecretBasis(self.turned(self._span(rows, anchor, consensus)), party=self.party)

    def turned(self, span: Matrix, *, use: str = "rotation") -> Matrix:
        """Return the span's basis turned by a rotation of the party's own, E_i."""
        size = span.shape[1]
        return span @ haar_columns(self.key.stream(use), n_rows=size, n_columns=size)

    def _refuse_unfit(self, kept: SecretBasis, shape: tuple[int, int]) -> None:
        """Refuse a basis of another round's sizes, or an oblique one outside a simulation."""
        if kept.oblique and not self.key.simulated:
            msg = (
                f"the basis that party '{self.party}' kept is not orthonormal, which only "
                "simulations of the papers' conditions accept. Leave it out, so that one is made."
            )
            raise OrthonormalityError(msg)
        if kept.shape != shape:
            msg = (
                f"the basis that party '{self.party}' kept has shape {kept.shape}, this round's "
                f"features and components need {shape}. Leave it out, so that one is made."
            )
            raise ShapeError(msg)

    def _span(self, rows: Matrix, anchor: Anchor, consensus: ConsensusSpan | None) -> Matrix:
        """Return an orthonormal basis of the span, before the rotation."""
        name, size = self.agreement.basis, self.agreement.n_components
        if name == "consensus":
            if consensus is None:
                msg = (
                    f"party '{self.party}' has no consensus yet, and basis='consensus' takes two "
                    "exchanges. Send propose(rows) to the analyst first, and give prepare() what "
                    "comes back."
                )
                raise StepError(msg)
            span = anchor.apply_transposed(consensus.rows)
            if orthonormality_defect(span) > ORTHONORMAL:
                msg = (
                    f"the consensus that party '{self.party}' got is no orthonormal span of this "
                    "round's anchor. Ask the analyst to make it again."
                )
                raise MessageError(msg)
            return span
        if name == "haar":
            stream = self.secret.stream(f"span/{self.agreement.round_id}")
            return haar_columns(stream, n_rows=len(self.agreement.features), n_columns=size)
        if name == "public" and self.public_rows is not None:
            return self._public_span(self.public_rows)
        found = self.directions(rows)
        if self.complete:
            return filled(found, self.key.stream("filling"), n_components=size)
        require_components(found, n_components=size, n_rows=len(rows), party=self.party)
        return found

    def _public_span(self, public_rows: Matrix) -> Matrix:
        """Return the leading directions of the agreed public rows."""
        found = self.directions(public_rows)
        if found.shape[1] < self.agreement.n_components:
            msg = (
                f"the {len(public_rows)} public rows have {found.shape[1]} independent directions, "
                f"fewer than n_components={self.agreement.n_components}. Agree on more public rows "
                "or on fewer components."
            )
            raise AgreementError(msg)
        return found
