"""What each side refuses of what the other sent, and why."""

import hmac
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import numpy as np

from cobasis.algorithms.bases import BASES
from cobasis.algorithms.certificate import Certificate, refuse_wrong_fit
from cobasis.algorithms.fits import DETERMINED
from cobasis.algorithms.images import check_image
from cobasis.algorithms.readable import named
from cobasis.errors import (
    AgreementError,
    AnchorTagError,
    DuplicatePartyError,
    LabelError,
    LocalError,
    MessageError,
    ScaleError,
    UndeterminedFitError,
    UnknownPartyError,
)
from cobasis.features.encoder import LARGEST, too_large
from cobasis.features.outcome import check_records, part_of, record_type
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.models import AGREED_AS, MODELLESS, UNLABELLED
from cobasis.models.chain import Chain
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import ConsensusSpan, Labels, Message, Return, SpanProposal, Upload
from cobasis.protocol.sums_terms import SumsTerms, layout_of
from cobasis.protocol.terms import others_of

LEAVE_OUT = "Analyst.remove, or exclude= of simulate"
"""How a party is left out in Python; the command line puts its option in place of it."""

BLOCK_CELLS = 2**21
"""How many numbers of a party's rows are read at a time: 16 MB as float64."""


def require_known(party: str, known: Collection[str]) -> None:
    if party not in known:
        listed = ", ".join(sorted(known)) or "nobody is"
        raise UnknownPartyError(f"party '{party}' is not known here ({listed}). Check it.")


def refuse_second(party: str, received: Iterable[str]) -> None:
    if party in received:
        raise DuplicatePartyError(
            f"a message of party '{party}' is in already, so this one is a duplicate or an "
            "impostor's. Remove the first if the party really sent a new one."
        )


def check_origin(message: Message, agreement: Agreement, *, what: str) -> None:
    """Refuse a message from or to an unknown party, or of another agreement."""
    party = getattr(message, "party", None)  # a span is for all
    if party is not None and not agreement.names(party):
        require_known(party, agreement.parties)
    if message.agreement_digest != agreement.digest():
        raise MessageError(
            f"{what} belongs to another agreement than round '{agreement.round_id}'. Ask its "
            "sender to make it with the signed one."
        )


@contextmanager
def as_message_error(what: str) -> Iterator[None]:
    """Turn a local complaint about a table that was sent into one about the message."""
    try:
        yield
    except LocalError as error:
        raise MessageError(
            f"{what} cannot be used: {error.args[0]} Ask its sender to prepare it again."
        ) from None


def check_header(upload: Upload, agreement: Agreement) -> None:
    """Refuse an upload of another agreement or of other sizes; no number of it is read."""
    what = f"the upload of party '{upload.party}'"
    check_origin(upload, agreement, what=what)
    rows, image = upload.rows.shape, upload.anchor_image.shape
    n_labels = None if upload.labels is None else len(upload.labels)
    own = agreement.held_by(upload.party) if agreement.holdings else agreement
    width, height = own.n_components, agreement.n_anchor_rows
    labelled = agreement.task not in UNLABELLED and not (agreement.holdings and own.unlabelled)
    expected, joins = rows[0] if labelled else None, bool(agreement.holdings and others_of(own))
    sized = rows[1] == width and image == (height, width) and n_labels == expected
    if not sized or joins != bool(upload.linked):
        raise MessageError(
            f"{what} holds rows of shape {rows}, {n_labels} labels, an anchor image of shape "
            f"{image} and {'a' if upload.linked else 'no'} tag of people; {width} columns, "
            f"{expected} labels, {(height, width)} and {'a' if joins else 'no'} tag are needed. "
            "Ask the party to prepare it again, with this agreement."
        )
    if rows[0] < agreement.fewest_rows:
        raise MessageError(
            f"{what} holds fewer rows than fewest_rows={agreement.fewest_rows}, which whoever "
            "takes part needs. Run without it."
        )


