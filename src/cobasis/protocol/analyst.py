"""The analyst: receives uploads, aligns them, certifies, trains once, and returns.

This file cannot import a secret, a basis or a party; a contract checks it.
"""

from collections.abc import Iterable, Mapping

from cobasis.algorithms.base import Aligner, Alignment, align
from cobasis.algorithms.certificate import Certificate, certify, row_moments
from cobasis.errors import StepError
from cobasis.models.families import Estimator
from cobasis.protocol import refusals
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.common_span import make_consensus
from cobasis.protocol.messages import ConsensusSpan, Return, SpanProposal, Upload
from cobasis.protocol.returns import make_returns


class Analyst:
    """The analyst's side of the round.

    Parameters
    ----------
    agreement : Agreement
        What everybody signed.
    aligner : Aligner, optional
        Another than the agreement's, for experiments; by default the agreement's.

    Notes
    -----
    **Who sees what.** Uploads: projected rows, projected anchor, labels. Never raw rows, the
    anchor, or a basis. **Cost.** Holds all uploads in memory.
    """

    def __init__(self, agreement: Agreement, *, aligner: Aligner | None = None) -> None:
        self.agreement = agreement
        self._aligner = aligner or agreement.make_aligner()
        self._uploads: dict[str, Upload] = {}
        self._alignment: Alignment | None = None
        self._certificate: Certificate | None = None
        self._contributors: tuple[str, ...] = ()

    @property
    def parties(self) -> tuple[str, ...]:
        """Whose uploads are in."""
        return tuple(self._uploads)

    def upload(self, party: str) -> Upload:
        """Return the upload of a party that is in."""
        refusals.require_known(party, self._uploads)
        return self._uploads[party]

    @property
    def alignment(self) -> Alignment:
        """Target and fits; StepError before `align`."""
        if self._alignment is not None:
            return self._alignment
        raise StepError("nothing is aligned yet. Call align() after receiving the uploads.")

    @property
    def certificate(self) -> Certificate:
        """Facts and evidence; StepError before `certify`."""
        if self._certificate is None:
            raise StepError("nothing is certified yet. Call certify() after align().")
        return self._certificate

    def consensus(self, proposals: Iterable[SpanProposal]) -> ConsensusSpan:
        """Make the common span that every party will take its basis from.

        Parameters
        ----------
        proposals : iterable of SpanProposal
            One from each of at least three parties.

        Returns
        -------
        ConsensusSpan
            The same for everybody.

        Raises
        ------
        CobasisError
            Fewer than three parties, a proposal that belongs elsewhere, or no common span.

        Notes
        -----
        **Who sees what.** The analyst sees angles between spans; only parties can undo the
        anchor in what returns. **Cost.** A thin SVD of an ``a x sum r_i`` matrix.
        """
        span = make_consensus(proposals, self.agreement)
        self._contributors = span.contributors
        return span

    def receive(self, upload: Upload) -> None:
        """Take one upload in; after `align`, fit it to the frozen target as a late party.

        Parameters
        ----------
        upload : Upload
            From a party that the agreement names.

        Raises
        ------
        CobasisError
            It belongs elsewhere, its tables cannot be used, or it is late and used another
            anchor or is not determined by the target.

        Notes
        -----
        **Who sees what.** A late G_i needs Z and its own image, nobody else's.
        **Cost.** One QR factorisation; late, one fit.
        """
        checked = refusals.check_upload(upload, self.agreement)
        refusals.refuse_second(upload.party, self._uploads)
        if self._alignment is not None:
            refusals.refuse_different_anchors({**self._uploads, upload.party: upload})
            self._alignment = self._alignment.add(upload.party, checked.anchor_image)
            self._certificate = None
        self._uploads[upload.party] = checked

    def remove(self, party: str) -> None:
        """Drop a party's upload and fit; nobody else's change of basis changes.

        Parameters
        ----------
        party : str
            Its name; it may have been the reference.

        Raises
        ------
        UnknownPartyError
            No upload of that name is in.

        Notes
        -----
        **Who sees what.** The target keeps the party's trace, and `Return.target_carries`
        says so, until `realign`. **Cost.** None; train again afterwards.
        """
        refusals.require_known(party, self._uploads)
        del self._uploads[party]
        if self._alignment is not None:
            self._alignment = self._alignment.remove(party) if self._uploads else None
            self._certificate = None

    def align(self) -> Alignment:
        """Make the target from all uploads that are in, and fit each of them to it.

        Returns
        -------
        Alignment
            Also kept as `alignment`.

        Raises
        ------
        CobasisError
            No upload is in; parties used different anchors (found exactly, before any
            residual is looked at); an image fits no target.

        Notes
        -----
        **Who sees what.** Reads anchor images only. **Cost.** The aligner's.
        """
        if not self._uploads:
            raise StepError("no upload is in, so there is nothing to align. Call receive() first.")
        refusals.refuse_different_anchors(self._uploads)
        self._alignment = align(
            self._aligner, {name: each.anchor_image for name, each in self._uploads.items()}
        )
        self._certificate = None
        return self._alignment

    def certify(self) -> Certificate:
        """State the facts of the alignment, and the evidence.

        Returns
        -------
        Certificate
            Also kept as `certificate`.

        Raises
        ------
        StepError
            Nothing is aligned yet.

        Notes
        -----
        **Who sees what.** Uploads only. **Cost.** ``min(c, 15)`` small products a party.
        """
        self._certificate = certify(
            {name: each.anchor_image for name, each in self._uploads.items()},
            self.alignment,
            moments={n: row_moments([x.rows], party=n) for n, x in self._uploads.items()},
            order=self.agreement.parties,
            anchor=self.agreement.anchor,
            basis=self.agreement.basis,
            n_features=self.agreement.n_features,
        )
        return self._certificate

    def train(
        self,
        *,
        model: Estimator | None = None,
        allow_row_carrying: bool = False,
    ) -> Mapping[str, Return]:
        """Train the model on all aligned rows and make one return per party.

        Parameters
        ----------
        model : scikit-learn estimator, optional
            Instead of the agreement's family; cloned and fitted as it is.
        allow_row_carrying : bool
            Accept a model that stores rows; with simulated uploads only.

        Returns
        -------
        mapping of str to Return
            By party name; each is for that party alone.

        Raises
        ------
        StepError, UndeterminedFitError, ScaleError, FitCheckError
            Nothing is certified yet, or a fact of the certificate forbids it.
        LabelError
            All rows are of one class.
        RowCarryingError
            The model carries rows.

        Notes
        -----
        **Who sees what.** G_i goes to party i only; the model to all. **Cost.** Five folds.
        """
        return make_returns(
            self._uploads,
            self.alignment,
            certificate=self.certificate,
            agreement=self.agreement,
            contributors=self._contributors,
            model=model,
            allow_row_carrying=allow_row_carrying,
        )

    def run(
        self,
        *,
        exclude: Iterable[str] = (),
        model: Estimator | None = None,
        allow_row_carrying: bool = False,
    ) -> Mapping[str, Return]:
        """Align, certify and train, without the parties that are excluded by name.

        Run after `remove`, it is the only exact removal, but for a consensus basis: that keeps
        its trace of who is gone until a new exchange with new uploads.

        Parameters
        ----------
        exclude : iterable of str
            Parties whose uploads are dropped before anything is aligned.
        model, allow_row_carrying : optional
            As in `train`.

        Returns
        -------
        mapping of str to Return
            By party name.

        Raises
        ------
        CobasisError
            As `align`, `certify` and `train`.

        Notes
        -----
        **Who sees what.** As `train`. **Cost.** As the three steps.
        """
        excluded = tuple(dict.fromkeys(exclude))
        refusals.refuse_exclusion(excluded, self._uploads)
        before, self._alignment, self._certificate = dict(self._uploads), None, None
        for name in excluded:
            self.remove(name)
        try:
            self.align()
            self.certify()
            return self.train(model=model, allow_row_carrying=allow_row_carrying)
        except Exception:
            if excluded:  # what was aligned without them does not fit the uploads that are back
                self._uploads, self._alignment, self._certificate = before, None, None
            raise

    realign = run
