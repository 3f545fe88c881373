"""What the model is worth to a party, and what it becomes for the party's own rows."""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from cobasis.bundle.messages import model_in
from cobasis.bundle.transcript import now
from cobasis.disk.whole import write_whole
from cobasis.errors import AgreementError, CobasisError, StepError
from cobasis.features.contract import columns_in
from cobasis.features.outcome import part_of
from cobasis.linalg.arrays import Matrix, gathered
from cobasis.models import AGREED_AS, FAMILIES, UNSCORED, needing
from cobasis.models.chain import Chain
from cobasis.models.chain_file import encode_chain
from cobasis.models.local import Kind, Train, fit_locally, over_columns
from cobasis.models.trainer import train
from cobasis.models.worth import Figure, Verdict, compared, figures
from cobasis.party_side.approval import word_approved
from cobasis.party_side.predict import Usable, parts_of, refuse_halves, usable
from cobasis.party_side.rows import PartyRows, unseen
from cobasis.party_side.session import PartySession, refuse_target
from cobasis.protocol.agreement import Agreement, moment_text
from cobasis.protocol.explanations import Explained
from cobasis.protocol.messages import Labels
from cobasis.protocol.terms import others_of
from cobasis.protocol.word import POINTS, ROWS, WORD, Word
from cobasis.statistics.attributions import Surrogate
from cobasis.statistics.survival import survival_figures
from cobasis.tables.sources import source_of
from cobasis.tables.table import StreamedTable

MOST_CELLS = 2**25
"""Cells of the rows that the party's own model is trained on, 256 MB; of more, a random part."""

_ONE_CLASS = "all of these rows are of one class: they say nothing of AUC and calibration"

_WORSE_HERE = (
    "the common model is worse here than the party's own: before using it, look whether labels and "
    "units mean the same at all parties"
)


@dataclass(frozen=True, kw_only=True)
class Scores:
    n_rows: int
    # of each measure, by name
    together: Mapping[str, Figure] = field(default_factory=dict)
    alone: Mapping[str, Figure] = field(default_factory=dict)  # own model, on raw uploaded rows
    constant: Mapping[str, Figure] = field(default_factory=dict)  # shares of those, or their mean
    local: Mapping[str, Figure] = field(default_factory=dict)  # where it is not together's
    verdict: Verdict | None = None  # together against alone
    chosen: str | None = None  # what the local fit came to; None where nothing was compared
    remarks: tuple[str, ...] = ()


def score(
    session: PartySession, *, table: Path | None = None, beside: Sequence[Path] = ()
) -> Scores:
    """Score what was accepted on rows that the party never uploaded.

    Without a table these are the held-back rows of the one that it uploaded. Rows of another
    table are left out where they were uploaded, in this round or in an earlier one. A party of a
    block needs the others' parts of these people `beside`.
    """
    found, (noted, people) = session.round.accepted(), session.round.noted_table()
    chosen, agreement = None if found is None else found.chosen, session.agreement

    def none(why: str) -> Scores:
        return Scores(n_rows=0, chosen=chosen, remarks=(why,))

    if agreement.task in UNSCORED:
        return none(f"a round for {agreement.task} is not scored on rows that were held back")
    if agreement.unlabelled:
        others = others_of(agreement)
        who = " or ".join(x.party for x in agreement.holdings if x.labels and x.party in others)
        part = "your part of those who were held back: cobasis predict --part -o PART"
        return none(f"{who} has your people's labels, and scores with {part}")
    refuse_halves(session, part=False, beside=beside)
    use = replace(usable(session, model="common"), beside=beside)
    place = table or noted
    if place is None or (table is None and not place.is_file()):
        return none("the table that was uploaded is gone; give it: cobasis score TABLE")
    own = rows = unseen(session, place, dataset=use.dataset)
    if beside and table is None:  # others' parts are of those people alone
        rows = rows.keeping(people)
    if not rows.n_held:
        return none(f"every row of '{place.name}' was uploaded; give others: cobasis score TABLE")
    if not own.n_sent and noted is not None and noted.is_file():
        own = unseen(session, noted, dataset=use.dataset)
    return replace(_scored(session, rows, own=own, use=use), chosen=chosen)