def check_upload(upload: Upload, agreement: Agreement) -> Upload:
    """Return an upload, one in memory as tables of floats, if a run can use all of its numbers."""
    what = f"the upload of party '{upload.party}'"
    if type(upload) is Upload:  # of others tables lie on a disk
        with as_message_error(what):
            rows = as_matrix(upload.rows, name="its table of rows")
            image = as_matrix(upload.anchor_image, name="its anchor image")
        told = None if upload.labels is None else cast("Labels", np.atleast_1d(upload.labels))
        upload = replace(upload, rows=rows, anchor_image=image, labels=told)
    check_header(upload, agreement)
    labels, name = None if upload.labels is None else upload.labels[:], "its table of rows"
    if labels is not None:
        outcome, good = agreement.outcome, labels.ndim == 1
        if agreement.task == "classification" and outcome is None:
            good = good and labels.dtype.kind == "i"
            good = good and 0 <= labels.min() <= labels.max() < len(agreement.classes)
        else:
            kind = np.float64 if outcome is None else record_type(outcome.columns)
            good = good and labels.dtype == kind and np.isfinite(labels.view("<f8")).all()
        if not good:
            raise MessageError(
                f"the labels of party '{upload.party}' are not what task='{agreement.task}' needs. "
                "Ask the party to prepare its upload again."
            )
    with as_message_error(what):
        if labels is not None and labels.dtype.kind != "i":
            check_records(labels, task=agreement.task, party=upload.party)
        check_image(upload.party, upload.anchor_image[:], n_rows=agreement.n_anchor_rows)
        for block in row_blocks(upload):
            table = as_matrix(block, name=name)
            if not max(table.max(), -table.min()) <= LARGEST:
                raise too_large(name)
    return upload


def refuse_few(n_rows: int, *, agreement: Agreement, party: str) -> None:
    fewest, terms, dp = agreement.fewest_rows, agreement.sums, agreement.dp
    if terms is not None and not terms.least_rows <= n_rows <= terms.most_rows:
        raise AgreementError(
            f"party '{party}' has {n_rows:,} rows to sum up, and the agreement takes "
            f"{terms.least_rows:,} to {terms.most_rows:,} of a party. Send as many, or change that."
        )
    if dp is not None and n_rows > dp.most_rows:
        raise AgreementError(
            f"party '{party}' would upload {n_rows:,} rows, and the delta of [dp] was agreed on "
            f"for at most most_rows={dp.most_rows:,}. Upload fewer, or agree on a larger "
            "most_rows with a smaller delta."
        )
    if n_rows < fewest:
        raise AgreementError(
            f"party '{party}' has fewer rows to send than fewest_rows={fewest}, so it takes no "
            "part in this round. Send more of your rows, or agree on fewer."
        )


def refuse_beyond(labels: Labels | None, terms: SumsTerms, *, party: str) -> None:
    broken = []
    if labels is not None and terms.target_range is not None:
        (low, high), value = terms.target_range, np.asarray(part_of(labels))
        if ((value < low) | (value > high)).any():
            broken.append(f"a label outside the agreed range from {low:g} to {high:g}")
    for what, most in (("an exposure", terms.most_exposure), ("a weight", terms.most_weight)):
        told = part_of(labels, what.split()[1])
        if most is not None and told is not None and (told > most).any():
            broken.append(f"{what} above {most:g}")
    if broken:
        raise LabelError(
            f"party '{party}' has rows with {' and with '.join(broken)}, so sums would have no "
            "bound. Correct them, or agree on more."
        )


def check_proposal(proposal: SpanProposal, agreement: Agreement) -> None:
    what = f"the proposal of party '{proposal.party}'"
    check_origin(proposal, agreement, what=what)
    with as_message_error(what):
        check_image(proposal.party, proposal.image, n_rows=agreement.n_anchor_rows)


def check_consensus(
    consensus: ConsensusSpan, agreement: Agreement, *, anchor_tag: bytes, party: str
) -> None:
    what = f"the consensus for party '{party}'"
    check_origin(consensus, agreement, what=what)
    shape = (agreement.n_anchor_rows, agreement.n_components)
    same = hmac.compare_digest(consensus.anchor_tag, anchor_tag)
    if not same or np.shape(consensus.rows) != shape:
        raise MessageError(
            f"{what} was made with another anchor or has shape {np.shape(consensus.rows)} instead "
            f"of {shape}. Ask the analyst for this round's."
        )
    # A span of one party and an analyst shows that party whole; one of strangers shows it to them.
    who, least = {*consensus.contributors}, BASES[agreement.basis].min_parties
    if len(who) < max(least, len(consensus.contributors)) or who - {*agreement.parties}:
        raise MessageError(
            f"{what} says that it was made of the directions of {named(consensus.contributors)}; "
            f"agreed are at least {least} of {named(agreement.parties)}. Do not upload through it, "
            "and ask the analyst whose proposals it has."
        )
    with as_message_error(what):
        as_matrix(consensus.rows, name="its table")


