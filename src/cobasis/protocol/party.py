"""A party: proposes directions, makes its one upload, takes what comes back, and predicts."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.bases import BASES, local_directions, require_components
from cobasis.algorithms.consensus import weighted_directions
from cobasis.errors import (
    AgreementError,
    FeatureError,
    MessageError,
    OrthonormalityError,
    ShapeError,
    StepError,
    UnknownPartyError,
)
from cobasis.features.encoder import encode
from cobasis.linalg.arrays import Blocks, Matrix, Places, WholeTable, is_orthonormal
from cobasis.linalg.directions import leading_directions
from cobasis.linalg.rng import haar_columns
from cobasis.linalg.threads import one_blas_thread
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.explanations import ModelUser, reference
from cobasis.protocol.messages import ConsensusSpan, Return, SpanProposal, Upload, encode_labels
from cobasis.protocol.projection import (
    Begin,
    InMemory,
    LabelledRows,
    Projection,
    RowsInMemory,
    noise_for,
)
from cobasis.protocol.refusals import check_consensus, check_return, refuse_few
from cobasis.protocol.secrets import ConsortiumSecret, PartyKey, SecretBasis, check_public_rows
from cobasis.protocol.terms import others_of


class Party(ModelUser):
    """One organisation's side of the round.

    Parameters
    ----------
    name : str
        As enrolled in the agreement.
    agreement : Agreement
        What everybody signed.
    secret : ConsortiumSecret
        Checked against the agreement's commitment.
    key : PartyKey, optional
        The party's own; drawn from the system by default.
    public_rows : array-like of shape (n_public, n_features), optional
        The agreed public rows, where anchor or basis are made of them.

    Raises
    ------
    LocalError
        The agreement does not name the party, or the secret is not the agreement's.

    Warns
    -----
    PrivacyWarning
        The agreement's anchor is uniform, public or smote.

    Notes
    -----
    **Who sees what.** Rows, anchor, secrets and basis stay here. Out go a `SpanProposal`
    (consensus bases only) and one `Upload`; in comes one `Return`.
    **Cost.** Drawing the anchor, ``O(a m)`` memory.

    Examples
    --------
    >>> import numpy as np
    >>> from cobasis import Agreement, ConsortiumSecret, Party, numeric_features
    >>> secret = ConsortiumSecret()
    >>> agreement = Agreement(
    ...     round_id="icu-2026", parties=("north", "south", "east"), task="regression",
    ...     features=numeric_features(["age", "pulse", "lactate"]), n_components=2,
    ...     n_anchor_rows=3, model="ridge", commitment=secret.commitment("icu-2026"))
    >>> north = Party("north", agreement=agreement, secret=secret)
    >>> rows = np.random.default_rng(0).normal(size=(20, 3))
    >>> north.prepare(rows, rows.sum(axis=1)).rows.shape
    (20, 2)
    """

    def __init__(
        self,
        name: str,
        *,
        agreement: Agreement,
        secret: ConsortiumSecret,
        key: PartyKey | None = None,
        public_rows: npt.ArrayLike | None = None,
    ) -> None:
        if name not in agreement.parties:
            raise UnknownPartyError(
                f"party '{name}' is not in the agreement of round '{agreement.round_id}' "
                f"({', '.join(agreement.parties)}). A new party needs a new agreement and round."
            )
        secret.check_opens(agreement, party=name)
        own_key = key or PartyKey()
        public = check_public_rows(public_rows, agreement, party=name)
        self.name = name
        self.agreement = agreement.held_by(name) if agreement.holdings else agreement
        self._tag = secret.anchor_tag(agreement)
        self._anchor = secret.anchor(self.agreement, public_rows=public)
        self._simulated = secret.simulated or own_key.simulated
        self._secret, self._key, self._public_rows = secret, own_key, public
        self._basis: SecretBasis | None = None

    @property
    def basis(self) -> SecretBasis:
        """Of the last upload, to keep for a later round on the same rows; StepError before."""
        if self._basis is None:
            raise StepError(
                f"party '{self.name}' has not prepared its upload. Call prepare(rows, labels)."
            )
        return self._basis

    def propose(self, rows: npt.ArrayLike | Blocks) -> SpanProposal:
        """Show the analyst the party's directions, as the anchor sees them.

        Parameters
        ----------
        rows : array-like, data frame or Blocks of shape (n_rows, n_features)
            The party's rows; ``cobasis.tables.open_table`` makes blocks of a file.

        Returns
        -------
        SpanProposal
            For ``Analyst.consensus``; LocalError where the agreement's basis takes one exchange.

        Notes
        -----
        **Who sees what.** The analyst learns angles between spans, no rows; of weighted directions
        their singular values as well. **Cost.** One or two passes over the rows.
        """
        if BASES[self.agreement.basis].exchanges == 1:
            raise StepError(
                f"basis='{self.agreement.basis}' takes one exchange, so there is nothing for party "
                f"'{self.name}' to propose. Its upload is the only message: prepare that."
            )
        if not isinstance(rows, Blocks):
            plain = encode(rows, self.agreement.features, party=self.name)
            rows = WholeTable(self.agreement.mapped(plain))
        refuse_few(rows.shape[0], agreement=self.agreement, party=self.name)
        directions = self._directions(rows)
        require_components(directions, n_components=1, n_rows=rows.shape[0], party=self.name)
        return SpanProposal(
            party=self.name,
            agreement_digest=self.agreement.digest(),
            anchor_tag=self._tag,
            # turned, or each column would be one of the party's own principal directions
            image=self._anchor.apply(self._turned(directions, use="proposal")),
            simulated=self._simulated,
        )

    def prepare(
        self,
        rows: npt.ArrayLike,
        labels: npt.ArrayLike | None = None,
        *,
        people: Sequence[str] | None = None,
        consensus: ConsensusSpan | None = None,
        basis: SecretBasis | None = None,
    ) -> Upload:
        """Choose the secret basis and project rows and anchor on it: the party's one upload.

        Parameters
        ----------
        rows : array-like or data frame of shape (n_rows, n_features)
            The party's rows, columns as agreed.
        labels : array-like of shape (n_rows,), optional
            One per row; none for representation, or where another party of the block has them.
        people : sequence of str, optional
            Of a party of a block: whose each row is, as all of the block call them.
        consensus : ConsensusSpan, optional
            What came back, where parties propose directions first.
        basis : SecretBasis, optional
            Kept from an earlier round on the same rows.

        Returns
        -------
        Upload
            Rows in a random order that only the party knows.

        Raises
        ------
        LocalError, MessageError
            Rows, labels or the consensus are not what the agreement says, or too few.

        Notes
        -----
        **Who sees what.** The analyst sees principal components of the rows up to sign, distances,
        and labels: pseudonymised personal data, not anonymous data; under ``[dp]`` with noise.
        **Cost.** One or two passes over the rows. ODC paper, eqs. (5), (6).
        """
        table = encode(rows, self.agreement.features, party=self.name)
        targets = encode_labels(labels, self.agreement, n_rows=len(table), party=self.name)
        made = InMemory()
        given = RowsInMemory(self.agreement.mapped(table), targets, people=people)
        self.write(given, to=made, consensus=consensus, basis=basis)
        return made.upload

    def write(
        self,
        rows: LabelledRows,
        *,
        to: Begin,
        consensus: ConsensusSpan | None = None,
        basis: SecretBasis | None = None,
        report: Report = silent,
    ) -> None:
        """Make the upload of rows that come block by block: what `prepare` does, of any size."""
        with one_blas_thread():  # once, for it costs as much as a small table's product
            made = self.project(rows, consensus=consensus, basis=basis)
            made.write(to, report=report)
        self._basis, self._return = made.basis, None

    def project(
        self,
        rows: LabelledRows,
        *,
        consensus: ConsensusSpan | None = None,
        basis: SecretBasis | None = None,
    ) -> Projection:
        """Settle all that an upload needs before a row is projected; the first half of `write`."""
        agreement, key, n_rows = self.agreement, self._key, rows.shape[0]
        refuse_few(n_rows, agreement=agreement, party=self.name)
        if consensus is not None:
            check_consensus(consensus, agreement, anchor_tag=self._tag, party=self.name)
        labels = rows.labels()  # refused before a long pass
        if labels is None:
            encode_labels(None, agreement, n_rows=n_rows, party=self.name)
        # the round is in the label: one order in two rounds would link their rows
        order, linked = key.stream(f"order/{agreement.round_id}").permutation(n_rows), b""
        if agreement.holdings and others_of(agreement):
            order, linked = self._linked(n_rows, rows.people())
        with one_blas_thread():
            chosen = self._choose(rows, consensus) if basis is None else self._kept(basis)
            noising = None
            if agreement.dp is not None:
                noising = noise_for(rows, agreement.dp, agreement=agreement, key=key, basis=chosen)
        about = Upload(
            party=self.name,
            agreement_digest=agreement.digest(),
            anchor_tag=self._tag,
            rows=np.broadcast_to(np.zeros(()), (n_rows, chosen.shape[1])),
            labels=None if labels is None else cast("Any", np.broadcast_to(labels[:1], n_rows)),
            anchor_image=chosen.image(self._anchor),
            simulated=self._simulated or (consensus is not None and consensus.simulated),
            linked=linked,
        )
        return Projection(rows=rows, about=about, basis=chosen, order=order, noising=noising)

    def accept(self, returned: Return) -> None:
        """Keep what came back, after checking that it is this party's and this round's.

        Parameters
        ----------
        returned : Return
            From the analyst.

        Raises
        ------
        StepError, MessageError
            Nothing has been uploaded yet; it is another party's, round's or shape.

        Notes
        -----
        **Who sees what.** ``F_i G_i`` is a secret of the whole consortium from here on: it
        projects every party's rows back. **Cost.** None.
        """
        self.basis  # noqa: B018 -- refused before there is one
        check_return(returned, self.agreement, party=self.name)
        self._return = returned

    def _aligned(self, table: Matrix) -> Matrix:
        return self.basis.project(table) @ cast("Matrix", self.returned.change_of_basis)

    def _reference(self) -> Matrix:
        return reference(self.agreement, self._anchor, public=self._public_rows)

    def _directions(self, rows: Matrix | Blocks) -> Matrix:
        """Return the party's own real directions, at most n_components, weighted if agreed."""
        size, name = self.agreement.n_components, self.agreement.basis
        if name == "lpp":
            return local_directions(rows, n_components=size, party=self.name)
        own = leading_directions(rows, n_wanted=size, centred=BASES[name].centred)  # eq. (5)
        if BASES[name].weighted:
            return weighted_directions(own, n_rows=rows.shape[0])
        return own.directions

    def _choose(self, rows: Blocks, consensus: ConsensusSpan | None) -> SecretBasis:
        """Return the basis that the agreement names, turned."""
        name, size, public = self.agreement.basis, self.agreement.n_components, self._public_rows
        if BASES[name].exchanges > 1:
            span = self._common_span(consensus)
        elif name == "haar":
            stream = self._secret.stream(f"span/{self.agreement.round_id}")
            span = haar_columns(stream, n_rows=self.agreement.n_features, n_columns=size)
        elif name == "public" and public is not None:
            span = self._directions(public)
            if span.shape[1] < size:
                raise AgreementError(
                    f"the {len(public)} public rows have {span.shape[1]} independent directions, "
                    f"fewer than n_components={size}. Agree on more public rows or on fewer "
                    "components."
                )
        else:
            span = self._directions(rows)
            require_components(span, n_components=size, n_rows=rows.shape[0], party=self.name)
        return SecretBasis(self._turned(span), party=self.name)

    def _turned(self, span: Matrix, *, use: str = "rotation") -> Matrix:
        """Return the span's basis turned by a rotation of the party's own, E_i."""
        # a Haar E_i makes columns of no meaning, and of parties with one span unlike bases
        size = span.shape[1]
        return span @ haar_columns(self._key.stream(use), n_rows=size, n_columns=size)

    def _kept(self, kept: SecretBasis) -> SecretBasis:
        """Return a basis of an earlier round, if it fits this one."""
        shape = self.agreement.n_features, self.agreement.n_components
        # an oblique basis may lengthen a row, so that the noise of [dp] would be too small
        if kept.oblique and (not self._key.simulated or self.agreement.dp is not None):
            raise OrthonormalityError(
                f"the basis that party '{self.name}' kept is not orthonormal, which only "
                "simulations of the papers' conditions accept, without [dp]. Leave it out, so "
                "that one is made."
            )
        if kept.shape != shape:
            raise ShapeError(
                f"the basis that party '{self.name}' kept has shape {kept.shape}, this round's "
                f"features and components need {shape}. Leave it out, so that one is made."
            )
        return kept

    def _common_span(self, consensus: ConsensusSpan | None) -> Matrix:
        if consensus is None:
            raise StepError(
                f"party '{self.name}' has no consensus yet, and basis='{self.agreement.basis}' "
                "takes two exchanges. Propose first, and prepare the upload with the consensus= "
                "that comes back from the analyst."
            )
        span = self._anchor.apply_transposed(consensus.rows)
        if not is_orthonormal(span):
            raise MessageError(
                f"the consensus that party '{self.name}' got is no orthonormal span of this "
                "round's anchor. Ask the analyst to make it again."
            )
        return span

    def _linked(self, n_rows: int, people: Sequence[str] | None) -> tuple[Places, bytes]:
        n_people = 0 if people is None else len({*people})
        if people is None or not len(people) == n_people == n_rows:
            others = ", ".join(others_of(self.agreement))
            raise FeatureError(
                f"party '{self.name}' has {n_people} identifiers for {n_rows} rows of people "
                f"whom {others} know as well; each row needs one of its own, written as there. "
                "Correct a table's id column, or people= beside an array."
            )
        return self._secret.order(self.agreement, people)
