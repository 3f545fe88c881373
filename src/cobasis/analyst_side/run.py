"""``run``: ends an exchange of the round, or takes in who came late, or writes lost files again.

The order is the promise: what everybody gets stands on the disk before the first reply is sealed,
so that all replies carry one and the same; replies before the transcript's line; and what is not
in use any more goes after that line.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from cobasis.algorithms.base import TARGET
from cobasis.algorithms.certificate import Certificate
from cobasis.analyst_side.forget import kept_uploads
from cobasis.analyst_side.history import ADDED, CONSENSUS, RUN, Outcome
from cobasis.analyst_side.passes import passes_for
from cobasis.analyst_side.plan import Plan, lost_spans, planned
from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.folders import FitFolder, StateFolder
from cobasis.bundle.messages import (
    enclose_consensus,
    enclose_return,
    model_in,
    proposal_in,
    sums_in,
)
from cobasis.disk.tensors import write_tables
from cobasis.disk.whole import file_digest, make_folder, remove_tree, write_whole
from cobasis.errors import AgreementError, RemoteError, RetentionError, WaitingError
from cobasis.models import ModelName
from cobasis.models.chain import Chain
from cobasis.models.chain_file import encode_chain
from cobasis.models.worth import Figure
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.analyst import Analyst
from cobasis.protocol.baseline import BaselineTable
from cobasis.protocol.card import ModelCard, card_of, make_card
from cobasis.protocol.messages import ConsensusSpan, Return
from cobasis.protocol.others import model_without
from cobasis.protocol.span_lines import SpanLine
from cobasis.protocol.sums import SumsResult

_NAME_DIGITS = 24


@dataclass(frozen=True, kw_only=True)
class Concluded:
    """A run, an addition or a removal that has come to its end."""

    outcome: Outcome
    files: Mapping[str, Path]  # the sealed return of each party
    written: Mapping[str, Path]  # those of them that were not there as they are
    card: ModelCard
    certificate: Certificate | None = None  # None where sums were added up
    # of families, cross-validated
    scores: Mapping[ModelName, Mapping[str, Figure | None]] = field(default_factory=dict)
    sums: SumsResult | None = None
    table: BaselineTable | None = None


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What a run has made."""

    plan: Plan
    concluded: Concluded | None  # None where spans were made, or sums begin again
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
    now: datetime | None = None,
    report: Report = silent,
) -> RunResult:
    """End the exchange that is open: write one sealed reply per party.

    Run it again after Ctrl-C, a kill or a full disk: what is done is not done again, and all
    returns carry the same model. `confirmed` names the parties that came after the last run and
    are to be taken in. `scores` asks for those of every agreed family, where something is new.
    """
    family = _family(session.agreement, model)
    with session.at_work(report) as history:
        session.require_kept()
        try:
            plan = planned(session, without=without, again=again, now=now)
        except WaitingError:
            session.tell()  # a run that was killed behind its last reply has not told it
            raise
        plan.refuse_unasked(confirmed)
        concluded, written = None, dict[str, Path]()
        if plan.attempt:
            session.begin_attempt(plan.attempt, without=plan.without)
        elif session.agreement.sums is not None:
            concluded = _conclude_sums(session, plan)
        elif plan.exchange.reply == "span":
            written = _send_spans(session, plan)
        else:
            if model is None and history.outcome is not None:
                family = history.outcome.family
            told = {"without": list(plan.without), "missing": list(plan.missing)}
            concluded = conclude(
                session,
                parties=plan.members,
                family=family,
                event=ADDED if plan.new else RUN,
                told={**told, "parties": list(plan.new)} if plan.new else told,
                cluster=cluster,
                compared=session.agreement.allowed_models if scores else (),
            )
        session.tell()
    written = {**concluded.written} if concluded else written
    return RunResult(plan=plan, concluded=concluded, written=written)


def _family(agreement: Agreement, model: ModelName | None) -> ModelName | None:
    """Return the family to train: the one that is asked for, if the agreement allows it."""
    if model is None or model in agreement.allowed_models:
        return model or agreement.model
    allowed = ", ".join(agreement.allowed_models) or "none, since the task is a representation"
    raise AgreementError(
        f"round '{agreement.round_id}' does not allow a model of family '{model}' (allowed: "
        f"{allowed}). Choose one of these, or have another agreement signed."
    )


def _send_spans(session: AnalystSession, plan: Plan) -> dict[str, Path]:
    """Make the common span once, and seal it to each party that does not have it."""
    exchange = session.exchanges[0]
    # The span is on the disk, and in the transcript, before anybody gets it: a run that was
    # killed among the replies goes on from the kept one, and a second one would split the round
    # into parties of two spans.
    span = session.kept_span() if session.history.contributors else _made_span(session, plan)
    lost = lost_spans(session)
    make_folder(session.outbox)
    enclosed = enclose_consensus(span, agreement=session.agreement, sender=session.name)
    for done, party in enumerate(lost):
        session.report("sealing", done, len(lost))
        session.seal_reply(enclosed, party=party, exchange=exchange)
    session.report("sealing", len(lost), len(lost))
    return {party: session.reply(party, exchange) for party in lost}