def score_quietly(session: PartySession) -> Scores:
    """Score on held-back rows; where the table cannot be read any more, say why in a remark."""
    try:
        return score(session)
    except StepError:  # weights of a step are worth nothing yet
        return Scores(n_rows=0)
    except CobasisError as error:
        remark = f"the table cannot be scored on: {error.args[0]}"
        return Scores(n_rows=0, remarks=(remark.rstrip("."),))


def _scored(session: PartySession, rows: PartyRows, *, own: PartyRows, use: Usable) -> Scores:
    agreement, task, held = session.agreement, session.agreement.task, gathered(rows.kept)
    truth = cast("Labels", rows.kept.labels())  # of what is unlabelled nothing is scored
    others = parts_of(session, rows.kept.people(), use=use)
    aligned, measured = use.aligned(held, others), partial(_measured, agreement, truth=truth)
    found = Scores(n_rows=len(truth), together=measured(use.model, aligned))
    if agreement.tabular:  # a model of one's own is the same fit to few rows
        return found
    if task == "classification" and len(np.unique(truth)) == 1:
        found = replace(found, remarks=(_ONE_CLASS,))
    if (fitted := usable(session)).local:
        found = replace(found, local=measured(fitted.model, held))
    if not own.n_sent:
        gone = "the table that was uploaded is not there, so there is nothing beside it"
        return replace(found, remarks=(*found.remarks, gone))
    uploaded, labels = _own_rows(own)
    if task == "regression":
        guess, shares = np.full(len(truth), labels.mean()), None
    else:
        counts = np.bincount(labels.astype(np.int64), minlength=len(agreement.classes))
        guess = np.full(len(truth), np.argmax(counts))
        shares = np.tile(counts / counts.sum(), (len(truth), 1))
    found = replace(found, constant=figures(truth, guess, likely=shares, task=task))
    try:
        alone = _trained(session, use.model)(uploaded, labels)
    except (CobasisError, ValueError) as error:
        why = f"the party has no model of its own: {str(error.args[0]).rstrip('.')}"
        return replace(found, remarks=(*found.remarks, why))
    verdict = compared(use.model.predict(aligned), alone.predict(held), truth=truth, task=task)
    remarks = (*found.remarks, _WORSE_HERE) if verdict == "worse" else found.remarks
    return replace(found, alone=measured(alone, held), verdict=verdict, remarks=remarks)


def _measured(
    agreement: Agreement, model: Chain, rows: Matrix, *, truth: Labels
) -> Mapping[str, Figure]:
    task = agreement.task
    if task == "survival":
        risk, shares = model.predict(rows), model.survival(rows)
        return survival_figures(truth, risk=risk, shares=shares, horizons=agreement.horizons)
    value, predicted = np.asarray(part_of(truth)), model.predict(rows)
    if (exposure := part_of(truth, "exposure")) is not None:
        predicted = predicted * exposure
    certain = model.likely and agreement.dp is None
    likely = model.scores(rows, method=model.method) if certain else None
    return figures(value, predicted, likely=likely, task=task)


