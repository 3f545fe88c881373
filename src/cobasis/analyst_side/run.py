"""``run``: ends an exchange of the round, or takes in who came late, or writes lost files again.

The order is the promise: the model stands on the disk before the first return is sealed, so that
all returns carry one and the same; returns before the transcript's line; and what is not in use
any more goes after that line.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from cobasis.algorithms.base import TARGET
from cobasis.algorithms.certificate import Certificate
from cobasis.analyst_side.consensus import end_exchange
from cobasis.analyst_side.forget import kept_uploads
from cobasis.analyst_side.history import ADDED, RUN, History, Outcome
from cobasis.analyst_side.passes import passes_for
from cobasis.analyst_side.plan import Plan, planned
from cobasis.analyst_side.session import AnalystSession, refuse_forgotten
from cobasis.bundle.enclosure import write_bundle
from cobasis.bundle.messages import enclose_return, model_in
from cobasis.bundle.run_folder import FitFolder, StateFolder
from cobasis.disk.whole import file_digest, make_folder, remove_tree, write_whole
from cobasis.errors import AgreementError, RemoteError, RetentionError, WaitingError
from cobasis.models import ModelName
from cobasis.models.chain import Chain
from cobasis.models.chain_file import encode_chain
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.analyst import Analyst

_NAME_DIGITS = 24


@dataclass(frozen=True, kw_only=True)
class Concluded:
    """A run, an addition or a removal that has come to its end."""

    outcome: Outcome
    certificate: Certificate
    files: Mapping[str, Path]  # the sealed return of each party
    written: Mapping[str, Path]  # those of them that were not there as they are


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What a run has made."""

    plan: Plan
    concluded: Concluded | None  # None where spans were made
    written: Mapping[str, Path]


def run(
    session: AnalystSession,
    *,
    to: Path,
    without: Iterable[str] = (),
    again: Iterable[str] = (),
    confirmed: Collection[str] = (),
    model: ModelName | None = None,
    cluster: str | None = None,
    now: datetime | None = None,
    report: Report = silent,
) -> RunResult:
    """End the exchange that is open: write one sealed reply per party.

    Run it again after Ctrl-C, a kill or a full disk: what is done is not done again, and all
    returns carry the same model. `confirmed` names the parties that came after the last run and
    are to be taken in.
    """
    family = family_of(session.agreement, model)
    with session.at_work() as history:
        refuse_forgotten(session, history)
        with _told_while_waiting(session, history):
            plan = planned(session, history, to=to, without=without, again=again, now=now)
        plan.refuse_unasked(confirmed)
        concluded = None
        if plan.exchange.reply == "span":
            written: Mapping[str, Path] = end_exchange(
                session,
                history,
                members=plan.members,
                without=plan.without,
                to=to,
                report=report,
            )
        else:
            if model is None and history.outcome is not None:
                family = history.outcome.family
            concluded = conclude(
                session,
                history,
                parties=plan.members,
                family=family,
                event=ADDED if plan.new else RUN,
                told=plan.told(),
                to=to,
                cluster=cluster,
                report=report,
            )
            written = concluded.written
        session.tell(session.history())
    return RunResult(plan=plan, concluded=concluded, written=written)


@contextmanager
def _told_while_waiting(session: AnalystSession, history: History) -> Iterator[None]:
    """Where there is nothing but to wait, finish what a killed run has left to tell."""
    try:
        yield
    except WaitingError:
        session.tell(history)
        raise


def family_of(agreement: Agreement, model: ModelName | None) -> ModelName | None:
    """Return the family to train: the one that is asked for, if the agreement allows it."""
    chosen = agreement.model if model is None else model
    if model is None or model in agreement.allowed_models:
        return chosen
    allowed = ", ".join(agreement.allowed_models) or "none, since the task is a representation"
    raise AgreementError(
        f"round '{agreement.round_id}' does not allow a model of family '{model}' (allowed: "
        f"{allowed}). Choose one of these, or have another agreement signed."
    )


def conclude(
    session: AnalystSession,
    history: History,
    *,
    parties: Collection[str],
    family: ModelName | None,
    event: str,
    told: Mapping[str, Any],
    to: Path,
    realign: bool = False,
    cluster: str | None = None,
    report: Report = silent,
) -> Concluded:
    """Align, certify and train, write one sealed return for each party, and record it."""
    name = _alignment(session, history, parties, realign=realign)
    path = _model_path(session, [name, family or "", *sorted(parties), version("cobasis")])
    model = model_in(path.read_bytes(), session.agreement) if path.exists() else None
    analyst_of = _analyst(session, history, parties, name=name, model=model, report=report)
    with _words_of_commands(), analyst_of as analyst:
        analyst.align()
        certificate = analyst.certify()
        before = history.outcome
        made = Outcome(
            uploads={party: history.received[party].file for party in sorted(parties)},
            alignment=name,
            family=family,
            model_sha256=_train(analyst, family, path=path, cluster=cluster, report=report),
            evidence={party: certificate.parties[party].evidence for party in sorted(parties)},
            n_rows=sum(history.received[party].n_rows for party in parties),
            target_carries=analyst.target_carries,
            returns={} if before is None else before.returns,
            time="" if before is None else before.time,
        )
        kept = made.returns if made == before else {}  # the same again: nothing is sealed anew
        returns, written = _send_all(session, analyst, made, kept=kept, to=to, report=report)
    if made != before or written or (event == RUN and told["without"] != [*history.without]):
        facts = {**replace(made, returns=returns).told(), **told, "versions": _versions()}
        entry = session.transcript.append(event, facts)
        made = replace(made, returns=returns, time=entry.time)
    delete_targets(session, but=name)
    return Concluded(
        outcome=made,
        certificate=certificate,
        files={party: _return(session, party, to) for party in returns},
        written=written,
    )