def _made_span(session: AnalystSession, plan: Plan) -> ConsensusSpan:
    received, proposals = session.history.taken("proposal"), []
    for done, party in enumerate(plan.members):
        session.report("opening proposals", done, len(plan.members))
        proposals.append(session.kept(received[party], read=proposal_in))
    span = Analyst(session.agreement).consensus(proposals)
    told = {"anchor_tag": span.anchor_tag.hex(), "contributors": json.dumps(span.contributors)}
    write_tables(session.work.span, {"rows": span.rows}, metadata=told)
    away = {"without": list(plan.without), "missing": list(plan.missing)}
    session.note(CONSENSUS, {"contributors": list(span.contributors), **away})
    return span


def conclude(
    session: AnalystSession,
    *,
    parties: Collection[str],
    family: ModelName | None,
    event: str,
    told: Mapping[str, Any],
    realign: bool = False,
    cluster: str | None = None,
    compared: Collection[ModelName] = (),
) -> Concluded:
    """Align, certify and train, write one sealed return for each party, and record it."""
    everybody, received = sorted(parties), session.history.taken()
    name = _alignment(session, everybody, realign=realign)
    words = [name, family or "", *everybody, version("cobasis")]
    path = session.work.models / f"{_name_of(words)}.model"
    with _analyst(session, everybody, folder=session.work.alignments / name, path=path) as analyst:
        analyst.align()
        certificate = analyst.certify()
        made = Outcome(
            uploads={party: received[party].file for party in everybody},
            alignment=name,
            family=family,
            model_sha256=_train(session, analyst, family, path=path, cluster=cluster),
            evidence={party: certificate.parties[party].evidence for party in everybody},
            n_rows=sum(received[party].n_rows for party in everybody),
            target_carries=analyst.target_carries,
        )
        scores = analyst.compare(compared) if compared and not _kept(session, made) else {}
        card, others = card_of(analyst), partial(model_without, analyst)
        sent = _send_returns(session, analyst.returns(), made, card=card, others=others)
    # Behind the block, whose end writes the fits: no line tells of an alignment that is not there.
    more: Any = {"card": card, "certificate": certificate, "scores": scores}
    concluded = _recorded(session, made, sent, event=event, told=told, **more)
    delete_targets(session, but=name)
    return concluded


def _kept(session: AnalystSession, made: Outcome) -> Mapping[str, str]:
    """Return the digests of returns that the same run has sealed; none where it is another."""
    before = session.history.outcome
    same = before is not None and made == replace(before, returns={}, time="")
    return before.returns if before is not None and same else {}


def _recorded(
    session: AnalystSession,
    made: Outcome,
    sent: tuple[Mapping[str, str], Mapping[str, Path]],
    *,
    event: str,
    told: Mapping[str, Any],
    **more: Any,  # noqa: ANN401 -- what is concluded besides
) -> Concluded:
    """Write the line that names the returns, unless it stands there."""
    digests, written = sent
    new = written or not _kept(session, made)
    # Returns come before the line that names their digests: a kill between the two leaves returns
    # that no line names, and the same command, typed again, seals others over them.
    if new or (event == RUN and told["without"] != [*session.history.without]):
        versions = [f"{each} {version(each)}" for each in _NUMBERS_DEPEND_ON]
        line = {**replace(made, returns=digests).told(), **told, "versions": versions}
        session.note(event, line)
    return Concluded(
        outcome=cast("Outcome", session.history.outcome),
        files={party: session.reply(party, session.exchanges[-1]) for party in digests},
        written=written,
        **more,
    )


def _conclude_sums(session: AnalystSession, plan: Plan) -> Concluded:
    """Add everybody's sums up, train on the total, seal the returns, and record it."""
    received, analyst = session.history.taken(), session.sums_analyst()
    for done, party in enumerate(plan.members):
        session.report("adding up", done, len(plan.members))
        analyst.receive(session.kept(received[party], read=sums_in))
    files = {party: received[party].file for party in plan.members}
    result: SumsResult | None = None
    table: BaselineTable | None = None
    if session.agreement.task == "table":
        table = analyst.count()
        made = Outcome(uploads=files, family=None, model_sha256=None, n_rows=table.n_rows[0])
        returned = [*analyst.returns(None)]
    else:
        result = analyst.run()
        path = session.work.models / f"{_name_of([*files.values(), version('cobasis')])}.model"
        if not path.exists():  # before the first return, so that all carry one and the same
            make_folder(path.parent)
            write_whole(path, encode_chain(result.model))
        digest, n_rows = file_digest(path), result.total.n_rows
        made = Outcome(uploads=files, family="ridge", model_sha256=digest, n_rows=n_rows)
        returned = [*analyst.returns(model_in(path.read_bytes(), session.agreement))]
    made_of: Any = {"consensus": None, "anchor_tag": None, "n_rows": made.n_rows}
    card = make_card(session.agreement, returned[0], **made_of, evidence="cannot tell")
    sent = _send_returns(session, returned, made, card=card, others=lambda _: None)
    told = {"without": list(plan.without), "missing": []}
    return _recorded(session, made, sent, event=RUN, told=told, card=card, sums=result, table=table)