def check_return(returned: Return, agreement: Agreement, *, party: str) -> None:
    what = f"the return to party '{party}'"
    check_origin(returned, agreement, what=what)
    n_components = agreement.n_features if agreement.sums else agreement.n_components
    change, shape = returned.change_of_basis, (n_components, n_components)
    with as_message_error(what):  # of sums there is none
        shape = shape if change is None else as_matrix(change, name="its change of basis").shape
    if returned.party != party or shape[0] != n_components:
        raise MessageError(
            f"this return is for party '{returned.party}' with {shape[0]} components; here is "
            f"party '{party}' with {n_components}. Ask the analyst for yours."
        )
    model, task, width = returned.model, agreement.task, shape[1]
    if isinstance(model, Chain):
        # a representation has no classes, and no chain has a width of 0: it is refused
        told = not agreement.classes, width, len(agreement.classes) or 1, model.family
        both = [model, returned.others or model]
        ends = {(x.head == "prediction", x.widths[0], x.widths[-1], x.family) for x in both}
        fits = ends == {told} and (change is None) == (agreement.sums is not None)
    elif model is not None:
        fits = task not in MODELLESS and len(model.axes) == width
    else:
        sent = None if returned.total is None else returned.total.shape
        total = (layout_of(agreement).n_words,) if task == "table" else None
        fits = task in MODELLESS and sent == total
    if not fits:
        raise MessageError(
            f"the model in {what} does not go with task='{task}', {width} columns. Ask for another."
        )
    if isinstance(model, Chain):
        waves = agreement.sums and model.family == "rff"  # ridge, of a map with waves
        names = (model.fit.model,) if model.fit else AGREED_AS["linear" if waves else model.family]
        if {*names}.isdisjoint(agreement.models or (agreement.model,)):
            raise MessageError(
                f"the model in {what} is of family '{model.family}', and agreed are "
                f"{', '.join(agreement.allowed_models)}. Ask the analyst for a run with one."
            )
    parties, fewest = returned.trained_on, agreement.minimum_parties
    strangers = sorted({*parties} - {*agreement.parties})
    if strangers or not fewest <= len({*parties}) == len(parties):
        who = f"among them '{strangers[0]}', no party of it" if strangers else "or names one twice"
        raise MessageError(
            f"{what} names {len(parties)} whose rows shaped it, {who}; agreed are {fewest} or more "
            f"of {named(agreement.parties)}. Ask the analyst whose rows it has."
        )


def row_blocks(upload: Upload) -> Iterator[Matrix]:
    n_rows, width = upload.rows.shape
    size = max(1, BLOCK_CELLS // width)
    for start in range(0, n_rows, size):
        yield upload.rows[start : min(start + size, n_rows)]


def refuse_different_anchors(messages: Mapping[str, SpanProposal | Upload]) -> None:
    groups: dict[bytes, list[str]] = {}
    for party, message in messages.items():
        groups.setdefault(message.anchor_tag, []).append(party)
    if len(groups) > 1:
        listed = " | ".join(named(names) for names in groups.values())
        raise AnchorTagError(
            f"the parties used {len(groups)} different anchors: {listed}. Their images cannot be "
            "compared. Have those in the minority check the consortium secret and prepare again."
        )


def refuse_certificate(certificate: Certificate, agreement: Agreement) -> None:
    parties = certificate.parties
    lost = [name for name, each in parties.items() if each.smallest_cosine <= DETERMINED]
    if lost:
        what = (
            f"the fit of {_named(lost)} leaves directions undetermined: nothing in the target "
            "corresponds to them. Have features and anchor checked there, lower n_components, or "
            f"leave the party's rows out ({LEAVE_OUT})."
        )
        raise UndeterminedFitError(what, tuple(lost))
    band = agreement.scale_band
    for what, field in (("rows", "scale"), ("anchor images", "image_scale")):
        scales = {name: getattr(each, field) for name, each in parties.items()}
        outside = [name for name, scale in scales.items() if not 1 / band <= scale <= band]
        if outside:
            raise ScaleError(
                f"the {what} of {_named(outside)} are more than {band:g} times larger or smaller "
                "than the median party's, so they would drown the others or vanish. Have the units "
                f"checked there, or leave the party's rows out ({LEAVE_OUT})."
            )
    for name, each in parties.items():
        refuse_wrong_fit(each.fit_error, party=name)


def _named(parties: Iterable[str]) -> str:
    return "party " + ", ".join(f"'{name}'" for name in parties)
