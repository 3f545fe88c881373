"""``analyst run``: from all uploads that are in to one sealed return per party.

The order is the promise: the model stands on the disk before the first return is sealed, so that
all returns carry one and the same; returns before the transcript's line; and what is not in use
any more goes after that line.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from cobasis.algorithms.base import TARGET
from cobasis.algorithms.certificate import Certificate
from cobasis.analyst_side.forget import kept_uploads, require_enough
from cobasis.analyst_side.history import RUN, History, Outcome, Training
from cobasis.analyst_side.passes import passes_for
from cobasis.analyst_side.receive import file_digest, missing
from cobasis.analyst_side.session import AnalystSession, refuse_forgotten
from cobasis.bundle.envelope import Written, write_bundle
from cobasis.bundle.incoming import model_in
from cobasis.bundle.messages import enclose_return
from cobasis.bundle.run_folder import FitFolder, StateFolder
from cobasis.bundle.transcript import Entry
from cobasis.disk.whole import make_folder, remove_tree, write_whole
from cobasis.errors import AgreementError, RetentionError, StepError
from cobasis.models import ModelName
from cobasis.models.chain import Chain
from cobasis.models.chain_file import encode_chain
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.analyst import Analyst
from cobasis.protocol.refusals import refuse_exclusion

RETURN = ".return"
_NAME_DIGITS = 24


@dataclass(frozen=True, kw_only=True)
class Concluded:
    """A run, an addition or a removal that has come to its end.

    Attributes
    ----------
    outcome : Outcome
        As the transcript has it.
    certificate : Certificate
        Facts and evidence.
    files : mapping of str to Path
        The sealed return of each party.
    entry : Entry
        The transcript's line.
    """

    outcome: Outcome
    certificate: Certificate
    files: Mapping[str, Path]
    entry: Entry


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What a run has made.

    Attributes
    ----------
    concluded : Concluded
        Outcome, certificate and returns.
    missing : tuple of str
        Enrolled parties without an upload.
    excluded : tuple of str
        Parties that were left out by name.
    before_deadline : bool
        Whether some are missing who still had time.
    """

    concluded: Concluded
    missing: tuple[str, ...]
    excluded: tuple[str, ...]
    before_deadline: bool


def run(
    session: AnalystSession,
    *,
    to: Path,
    model: ModelName | None = None,
    exclude: Iterable[str] = (),
    cluster: str | None = None,
    now: datetime | None = None,
    report: Report = silent,
) -> RunResult:
    """Align, certify, train, and write one sealed return per party.

    Run it again after Ctrl-C, a kill or a full disk: what is done is not done again, and all
    returns carry the same model.
    """
    family = family_of(session.agreement, model)
    excluded = tuple(dict.fromkeys(exclude))
    with session.at_work() as history:
        refuse_forgotten(session, history)
        refuse_exclusion(excluded, history.received)
        parties = tuple(name for name in sorted(history.received) if name not in excluded)
        away = missing(session.agreement, history)
        require_enough(session, parties, missing=(*away, *excluded))
        _refuse_other_parties(history, parties)
        concluded = conclude(
            session,
            history,
            parties=parties,
            family=family,
            event=RUN,
            told={"excluded": list(excluded)},
            to=to,
            cluster=cluster,
            report=report,
        )
    closes = session.agreement.closes
    early = closes is not None and (now or datetime.now(UTC)) < closes
    return RunResult(
        concluded=concluded,
        missing=away,
        excluded=excluded,
        before_deadline=early and bool(away),
    )


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


def _refuse_other_parties(history: History, parties: tuple[str, ...]) -> None:
    """Raise StepError where returns of other parties' run are out already."""
    if history.outcome is None:
        return
    ran = set(history.outcome.uploads)
    new, gone = sorted(set(parties) - ran), sorted(ran - set(parties))
    if not new and not gone:
        return
    found = [
        *([f"{', '.join(new)} came since: cobasis analyst add"] if new else []),
        *([f"{', '.join(gone)} took part: cobasis analyst remove"] if gone else []),
    ]
    raise StepError(
        f"a run with {', '.join(sorted(ran))} was made on {history.outcome.time}, and a second one "
        f"would give everybody another target ({'; '.join(found)}). Use these commands."
    )


def conclude(
    session: AnalystSession,
    history: History,
    *,
    parties: Collection[str],
    family: ModelName | None,
    event: Training,
    told: Mapping[str, Any],
    to: Path,
    realign: bool = False,
    cluster: str | None = None,
    report: Report = silent,
) -> Concluded:
    """Align, certify and train, write one sealed return for each party, and record it."""
    name = _alignment(session, history, parties, realign=realign)
    words = [name, family or "", *sorted(parties), version("cobasis")]
    path = session.work.models / f"{_name_of(words)}.model"
    model = model_in(path.read_bytes(), session.agreement) if path.exists() else None
    with _analyst(session, history, parties, name=name, model=model, report=report) as analyst:
        analyst.align()
        certificate = analyst.certify()
        digest = _train(analyst, family, path=path, cluster=cluster, report=report)
        made = Outcome(
            uploads={party: history.received[party].upload for party in sorted(parties)},
            alignment=name,
            family=family,
            model_sha256=digest,
            evidence={party: certificate.parties[party].evidence for party in sorted(parties)},
            n_rows=sum(history.received[party].n_rows for party in parties),
            target_carries=analyst.target_carries,
            returns={},
            time="",
        )
        written = _send_all(session, analyst, made, to=to, report=report)
    made = replace(made, returns={party: each.digest for party, each in written.items()})
    facts = {**made.told(), **told, "versions": _versions()}
    entry = session.transcript.append(event, facts)
    delete_targets(session, but=name)
    return Concluded(
        outcome=replace(made, time=entry.time),
        certificate=certificate,
        files={party: each.path for party, each in written.items()},
        entry=entry,
    )


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
        uploads = [f"{name} {history.received[name].upload}" for name in sorted(parties)]
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
    session: AnalystSession, analyst: Analyst, outcome: Outcome, *, to: Path, report: Report
) -> dict[str, Written]:
    """Seal one return for each party, and for nobody else."""
    make_folder(to)
    written: dict[str, Written] = {}
    for returned in analyst.returns():
        report("sealing returns", len(written), len(outcome.uploads))
        draft, parts = enclose_return(
            returned,
            agreement=session.agreement,
            sender=session.name,
            upload=outcome.uploads[returned.party],
        )
        written[returned.party] = write_bundle(
            to / f"{returned.party}{RETURN}",
            draft=draft,
            parts=parts,
            sign=session.identity.sign,
            recipients=[session.enrolled[returned.party]],
        )
    report("sealing returns", len(outcome.uploads), len(outcome.uploads))
    return written


def _versions() -> list[str]:
    """Return what a model's numbers depend on besides the uploads."""
    packages = ("cobasis", "numpy", "scipy", "scikit-learn")
    return [f"{package} {version(package)}" for package in packages]


def _name_of(words: list[str]) -> str:
    """Return a short name that stands for words."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:_NAME_DIGITS]