def _model_path(session: AnalystSession, words: list[str]) -> Path:
    return session.work.models / f"{_name_of(words)}.model"


def delete_targets(session: AnalystSession, *, but: str) -> None:
    """Delete the targets and changes of basis that are not in use any more."""
    for path in sorted(session.work.alignments.glob("*")):
        if path.name != but:
            remove_tree(path)


def _alignment(
    session: AnalystSession, history: History, parties: Collection[str], *, realign: bool
) -> str:
    """Return the name of the target's folder; RetentionError where the one in use is gone."""
    outcome = history.outcome
    if outcome is None or realign:
        uploads = [f"{name} {history.received[name].file}" for name in sorted(parties)]
        return _name_of([session.digest, *uploads])
    folder = session.work.alignments / outcome.alignment
    if TARGET in StateFolder(folder) and not set(outcome.uploads) - set(FitFolder(folder)):
        return outcome.alignment
    raise RetentionError(
        f"the target of round '{session.agreement.round_id}' is not in '{folder}' any more, so no "
        "party can be added to it. Restore the folder from a copy, or agree on a new round."
    )


@contextmanager
def _analyst(
    session: AnalystSession,
    history: History,
    parties: Collection[str],
    *,
    name: str,
    model: Chain | None,
    report: Report,
) -> Iterator[Analyst]:
    """Give the protocol's analyst over the files of this round."""
    uploads = kept_uploads(session, history, parties=parties, report=report)
    folder = session.work.alignments / name
    with FitFolder(folder) as fits:
        yield Analyst(
            session.agreement,
            uploads=uploads,
            fits=fits,
            state=StateFolder(folder),
            contributors=history.contributors,
            removed=[each for each in uploads if each not in parties],
            model=model,
            report=report,
        )


def _train(
    analyst: Analyst,
    family: ModelName | None,
    *,
    path: Path,
    cluster: str | None,
    report: Report,
) -> str | None:
    """Train unless the model's file is there already; return its SHA-256.

    All returns carry one and the same file, also those that are written after a crash.
    """
    if family is None or path.exists():
        analyst.train()
    else:
        folder = path.with_suffix(".scratch")
        with passes_for(family, folder=folder, cluster=cluster, report=report) as over:
            model = analyst.train(model=family, over=over)
        make_folder(path.parent)
        write_whole(path, encode_chain(cast("Chain", model)))
    return None if family is None else file_digest(path)


def _send_all(
    session: AnalystSession,
    analyst: Analyst,
    outcome: Outcome,
    *,
    kept: Mapping[str, str],
    to: Path,
    report: Report,
) -> tuple[dict[str, str], dict[str, Path]]:
    """Seal one return for each party, and for nobody else, unless it lies there as it was kept.

    Returns the digest of each, and the paths of those that were written.
    """
    make_folder(to)
    digests: dict[str, str] = {}
    written: dict[str, Path] = {}
    for returned in analyst.returns():
        report("sealing returns", len(digests), len(outcome.uploads))
        party = returned.party
        path = _return(session, party, to)
        if party in kept and path.is_file() and file_digest(path) == kept[party]:
            digests[party] = kept[party]
            continue
        draft, parts = enclose_return(
            returned,
            agreement=session.agreement,
            sender=session.name,
            upload=outcome.uploads[party],
        )
        digests[party] = write_bundle(
            path,
            draft=draft,
            parts=parts,
            sign=session.identity.sign,
            recipients=[session.enrolled[party]],
        ).digest
        written[party] = path
    report("sealing returns", len(outcome.uploads), len(outcome.uploads))
    return digests, written


def _return(session: AnalystSession, party: str, to: Path) -> Path:
    return to / session.reply(party, session.exchanges[-1])


@contextmanager
def _words_of_commands() -> Iterator[None]:
    """Let what the protocol advises name the option of the command, not its own argument."""
    try:
        yield
    except RemoteError as error:
        advice = str(error.args[0]).replace("exclude=[...]", "--without NAME")
        error.args = (advice, *error.args[1:])
        raise


def _versions() -> list[str]:
    """Return what a model's numbers depend on besides the uploads."""
    return [f"{each} {version(each)}" for each in ("cobasis", "numpy", "scipy", "scikit-learn")]


def _name_of(words: list[str]) -> str:
    """Return a short name that stands for words."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:_NAME_DIGITS]
