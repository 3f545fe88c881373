"""The analyst: receives uploads, aligns them, certifies, trains once, and returns.

This file cannot import a secret, a basis or a party; a contract checks it. Where uploads and fits
lie is for whoever gives them: in memory in a simulation, in files elsewhere.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import cast

from cobasis.algorithms.base import Aligner, Alignment, Fits, align
from cobasis.algorithms.bases import BASES
from cobasis.algorithms.certificate import Certificate, certify, row_moments
from cobasis.algorithms.consensus import consensus_span
from cobasis.algorithms.images import Images, View
from cobasis.errors import AnotherRunError, RowCarryingError, StepError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import one_blas_thread
from cobasis.models import TABULAR, UNLABELLED, Estimator, ModelName
from cobasis.models.passes import Pass
from cobasis.models.trainer import Model, train
from cobasis.progress import AGAIN, Report, silent
from cobasis.protocol import refusals
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import ConsensusSpan, Return, SpanProposal, Upload
from cobasis.protocol.training import AlignedRows, fit_agreed, fit_unlabelled, weighed_by_place
from cobasis.protocol.vertical import linked_parts, members_of, unit_of, units_of


class Analyst:
    """The analyst's side of the round.

    Parameters
    ----------
    agreement : Agreement
        What everybody signed.
    uploads : mapping of str to upload, optional
        By party name, in memory or read lazily; by default those that `receive` takes.
    fits : Fits, optional
        Where fits and the target are kept: an interrupted run goes on from them.
    span, removed : ConsensusSpan and iterable of str, optional
        The common span, where it was made before; whose uploads are left out.
    model : Chain, optional
        Trained before on these uploads; `train` then returns it.
    aligner : Aligner, optional
        Another than the agreement's, for experiments.
    report : callable, optional
        Told of progress.

    Notes
    -----
    **Who sees what.** Projected rows and anchor, labels; of proposals the angles between spans.
    Never raw rows, the anchor, or a basis. G_i goes to party i only, the model to all.
    **Cost.** One batch of images; a pass over rows to check, one to certify, more to train.
    """

    def __init__(
        self,
        agreement: Agreement,
        *,
        uploads: Mapping[str, Upload] | None = None,
        fits: Fits | None = None,
        span: ConsensusSpan | None = None,
        removed: Iterable[str] = (),
        model: Model | None = None,
        aligner: Aligner | None = None,
        report: Report = silent,
    ) -> None:
        self.agreement = agreement
        self._aligner = aligner or agreement.make_aligner()
        self._received: dict[str, Upload] = {}
        self._given = self._received if uploads is None else uploads
        self._removed = dict.fromkeys(removed)
        self._fits = Fits() if fits is None else fits
        self.span = span
        self._model, self._report = model, report
        self._alignment: Alignment | None = None
        self._certificate: Certificate | None = None

    @property
    def uploads(self) -> Mapping[str, Upload]:
        """The uploads that take part: by party name, a block's as one."""
        there = {name: None for name in self._given if name not in self._removed}
        parts = View(there, read=self._given.__getitem__)
        return units_of(parts, self.agreement) if self.agreement.holdings else parts

    @property
    def alignment(self) -> Alignment:
        """Target and fits; StepError before `align`."""
        if self._alignment is None:
            raise StepError("nothing is aligned yet. Call align() after receiving the uploads.")
        return self._alignment

    @property
    def certificate(self) -> Certificate:
        """Facts and evidence; StepError before `certify`."""
        if self._certificate is None:
            raise StepError("nothing is certified yet. Call certify() after align().")
        return self._certificate

    @property
    def target_carries(self) -> tuple[str, ...]:
        """Whose trace target or consensus basis carry, those that left included."""
        shaped, span = self.alignment.target.shaped_by, self.span
        if self.agreement.holdings:
            shaped = (*members_of(shaped, self.agreement),)
        return tuple(dict.fromkeys((*shaped, *(span.contributors if span else ()))))

    def consensus(self, proposals: Iterable[SpanProposal]) -> ConsensusSpan:
        """Make the common span that every party will take its basis from.

        Parameters
        ----------
        proposals : iterable of SpanProposal
            One from each of at least three parties; fewer, or a foreign one, are refused.

        Returns
        -------
        ConsensusSpan
            The same for everybody; only parties can undo the anchor in it.
        """
        received: dict[str, SpanProposal] = {}
        for proposal in proposals:
            refusals.check_proposal(proposal, self.agreement)
            refusals.refuse_second(proposal.party, received)
            received[proposal.party] = proposal
        refusals.refuse_different_anchors(received)
        rows = consensus_span(
            {name: proposal.image for name, proposal in received.items()},
            n_components=self.agreement.n_components,
            weighted=BASES[self.agreement.basis].weighted,
        )
        self.span = ConsensusSpan(
            agreement_digest=self.agreement.digest(),
            anchor_tag=next(iter(received.values())).anchor_tag,
            rows=rows,
            contributors=tuple(received),
            simulated=any(proposal.simulated for proposal in received.values()),
        )
        return self.span

    def receive(self, upload: Upload) -> None:
        """Take one upload in; after `align`, fit it to the frozen target as a late party.

        Parameters
        ----------
        upload : Upload
            From a party that the agreement names.

        Raises
        ------
        CobasisError
            It belongs elsewhere or cannot be used, or is late and does not fit the target.
        """
        if self._given is not self._received:
            raise StepError(
                "this analyst was given its uploads, and takes no other. Make one with all of "
                "them, and with the fits of this one where the target is to stay."
            )
        checked = refusals.check_upload(upload, self.agreement)
        if upload.party not in self._removed:
            refusals.refuse_second(upload.party, self._given)
        if self._alignment is not None:
            refusals.refuse_different_anchors({**self.uploads, upload.party: checked})
        self._received[upload.party] = checked
        self._removed.pop(upload.party, None)
        unit = unit_of(upload.party, self.agreement) if self.agreement.holdings else upload.party
        if unit in self._fits:  # of an upload that was removed
            self._fits = self._fits.copy()
            del self._fits[unit]
        if self._alignment is not None:
            try:
                self.align()
            except BaseException:  # also Ctrl-C, after which the model is still of what is in
                del self._received[upload.party]
                raise
        self._model = None

    def remove(self, party: str) -> None:
        """Leave a party's upload and fit out; nobody else's change of basis changes.

        Parameters
        ----------
        party : str
            Of an upload that takes part. The target keeps its trace until `realign`.
        """
        refusals.require_known(party, {*self._given} - {*self._removed})
        self._removed[party] = None
        self._certificate = self._model = None
        if self._alignment is not None:
            fits = View(self.uploads, read=self._fits.__getitem__)
            self._alignment = replace(self._alignment, fits=fits) if fits else None

    def align(self) -> Alignment:
        """Make the target, unless it is kept, and fit each upload that has no fit yet.

        Returns
        -------
        Alignment
            Also kept as `alignment`; made of anchor images only.

        Raises
        ------
        CobasisError
            No upload is in; parties used different anchors; an image fits no target.
        """
        uploads = self.uploads
        if not uploads:
            raise StepError(
                f"no upload is in use (left out: {len(self._removed)}), so there is nothing to "
                "align. Call receive() first, or leave out fewer."
            )
        parts = uploads
        if self.agreement.holdings:
            there = {name: self._given[name] for name in self._given if name not in self._removed}
            parts = linked_parts(there, self.agreement)
        for upload in parts.values():
            refusals.check_header(upload, self.agreement)
        refusals.refuse_different_anchors(parts)
        fits = self._fits
        if fits.target is None:
            if fits:
                raise AnotherRunError(
                    f"here are fits ({len(fits)}), but not the target that they were made to, so "
                    "that going on could mix two runs. Delete their folder, and start again."
                )
            with one_blas_thread():
                fits.keep(self._aligner.target(self._images("making the target")))
        images = self._images("fitting", done=sum(party in fits for party in uploads))
        self._alignment = align(self._aligner, images, target=fits.target, sink=fits)
        self._certificate = None
        return self._alignment

    def certify(self) -> Certificate:
        """State what is exact of the alignment, and what evidence the round itself gives.

        Returns
        -------
        Certificate
            Also kept as `certificate`; StepError where nothing is aligned yet.
        """
        uploads, agreed = self.uploads, self.agreement
        order = agreed.parties
        if agreed.holdings:  # a turn of some columns is none of all
            whole = {*agreed.parties} - {each.party for each in agreed.holdings}
            order = tuple(each for each in uploads if each in whole)
        self._certificate = certify(
            self._images("certifying"),
            self.alignment,
            moments=View(
                uploads,
                read=lambda name: row_moments(refusals.row_blocks(uploads[name]), party=name),
            ),
            order=order,
            anchor=agreed.anchor,
            basis=agreed.basis,
            n_features=agreed.n_features if len(order) > 1 else 0,
        )
        return self._certificate

    def train(
        self,
        *,
        model: ModelName | Estimator | None = None,
        over: Pass | None = None,
        allow_row_carrying: bool = False,
    ) -> Model | None:
        """Train the model on all aligned rows, unless it was trained already.

        Parameters
        ----------
        model : str or scikit-learn estimator, optional
            Instead of the agreement's family; an estimator is cloned and fitted as it is.
        over : Pass, optional
            How blocks of rows are gone through; by default by threads of this process.
        allow_row_carrying : bool
            Accept a model that stores rows; with simulated uploads only.

        Returns
        -------
        Chain, TrainedModel or None
            Kept for `returns`; None for a representation.

        Raises
        ------
        CobasisError
            A fact of the certificate forbids it, all are of one class, or the model carries rows.
        """
        refusals.refuse_certificate(self.certificate, self.agreement)
        if allow_row_carrying and not all(each.simulated for each in self.uploads.values()):
            raise RowCarryingError(
                "allow_row_carrying is for simulations, and these uploads are real: every party "
                "could read the others' records from the model. Use model='rff'."
            )
        if self.agreement.task == "representation" or self._model is not None:
            return self._model
        model = self.agreement.model if model is None else model
        if not isinstance(model, str):
            model = weighed_by_place(model, self.agreement)
        rows = AlignedRows(self.uploads, self.alignment.changes_of_basis)
        if self.agreement.task in UNLABELLED:
            self._model = fit_unlabelled(rows, self.agreement, model=model, report=self._report)
        elif model in TABULAR and model == self.agreement.model:
            self._model = fit_agreed(rows, self.agreement)
        else:
            self._model = train(
                rows,
                model=cast("ModelName | Estimator", model),
                task=self.agreement.task,
                n_classes=len(self.agreement.classes),
                # known to all: who has uploads and agreement makes the same model again
                seed=int.from_bytes(self.agreement.digest()[:4]),
                over=over,
                report=self._report,
                allow_row_carrying=allow_row_carrying,
                tempered=self.agreement.dp is None,
            )
        return self._model

    def returns(self) -> Iterator[Return]:
        """Make one return for each party, one at a time; each is for that party alone.

        Yields
        ------
        Return
            In the order of the uploads; StepError where nothing was trained yet.
        """
        if self._model is None and self.agreement.task != "representation":
            raise StepError("no model is trained yet. Call train() first.")
        uploads, alignment = self.uploads, self.alignment
        places = {name: (name, slice(None)) for name in uploads}
        if self.agreement.holdings:
            places = members_of(uploads, self.agreement)
        trained_on, carried = tuple(places), self.target_carries
        simulated = any(each.simulated for each in uploads.values())
        for party, (unit, rows) in places.items():
            yield Return(
                party=party,
                agreement_digest=self.agreement.digest(),
                change_of_basis=alignment.fits[unit].change_of_basis[rows],
                model=self._model,
                evidence=self.certificate.parties[unit].evidence,
                trained_on=trained_on,
                target_carries=carried,
                simulated=simulated,
            )

    def run(
        self,
        *,
        model: ModelName | Estimator | None = None,
        allow_row_carrying: bool = False,
        realign: bool = False,
    ) -> Mapping[str, Return]:
        """Align, certify, train and return, of all uploads that were not removed.

        Parameters
        ----------
        model, allow_row_carrying : optional
            As in `train`.
        realign : bool
            Make a new target, which after `remove` is the only exact removal. A consensus basis
            keeps its trace of who is gone until a new exchange with new uploads.

        Returns
        -------
        mapping of str to Return
            By party name.
        """
        if realign:
            self._fits = Fits()  # those that were given stay as they are
        self._model = None
        self.align()
        self.certify()
        self.train(model=model, allow_row_carrying=allow_row_carrying)
        return {each.party: each for each in self.returns()}

    def _images(self, step: str, *, done: int = 0) -> Images:
        """Read images when asked and report how far that is; `done` are counted already."""
        uploads, report = self.uploads, self._report
        numbers, size = count(done), len(uploads)

        def read(party: str) -> Matrix:
            image = uploads[party].anchor_image[:]
            before, now = divmod(next(numbers), size)
            report(f"{step}{AGAIN}{before + 1}" if before else step, now + 1, size)
            return image

        report(step, done, size)
        return View(uploads, read=read)
