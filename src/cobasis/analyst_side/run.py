"""``run``: ends an exchange of the round, or takes in who came late, or writes lost files again.

The order is the promise: what everybody gets stands on the disk before the first reply is sealed,
so that all replies carry one and the same; replies before the transcript's line; and what is not
in use any more goes after that line.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from cobasis.analyst_side.groups import Trained, meet
from cobasis.analyst_side.history import CONSENSUS, HALTED, Family, Outcome
from cobasis.analyst_side.passes import passes_for
from cobasis.analyst_side.plan import Plan, lost_replies, planned
from cobasis.analyst_side.returns import Conclusion, name_of
from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.folders import FitFolder, UploadFolder
from cobasis.bundle.messages import enclose, model_in, proposal_in, sums_in, upload_in
from cobasis.bundle.transcript import Fact
from cobasis.disk.tensors import write_tables
from cobasis.disk.whole import file_digest, move_whole, remove_tree, write_whole
from cobasis.errors import (
    AgreementError,
    AnotherRunError,
    CobasisError,
    DiskError,
    FileChangedError,
    MissingExtraError,
    OptionError,
    RemoteError,
    RetentionError,
    RevokedError,
    StepError,
    WaitingError,
)
from cobasis.linalg.arrays import Integers
from cobasis.models import UNLABELLED, ModelName
from cobasis.models.chain import Chain
from cobasis.models.chain_file import encode_chain
from cobasis.progress import counted
from cobasis.protocol import training
from cobasis.protocol.analyst import Analyst
from cobasis.protocol.card import card_of, make_card
from cobasis.protocol.exchanges import Exchange
from cobasis.protocol.explanations import coefficients_of
from cobasis.protocol.refusals import LEAVE_OUT, refuse_certificate
from cobasis.protocol.scores import Worth
from cobasis.protocol.sums import SumsAnalyst
from cobasis.protocol.vertical import unit_of


@dataclass(frozen=True, kw_only=True)
class RunResult:
    plan: Plan
    concluded: Conclusion | None  # None where spans were made, or sums begin again
    written: Mapping[str, Path]


def run(
    session: AnalystSession,
    *,
    without: Iterable[str] = (),
    again: Iterable[str] = (),
    confirmed: Collection[str] = (),
    model: ModelName | None = None,
    cluster: str | None = None,
    scores: bool = False,
    trained: Trained | None = None,
    now: datetime | None = None,
) -> RunResult:
    """End the exchange that is open: write one sealed reply per party.

    Run it again after Ctrl-C, a kill or a full disk: what is done is not done again, and all
    returns carry the same model. `confirmed` names the parties that came after the last run and
    are to be taken in. `scores` asks for those of every agreed family, where something is new.
    Of a group it shows its target to the other groups' analysts, and returns what all `trained`.
    """
    with session.at_work():
        session.require_kept()
        family = _family(session, model)
        try:
            plan = planned(session, without=without, again=again, now=now)
        except WaitingError:
            session.tell()  # a run that was killed behind its last reply has not told it
            raise
        if unasked := sorted({*plan.new} - {*confirmed}):
            raise StepError(
                f"{', '.join(unasked)} came after the run of {plan.ended}, and nobody said that "
                "they are to be taken in. Run once more, and say so."
            )
        concluded, written = None, dict[str, Path]()
        with halting(session):
            if plan.attempt:
                session.begin_attempt(plan.attempt, without=plan.without)
            elif plan.exchange.masked:
                concluded = _conclude_sums(session, plan)
            elif plan.exchange.reply == "span":
                written = _send_spans(session, plan)
            else:
                written = _met(session, plan, trained=trained) if session.agreement.groups else {}
                if trained or not written:
                    told: Any = {"away": plan.away, "cluster": cluster}
                    told |= {"compared": session.agreement.allowed_models if scores else ()}
                    told |= {"family": family, "model_at": written.get("model")}
                    concluded = conclude(session, parties=plan.members, **told)
        session.tell()
    written = {**concluded.written} if concluded else written
    return RunResult(plan=plan, concluded=concluded, written=written)


@contextmanager
def halting(session: AnalystSession) -> Iterator[None]:
    """Tell everybody why the open exchange could not be ended: the kind of error, and no figure."""
    try:
        yield
    except (AnotherRunError, DiskError, FileChangedError, RevokedError):  # or tried again
        raise
    except (MissingExtraError, OptionError):  # which whoever types it can mend
        raise
    except CobasisError as error:
        what = (type(error).__doc__ or "").partition("\n")[0]
        why = f"{what[:1].lower()}{what[1:].rstrip('.')} [{error.code}]"
        # of a group it may be another group's file, which their analysts can mend
        if len(session.history.ended) < len(session.exchanges) and not session.agreement.groups:
            if session.history.halted != why:
                session.note(HALTED, {"why": why})
            session.tell()
        raise


def _family(session: AnalystSession, model: ModelName | None) -> Family:
    """Return the family to train: what is asked for, if the agreement allows it, or as before."""
    agreement, before = session.agreement, session.history.outcome
    if model is None:
        return agreement.model or "" if before is None else before.model
    if model in agreement.allowed_models:
        return model
    none = f"none, since task='{agreement.task}' trains no model"
    allowed = ", ".join(agreement.allowed_models) or none
    raise AgreementError(
        f"round '{agreement.round_id}' does not allow a model of family '{model}' (allowed: "
        f"{allowed}). Choose one of these, or have another agreement signed."
    )


def _send_spans(session: AnalystSession, plan: Plan) -> dict[str, Path]:
    exchange, proposals = session.exchanges[0], []
    # The span is on the disk, and in the transcript, before anybody gets it: a run that was
    # killed among the replies goes on from the kept one, and a second one would split the round
    # into parties of two spans.
    if not session.history.contributors:
        received = session.history.taken(1)
        for party in counted(plan.members, step="opening proposals", report=session.report):
            with session.kept(received[party]) as bundle:
                proposals.append(proposal_in(bundle))
        span = Analyst(session.agreement).consensus(proposals)
        told = {"anchor_tag": span.anchor_tag.hex(), "contributors": json.dumps(span.contributors)}
        write_tables(session.work.span, {"rows": span.rows}, metadata=told)
        session.note(CONSENSUS, {"contributors": list(span.contributors), **plan.away})
    kept, written = session.kept_span(), {}
    enclosed = enclose(kept, agreement=session.agreement, sender=session.name)
    for party in counted(lost_replies(session), step="sealing", report=session.report):
        written[party] = session.reply(party, exchange)
        session.seal(enclosed, written[party], to=[session.enrolled[party]])
    return written


def _met(session: AnalystSession, plan: Plan, *, trained: Trained | None) -> dict[str, Path]:
    folder = session.work.alignments / _alignment(session, plan.members, realign=False)
    with _analyst(session, plan.members, folder=folder, path=folder / "model") as analyst:
        analyst.align()
        refuse_certificate(analyst.certify(), session.agreement)
        return meet(session, analyst, trained=trained)


def conclude(
    session: AnalystSession,
    *,
    parties: Collection[str],
    family: Family,
    away: Mapping[str, Fact],
    realign: bool = False,
    cluster: str | None = None,
    compared: Collection[ModelName] = (),
    made_all: Callable[[], object] = lambda: None,
    model_at: Path | None = None,  # of a group, whose model is trained with others
) -> Conclusion:
    """Train, seal returns, and write the line; `made_all` is called when only that is left."""
    everybody, received = sorted(parties), session.history.taken()
    name = _alignment(session, everybody, realign=realign)
    words = [name, family, *everybody, version("cobasis")]
    path = model_at or session.work.models / f"{name_of(words)}.model"
    with _analyst(session, everybody, folder=session.work.alignments / name, path=path) as analyst:
        analyst.align()
        certificate = analyst.certify()
        made = Outcome(
            uploads={party: received[party].file for party in everybody},
            alignment=name,
            model=family,
            model_sha256=_train(session, analyst, family, path=path, cluster=cluster),
            evidence={
                party: certificate.parties[unit_of(party, session.agreement)].evidence
                for party in everybody
            },
            n_rows=sum(each.rows.shape[0] for each in analyst.uploads.values()),
            target_carries=analyst.target_carries,
        )
        end = Conclusion(session, made, session.exchanges[-1], away, card_of(analyst), certificate)
        # of a table the coefficients are what counts, and without labels nothing says a worth
        unjudged = session.agreement.tabular or session.agreement.task in UNLABELLED or model_at
        if compared and not (unjudged or end.kept):
            end.scores = training.compared(analyst, compared, report=session.report)
        end.send(analyst.returns(), others=partial(training.model_without, analyst))
    # Behind the block, whose end writes the fits: no line tells of an alignment that is not there.
    made_all()
    end.record()
    delete_targets(session, but=name)
    return end


def _conclude_sums(session: AnalystSession, plan: Plan) -> Conclusion:
    if plan.exchange.held:  # everybody's scores, which give the model probabilities
        analyst = _added(session, plan, plan.exchange)
        worth, outcome = analyst.judge(), cast("Outcome", session.history.outcome)
        model = worth.calibrated(_first_model(session, outcome))
        return _returned(session, plan, analyst, model=model, n_rows=outcome.n_rows, worth=worth)
    earlier = session.exchanges[: plan.exchange.number - 1]  # each step starts from all before
    totals = [_added(session, plan, each).total for each in earlier]
    analyst = _added(session, plan, plan.exchange, before=totals)
    if session.agreement.task == "table":
        table = analyst.count()
        return _returned(session, plan, analyst, n_rows=table.n_rows[0], table=table)
    result = analyst.run()
    told: Any = {"model": result.model, "n_rows": result.total.n_rows, "sums": result}
    if (fit := result.model.fit) and fit.finished:
        told["table"] = coefficients_of(fit, session.agreement)
    return _returned(session, plan, analyst, **told)


def _added(
    session: AnalystSession, plan: Plan, exchange: Exchange, *, before: Sequence[Integers] = ()
) -> SumsAnalyst:
    analyst = session.sums_analyst(exchange, before=before)
    received = session.history.taken(exchange.number)
    for party in counted(plan.members, step="adding up", report=session.report):
        with session.kept(received[party]) as bundle:
            analyst.receive(sums_in(bundle, exchange=exchange))
    return analyst


def _first_model(session: AnalystSession, outcome: Outcome) -> Chain:
    for path in session.work.models.glob("*.model"):  # other versions name it otherwise
        if file_digest(path) == outcome.model_sha256:
            return model_in(path.read_bytes(), session.agreement)
    raise RetentionError(
        f"the model that parties of round '{session.agreement.round_id}' have scored is not in "
        f"'{session.work.models}' any more. Restore the folder from a copy."
    )


def _returned(
    session: AnalystSession,
    plan: Plan,
    analyst: SumsAnalyst,
    *,
    n_rows: int,
    model: Chain | None = None,
    worth: Worth | None = None,
    **more: Any,  # noqa: ANN401 -- what is concluded besides
) -> Conclusion:
    scored, digest = plan.exchange.held, ""  # of the model of the exchange before
    received = session.history.taken(plan.exchange.number - scored)
    files = {party: received[party].file for party in plan.members}
    if model is not None:
        words = [*files.values(), "scores" * scored, version("cobasis")]
        path = session.work.models / f"{name_of(words)}.model"
        if not path.exists():  # before the first return, so that all carry one and the same
            write_whole(path, encode_chain(model))
        model, digest = model_in(path.read_bytes(), session.agreement), file_digest(path)
    family = "" if model is None else session.agreement.model or ""
    made = Outcome(uploads=files, model=family, model_sha256=digest, n_rows=n_rows)
    returned = [*analyst.returns(model)]
    made_of: Any = {"consensus": None, "anchor_tag": None, "n_rows": n_rows}
    made_of |= {"evidence": "cannot tell", "scores": worth.told() if worth else {}}
    if worth is not None:
        columns = zip(session.agreement.columns, worth.importance, strict=False)
        made_of["importance"] = dict(columns)  # of no column where not asked, or of nobody's rows
    card = make_card(session.agreement, returned[0], **made_of)
    told = plan.away | {"exchange": plan.exchange.number}
    told |= {"finished": True} if model is not None and "table" in more else {}
    end = Conclusion(session, made, plan.exchange, told, card, **more)
    end.send(returned)
    end.record()
    return end


def delete_targets(session: AnalystSession, *, but: str) -> None:
    for path in sorted(session.work.alignments.glob("*")):
        if path.name != but:
            remove_tree(path)


def _alignment(session: AnalystSession, parties: Collection[str], *, realign: bool) -> str:
    """Return the name of the target's folder; RetentionError where the one in use is gone."""
    outcome = session.history.outcome
    if outcome is None or realign:
        taken = session.history.taken()
        return name_of([session.digest, *(f"{name} {taken[name].file}" for name in parties)])
    folder = session.work.alignments / outcome.alignment
    units = {unit_of(party, session.agreement) for party in outcome.uploads}
    kept = FitFolder(folder)
    if kept.target is not None and not units - set(kept):
        return outcome.alignment
    raise RetentionError(
        f"the target of round '{session.agreement.round_id}' is not in '{folder}' any more, so no "
        "party can be added to it. Restore the folder from a copy, or agree on a new round."
    )