def _own_rows(rows: PartyRows) -> tuple[Matrix, Labels]:
    chosen = ~rows.held
    most = max(1, MOST_CELLS // rows.table.shape[1])
    if rows.n_sent > most:  # those with the smallest fingerprints, which are random numbers
        chosen = chosen & (rows.marks <= np.sort(rows.marks[chosen])[most - 1])
    own = rows.table.only(chosen)
    return gathered(own), np.asarray(own.labels())


def _trained(session: PartySession, like: Chain) -> Train:
    agreed = session.agreement
    how: Any = {"model": AGREED_AS[like.family][0], "task": agreed.task}
    how |= {"n_classes": len(agreed.classes), "tempered": agreed.dp is None}

    def trained(rows: Matrix, labels: Labels) -> Chain:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of scikit-learn, about few rows
            return cast("Chain", train(rows, labels, seed=0, aligned=False, **how))

    return trained


def fit_local(session: PartySession) -> Kind | None:
    """Choose what the accepted model becomes for the party's rows, and keep it.

    None where the return has no model of the others, or the uploaded rows are not there any more.
    """
    found, (place, _) = session.round.accepted(), session.round.noted_table()
    if found is None or found.others is None or place is None or not place.is_file():
        return None
    agreement = session.agreement
    try:
        use = usable(session, model="common")
        if not FAMILIES[AGREED_AS[use.model.family][0]].additive:
            return None
        rows, labels = _own_rows(unseen(session, place, dataset=use.dataset))
        map_in = use.aligned(np.eye(agreement.n_features))  # F_i G_i
        fit = fit_locally(
            rows,
            labels,
            common=over_columns(use.model, map_in),
            others=over_columns(model_in(found.others, agreement), map_in),
            train=_trained(session, use.model),
        )
    except (CobasisError, ValueError):  # `score` says what is wrong with the table
        return None
    local = None if fit.kind == "common" else encode_chain(fit.chain)
    with session.alone():
        session.round.accept(replace(found, local=local, chosen=fit.kind))
    return fit.kind


def export_onnx(session: PartySession, to: Path) -> int:
    """Write encoding, ``F_i G_i`` and model as one graph that takes raw columns."""
    with needing("onnx", extra="onnx", what="this"):
        from cobasis.models.onnx import raw_graph  # noqa: PLC0415 -- an extra
    refuse_target(to, table=session.round.noted_table()[0])
    found, agreement = usable(session), session.agreement
    refuse_halves(session, part=False, beside=())
    data = raw_graph(
        agreement.features,
        found.model,
        map_in=found.aligned(np.eye(agreement.n_features)),  # F_i G_i
        turn=agreement.turn,
        classes=agreement.classes,
    )
    write_whole(to, data)
    session.transcript.append("exported", {"sha256": hashlib.sha256(data).hexdigest()})
    return len(data)


def write_surrogate(
    session: PartySession, table: Path, *, to: Path, of: str | None = None
) -> Surrogate:
    for own in (table, session.round.noted_table()[0]):
        refuse_target(to, table=own)
    use, agreement = usable(session), session.agreement
    refuse_halves(session, part=False, beside=())
    features, mapping = columns_in(agreement.features), session.round.mapping()
    source = source_of(table, party=session.name, features=features, mapping=mapping)
    rows = StreamedTable(source, agreement=agreement, party=session.name, report=session.report)
    n_rows, width = rows.shape
    most = max(1, MOST_CELLS // width)
    some = rows.unmapped().only(np.random.default_rng(0).permutation(n_rows) < most)
    asked = Explained(use.model, agreement=agreement, aligned=use.aligned, of=of)
    found = asked.surrogate(gathered(some))
    whose = f"{'Local' if use.local else 'Common'} model of round '{agreement.round_id}', by rows "
    write_whole(to, f"{whose}of party '{session.name}'.\n\n{found.summary()}\n".encode())
    return found


def word_of(session: PartySession, scores: Scores) -> Word:
    """Return the word that the party may send of its model: coarse, signed, and one a model."""
    session.require_open()
    agreement, found = session.agreement, session.round.accepted()
    measure, first = next(iter(scores.together.items()), ("", None))
    rows = ROWS * round(scores.n_rows / ROWS)
    if agreement.dp is not None:
        raise AgreementError(
            f"round '{agreement.round_id}' puts noise on what leaves, and a word on the model "
            "is made of rows without noise, so none may leave. Say nothing of them."
        )
    if found is None or first is None or scores.verdict is None or not rows:
        raise StepError(
            f"party '{session.name}' has nothing to say of a model: it takes an accepted model and "
            "six held-back rows or more, beside a model of its own. See 'cobasis score'."
        )
    for entry in session.history(WORD):  # a second one would show what changed
        if entry.told["model_sha256"] == found.model_sha256:
            return Word.model_validate(dict(entry.told))
    word = Word(
        agreement=agreement.digest().hex(),
        party=session.name,
        model_sha256=found.model_sha256,
        verdict=scores.verdict,
        n_rows=rows,
        measure=cast("Any", measure),
        value=POINTS * round(100 * first.value / POINTS),
        history=session.vault.heads()[-1],
        time=moment_text(now()),
        approval=word_approved(session),
        signature="0" * 128,
    )
    return word.model_copy(update={"signature": session.identity.sign(word.message()).hex()})


def send_word(session: PartySession, word: Word) -> Path:
    place = session.beside("word")
    with session.alone():
        if all(each.told["signature"] != word.signature for each in session.history(WORD)):
            session.transcript.append(WORD, word.model_dump())
        write_whole(place, word.text().encode(), mode=0o644)
    return place
