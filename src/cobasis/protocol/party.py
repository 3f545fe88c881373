"""A party: proposes directions, makes its one upload; `Predictor` has what comes after."""

import numpy.typing as npt

from cobasis.algorithms.bases import require_components
from cobasis.errors import OptionError, UnknownPartyError
from cobasis.features.encoder import encode
from cobasis.linalg.arrays import Blocks, WholeTable
from cobasis.linalg.threads import one_blas_thread
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.choice import Chooser, Memory, check_public_rows, require_proposals
from cobasis.protocol.messages import (
    ConsensusSpan,
    SpanProposal,
    Upload,
    UploadHeader,
    encode_labels,
)
from cobasis.protocol.prediction import Predictor, check_consensus
from cobasis.protocol.projection import (
    Begin,
    InMemory,
    LabelledRows,
    Projection,
    RowsInMemory,
    noise_for,
)
from cobasis.protocol.secrets import ConsortiumSecret, PartyKey, SecretBasis


class Party(Predictor):
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
    complete_basis : bool
        Fill a basis up where rows are too few; simulation only.

    Raises
    ------
    LocalError
        The agreement does not name the party, the secret is not the agreement's, or
        `complete_basis` is asked for outside a simulation.

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
    ``simulate`` makes parties; by hand it is agreement, secret, party, upload:

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
        complete_basis: bool = False,
    ) -> None:
        if name not in agreement.parties:
            raise UnknownPartyError(
                f"party '{name}' is not in the agreement of round '{agreement.round_id}' "
                f"({', '.join(agreement.parties)}). A new party needs a new agreement and round."
            )
        secret.check_opens(agreement, party=name)
        own_key = key or PartyKey()
        if complete_basis and not own_key.simulated:
            raise OptionError(
                f"complete_basis at party '{name}' would add arbitrary directions to a real basis. "
                "Leave it out; it is for simulations."
            )
        if complete_basis and agreement.dp is not None:
            raise OptionError(
                f"complete_basis at party '{name}' is for bases that rows shape, and [dp] holds "
                "for none of them. Leave it out."
            )
        public = None
        if public_rows is not None or agreement.public_rows_sha256 is not None:
            public = check_public_rows(public_rows, agreement, party=name)
        self.name, self.agreement = name, agreement
        self._tag = secret.anchor_tag(agreement)
        self._anchor = secret.anchor(agreement, public_rows=public)
        self._simulated = secret.simulated or own_key.simulated
        self._chooser = Chooser(
            party=name,
            agreement=agreement,
            secret=secret,
            key=own_key,
            public_rows=public,
            complete=complete_basis,
        )
        self._basis, self._return = None, None

    def __repr__(self) -> str:
        """Show the name only."""
        return f"<Party '{self.name}'>"

    @property
    def finished(self) -> bool:
        """Whether a return was accepted, so that the party can predict."""
        return self._return is not None

    def propose(
        self, rows: npt.ArrayLike | Blocks, *, memory: Memory | None = None
    ) -> SpanProposal:
        """Show the analyst the party's directions, as the anchor sees them.

        Parameters
        ----------
        rows : array-like, data frame or Blocks of shape (n_rows, n_features)
            The party's rows; ``cobasis.tables.open_table`` makes blocks of a file.
        memory : mutable mapping of str to ndarray, optional
            Where the party keeps the directions, for `write`. Private.

        Returns
        -------
        SpanProposal
            For ``Analyst.consensus``.

        Raises
        ------
        LocalError
            The rows are not what the agreement says, or its basis takes one exchange only.

        Notes
        -----
        **Who sees what.** The analyst learns angles between spans, no rows; where directions are
        weighted, also their singular values, which an upload of basis svd shows as well.
        **Cost.** One or two passes over the rows.
        """
        require_proposals(self.agreement, party=self.name)
        features = self.agreement.features
        table = (
            rows
            if isinstance(rows, Blocks)
            else WholeTable(encode(rows, features, party=self.name))
        )
        directions = self._chooser.directions(table, memory=memory)
        require_components(directions, n_components=1, n_rows=table.shape[0], party=self.name)
        return SpanProposal(
            party=self.name,
            agreement_digest=self.agreement.digest(),
            anchor_tag=self._tag,
            image=self._anchor.apply(self._chooser.turned(directions, use="proposal")),
            simulated=self._simulated,
        )

    def prepare(
        self,
        rows: npt.ArrayLike,
        labels: npt.ArrayLike | None = None,
        *,
        consensus: ConsensusSpan | None = None,
        basis: SecretBasis | None = None,
    ) -> Upload:
        """Choose the secret basis and project rows and anchor on it: the party's one upload.

        Parameters
        ----------
        rows : array-like or data frame of shape (n_rows, n_features)
            The party's rows, columns as agreed.
        labels : array-like of shape (n_rows,), optional
            One per row; none for representation.
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
        LocalError
            Rows or labels are not what the agreement says; the rows have fewer independent
            directions than components; a consensus is needed and missing.
        MessageError
            The consensus belongs to another round.

        Notes
        -----
        **Who sees what.** The analyst sees principal components of the rows up to sign,
        distances, and labels: pseudonymised personal data, not anonymous data. Under ``[dp]`` what
        is seen has its noise; a `Party` counts no releases, its vault does.
        **Cost.** One or two passes over the rows, two products. ODC paper, eqs. (5), (6).
        """
        table = encode(rows, self.agreement.features, party=self.name)
        targets = encode_labels(labels, self.agreement, n_rows=len(table), party=self.name)
        sink = InMemory()
        self.write(RowsInMemory(table, targets), to=sink, consensus=consensus, basis=basis)
        return sink.upload

    def write(
        self,
        rows: LabelledRows,
        *,
        to: Begin,
        consensus: ConsensusSpan | None = None,
        basis: SecretBasis | None = None,
        memory: Memory | None = None,
        report: Report = silent,
    ) -> None:
        """Make the upload of rows that come block by block: what `prepare` does, of any size.

        Parameters
        ----------
        rows : LabelledRows of shape (n_rows, n_features)
            As ``cobasis.tables.open_table`` opens a file.
        to : callable
            Where it goes: ``cobasis.bundle.uploads.UploadFile(path)``.
        consensus, basis : ConsensusSpan, SecretBasis, optional
            As in `prepare`.
        memory : mutable mapping of str to ndarray, optional
            Where the directions are looked up, and kept until the upload is whole. Private.
        report : callable
            Told of every pass.

        Raises
        ------
        LocalError, MessageError
            As `prepare`.

        Notes
        -----
        **Who sees what.** As `prepare`. **Cost.** One or two passes over the rows for a basis of
        their own, none for another; one to bind noise to them; one to project them.
        """
        with one_blas_thread():  # once, for it costs as much as a small table's product
            made = self.project(rows, consensus=consensus, basis=basis, memory=memory)
            made.write(to, report=report)
        self._basis, self._return = made.basis, None
        if memory is not None:
            memory.clear()

    def project(
        self,
        rows: LabelledRows,
        *,
        consensus: ConsensusSpan | None = None,
        basis: SecretBasis | None = None,
        memory: Memory | None = None,
    ) -> Projection:
        """Settle all that an upload needs before a row is projected; the first half of `write`.

        Parameters
        ----------
        rows : LabelledRows of shape (n_rows, n_features)
            On the agreed scale.
        consensus, basis, memory : optional
            As in `write`.

        Returns
        -------
        Projection
            Writes the upload, in as many calls as wanted: the same numbers each time.

        Raises
        ------
        LocalError, MessageError
            As `prepare`.

        Notes
        -----
        **Who sees what.** The party alone: it holds the basis. **Cost.** As `write`, but for the
        last pass.
        """
        if consensus is not None:
            check_consensus(consensus, self.agreement, anchor_tag=self._tag, party=self.name)
        agreement, key = self.agreement, self._chooser.key
        labels = rows.labels()  # refused before a long pass
        if labels is None:
            encode_labels(None, agreement, n_rows=rows.shape[0], party=self.name)
        with one_blas_thread():
            chosen = self._chooser.basis(
                rows, anchor=self._anchor, consensus=consensus, kept=basis, memory=memory
            )
            noising = None
            if agreement.dp is not None:
                noising = noise_for(
                    rows, agreement.dp, agreement=agreement, basis=chosen, key=key, party=self.name
                )
        about = UploadHeader(
            party=self.name,
            agreement_digest=agreement.digest(),
            anchor_tag=self._tag,
            simulated=self._simulated or (consensus is not None and consensus.simulated),
            n_rows=rows.shape[0],
            n_components=chosen.shape[1],
            n_anchor_rows=agreement.n_anchor_rows,
            labels=None if labels is None else labels.dtype.name,
        )
        return Projection(
            rows=rows,
            about=about,
            basis=chosen,
            anchor_image=chosen.image(self._anchor),
            order=key.stream(f"order/{agreement.round_id}").permutation(rows.shape[0]),
            noising=noising,
        )