_NUMBERS_DEPEND_ON = ("cobasis", "numpy", "scipy", "scikit-learn")
"""Packages whose versions a model's numbers depend on, besides the uploads."""


def delete_targets(session: AnalystSession, *, but: str) -> None:
    """Delete the targets and changes of basis that are not in use any more."""
    for path in sorted(session.work.alignments.glob("*")):
        if path.name != but:
            remove_tree(path)


def _alignment(session: AnalystSession, parties: Collection[str], *, realign: bool) -> str:
    """Return the name of the target's folder; RetentionError where the one in use is gone."""
    outcome = session.history.outcome
    if outcome is None or realign:
        taken = session.history.taken()
        return _name_of([session.digest, *(f"{name} {taken[name].file}" for name in parties)])
    folder = session.work.alignments / outcome.alignment
    if TARGET in StateFolder(folder) and not set(outcome.uploads) - set(FitFolder(folder)):
        return outcome.alignment
    raise RetentionError(
        f"the target of round '{session.agreement.round_id}' is not in '{folder}' any more, so no "
        "party can be added to it. Restore the folder from a copy, or agree on a new round."
    )


@contextmanager
def _analyst(
    session: AnalystSession, parties: Collection[str], *, folder: Path, path: Path
) -> Iterator[Analyst]:
    """Give the protocol's analyst over the files of this round; its advice names our options."""
    uploads = kept_uploads(session, parties=parties)
    try:
        with FitFolder(folder) as fits:
            yield Analyst(
                session.agreement,
                uploads=uploads,
                fits=fits,
                state=StateFolder(folder),
                span=session.kept_span() if session.history.contributors else None,
                removed=[each for each in uploads if each not in parties],
                model=model_in(path.read_bytes(), session.agreement) if path.exists() else None,
                report=session.report,
            )
    except RemoteError as error:
        advice = str(error.args[0]).replace("exclude=[...]", "--without NAME")
        error.args = (advice, *error.args[1:])
        raise


def _train(
    session: AnalystSession,
    analyst: Analyst,
    family: ModelName | None,
    *,
    path: Path,
    cluster: str | None,
) -> str | None:
    """Train unless the model's file is there already; return its SHA-256."""
    # The model is a file before the first return is sealed. Training again after a crash might
    # give other bytes (threads, another machine), and parties would hold two models of one round.
    if family is None or path.exists():
        analyst.train()
    else:
        folder, report = path.with_suffix(".scratch"), session.report
        with passes_for(family, folder=folder, cluster=cluster, report=report) as over:
            model = cast("Any", analyst.train(model=family, over=over))  # a family's is a chain
        make_folder(path.parent)
        write_whole(path, encode_chain(model))
    return None if family is None else file_digest(path)


def _send_returns(
    session: AnalystSession,
    made: Iterable[Return],
    outcome: Outcome,
    *,
    card: ModelCard,
    others: Callable[[Return], Chain | None],
) -> tuple[dict[str, str], dict[str, Path]]:
    """Seal one return for each party, and for nobody else, unless it lies there as it was kept.

    Returns the digest of each, and the paths of those that were written.
    """
    make_folder(session.outbox)
    exchange = session.exchanges[-1]
    received = session.history.taken()
    spans = {party: received[party].span for party in outcome.uploads if received[party].span}
    lines = [
        SpanLine(party=party, consensus=consensus, signature=signature)
        for party, (consensus, signature) in spans.items()
    ]
    digests, written, kept = dict[str, str](), dict[str, Path](), _kept(session, outcome)
    for returned in made:
        session.report("sealing returns", len(digests), len(outcome.uploads))
        party = returned.party
        path = session.reply(party, exchange)
        if party in kept and path.is_file() and file_digest(path) == kept[party]:
            digests[party] = kept[party]
            continue
        model = others(returned)
        enclosed = enclose_return(
            replace(returned, others=model, card=card.beside(model)),
            agreement=session.agreement,
            sender=session.name,
            upload=outcome.uploads[party],
            lines=lines,
        )
        digests[party] = session.seal_reply(enclosed, party=party, exchange=exchange)
        written[party] = path
    session.report("sealing returns", len(outcome.uploads), len(outcome.uploads))
    return digests, written


def _name_of(words: Iterable[str]) -> str:
    """Return a short name that stands for words."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:_NAME_DIGITS]