@contextmanager
def _analyst(
    session: AnalystSession, parties: Collection[str], *, folder: Path, path: Path
) -> Iterator[Analyst]:
    """Give the protocol's analyst over the files of this round; its advice names our options.

    An upload that is not opened any more, or not as it was received, is opened anew.
    """
    taken = session.history.taken()
    for party in counted(parties, step="comparing digests", report=session.report):
        at = session.work.payload(party)
        if not at.is_file() or file_digest(at) != taken[party].payload:
            with session.kept(taken[party]) as bundle:
                move_whole(upload_in(bundle, agreement=session.agreement).path, at)
    uploads = UploadFolder(session.work.payloads)
    try:
        with FitFolder(folder) as fits:
            yield Analyst(
                session.agreement,
                uploads=uploads,
                fits=fits,
                span=session.kept_span() if session.history.contributors else None,
                removed=[each for each in uploads if each not in parties],
                model=model_in(path.read_bytes(), session.agreement) if path.exists() else None,
                report=session.report,
            )
    except RemoteError as error:
        advice = str(error.args[0]).replace(LEAVE_OUT, "--without NAME")
        error.args = (advice, *error.args[1:])
        raise


def _train(
    session: AnalystSession,
    analyst: Analyst,
    family: Family,
    *,
    path: Path,
    cluster: str | None,
) -> str:
    """Train unless the model's file is there already; return its SHA-256."""
    # The model is a file before the first return is sealed. Training again after a crash might
    # give other bytes (threads, another machine), and parties would hold two models of one round.
    if not family or path.exists():
        analyst.train()
    else:
        folder, report = path.with_suffix(".scratch"), session.report
        with passes_for(family, folder=folder, cluster=cluster, report=report) as over:
            model = cast("Any", analyst.train(model=family, over=over))  # a family's is a chain
        write_whole(path, encode_chain(model))
    return file_digest(path) if family else ""
