"""A party: prepares one upload, accepts one return, predicts with its own basis."""

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.bases import require_components
from cobasis.errors import StepError, UnknownPartyError
from cobasis.features.numeric import encode
from cobasis.linalg.arrays import Matrix
from cobasis.protocol.acceptance import check_consensus, check_return
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.choice import Chooser
from cobasis.protocol.labels import decode_labels, encode_labels
from cobasis.protocol.messages import ConsensusSpan, Return, SpanProposal, Upload
from cobasis.protocol.public_rows import check_public_rows
from cobasis.protocol.secrets import ConsortiumSecret, PartyKey, SecretBasis


class Party:
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
        The agreed public rows, where anchor or basis are public.
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
        The agreement's anchor is uniform or public.

    Notes
    -----
    **Who sees what.** Rows, anchor, secrets and basis stay here. Out go a `SpanProposal`
    (consensus basis only) and one `Upload`; in comes one `Return`.

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
            msg = (
                f"party '{name}' is not in the agreement of round '{agreement.round_id}' "
                f"({', '.join(agreement.parties)}). A new party needs a new agreement and round."
            )
            raise UnknownPartyError(msg)
        secret.check_opens(agreement, party=name)
        own_key = key or PartyKey()
        public = check_public_rows(public_rows, agreement, party=name)
        self.name, self._agreement = name, agreement
        self._tag = secret.anchor_tag(agreement)
        self._anchor = secret.anchor(agreement, public_rows=public)
        self._key, self._simulated = own_key, secret.simulated or own_key.simulated
        self._chooser = Chooser(
            party=name,
            agreement=agreement,
            secret=secret,
            key=own_key,
            public_rows=public,
            complete=complete_basis,
        )
        self._basis: SecretBasis | None = None
        self._return: Return | None = None

    def __repr__(self) -> str:
        """Show the name only."""
        return f"<Party '{self.name}'>"

    def propose(self, rows: npt.ArrayLike) -> SpanProposal:
        """Show the analyst the party's directions, as the anchor sees them.

        Parameters
        ----------
        rows : array-like of shape (n_rows, n_features)
            The party's rows.

        Returns
        -------
        SpanProposal
            For ``Analyst.consensus``.

        Raises
        ------
        LocalError
            The rows are not what the agreement says, or its basis is not "consensus".

        Notes
        -----
        **Who sees what.** The analyst learns angles between spans, no rows.
        **Cost.** A thin SVD of the rows.
        """
        if self._agreement.basis != "consensus":
            msg = (
                f"basis='{self._agreement.basis}' takes one exchange, so there is nothing for "
                f"party '{self.name}' to propose. Call prepare(rows, labels)."
            )
            raise StepError(msg)
        table = encode(rows, self._agreement.features, party=self.name)
        directions = self._chooser.directions(table)
        require_components(directions, n_components=1, n_rows=len(table), party=self.name)
        return SpanProposal(
            party=self.name,
            agreement_digest=self._agreement.digest(),
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
            What came back, where the basis is "consensus".
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
        distances, and labels: pseudonymised personal data, not anonymous data.
        **Cost.** A thin SVD of the rows, two products. ODC paper, Algorithm 1, eqs. (5), (6).
        """
        table = encode(rows, self._agreement.features, party=self.name)
        targets = encode_labels(labels, self._agreement, n_rows=len(table), party=self.name)
        if consensus is not None:
            check_consensus(consensus, self._agreement, anchor_tag=self._tag, party=self.name)
        chosen = self._chooser.basis(table, anchor=self._anchor, consensus=consensus, kept=basis)
        order = self._key.stream(f"order/{self._agreement.round_id}").permutation(len(table))
        self._basis, self._return = chosen, None
        return Upload(
            party=self.name,
            agreement_digest=self._agreement.digest(),
            anchor_tag=self._tag,
            rows=chosen.project(table[order]),
            labels=None if targets is None else targets[order],
            anchor_image=chosen.image(self._anchor),
            simulated=self._simulated or (consensus is not None and consensus.simulated),
        )

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
        n_components = self.basis.shape[1]
        check_return(returned, self._agreement, n_components=n_components, party=self.name)
        self._return = returned

    def transform(self, rows: npt.ArrayLike) -> Matrix:
        """Bring rows into the aligned representation, ``Y_i F_i G_i``.

        Parameters
        ----------
        rows : array-like or data frame of shape (n_rows, n_features)
            Columns as agreed.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            Aligned rows.

        Raises
        ------
        LocalError
            Nothing has been accepted yet, or the rows are not what the agreement says.

        Notes
        -----
        **Who sees what.** Stays at the party. **Cost.** Two products.
        """
        table = encode(rows, self._agreement.features, party=self.name)
        change = self.returned.change_of_basis
        return self.basis.project(table) @ change

    def predict(self, rows: npt.ArrayLike) -> npt.NDArray[np.generic]:
        """Predict labels with the common model and the party's own basis, eq. (9).

        Parameters
        ----------
        rows : array-like or data frame of shape (n_rows, n_features)
            Columns as agreed.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes of the agreement, or numbers.

        Raises
        ------
        LocalError
            As `transform`, or the round trained no model.

        Notes
        -----
        **Who sees what.** Stays at the party. **Cost.** Two products and the model.
        """
        model = self.returned.model
        if model is None:
            msg = (
                "this round was for a representation and trained no model. Call transform(rows), "
                "or agree on a task."
            )
            raise StepError(msg)
        return decode_labels(model.predict(self.transform(rows)), self._agreement)

    @property
    def basis(self) -> SecretBasis:
        """Of the last upload, to keep for a later round on the same rows; StepError before."""
        if self._basis is None:
            msg = f"party '{self.name}' has not prepared its upload. Call prepare(rows, labels)."
            raise StepError(msg)
        return self._basis

    @property
    def returned(self) -> Return:
        """What was accepted; StepError before."""
        if self._return is None:
            msg = f"party '{self.name}' has no return yet. Call accept() with the analyst's."
            raise StepError(msg)
        return self._return
