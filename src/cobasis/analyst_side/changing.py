"""``analyst add`` and ``analyst remove``: a party that comes late, and one that leaves."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from cobasis.algorithms.base import Alignment
from cobasis.algorithms.images import batches
from cobasis.algorithms.views import Overlay
from cobasis.analyst_side.checking import file_digest
from cobasis.analyst_side.concluding import (
    RETURN,
    Concluded,
    align_anew,
    conclude,
    delete_targets,
    frozen,
)
from cobasis.analyst_side.desk import AnalystDesk
from cobasis.analyst_side.history import ADDED, REMOVED, History, Outcome
from cobasis.analyst_side.keeping import kept_uploads, refuse_forgotten, require_enough
from cobasis.analyst_side.receiving import take_in
from cobasis.analyst_side.removal import Removal, removal_of, write_removal
from cobasis.analyst_side.training import family_of
from cobasis.disk.whole import remove_tree
from cobasis.engine.fit_folder import FitFolder
from cobasis.errors import StepError
from cobasis.linalg.threads import one_blas_thread
from cobasis.models.families import ModelName
from cobasis.progress import Report, silent
from cobasis.protocol.refusals import require_known


@dataclass(frozen=True, kw_only=True)
class Removed:
    """What a removal has made.

    Attributes
    ----------
    removal : Removal
        What is gone, and what is not; as the certificate says it.
    files : tuple of Path
        The certificate, for programs and for people.
    concluded : Concluded or None
        The returns of those who stay; None where nothing had been trained on the party.
    """

    removal: Removal
    files: tuple[Path, ...]
    concluded: Concluded | None


def add(
    desk: AnalystDesk,
    upload: Path,
    *,
    to: Path,
    model: ModelName | None = None,
    cluster: str | None = None,
    report: Report = silent,
) -> Concluded:
    """Fit a party that comes late to the frozen target, and train again with it."""
    with desk.at_work() as before:
        refuse_forgotten(desk, before)
        outcome = _ran(desk, before, "add a party")
        kept_uploads(desk, before, parties=tuple(outcome.uploads), report=report)
        received, new = take_in(desk, upload, history=before)
        history = before
        if new:
            history = replace(before, received={**before.received, received.party: received})
        alignment = _with_late(desk, outcome, party=received.party, history=history)
        return conclude(
            desk,
            alignment,
            name=outcome.alignment,
            history=history,
            family=family_of(desk.agreement, model or outcome.family),
            event=ADDED,
            told={"party": received.party},
            to=to,
            cluster=cluster,
            report=report,
        )


def remove(
    desk: AnalystDesk,
    party: str,
    *,
    to: Path,
    realign: bool = False,
    cluster: str | None = None,
    report: Report = silent,
) -> Removed:
    """Take a party's rows out, train again without them, and certify what is and is not gone.

    The party's upload is deleted after the returns of the others are written and recorded, and an
    older return to it in the same folder as well.
    """
    with desk.at_work() as history:
        refuse_forgotten(desk, history)
        require_known(party, {**history.received, **history.removed})
        before, concluded = history.outcome, None
        if before is not None and _has_part(party, before, realign=realign):
            concluded = _without(
                desk, party, history, realign=realign, to=to, cluster=cluster, report=report
            )
        elif party in history.received:
            upload = history.received[party].upload
            desk.transcript.append(REMOVED, {"party": party, "upload": upload, "realigned": False})
        stale = to / f"{party}{RETURN}"  # of a run before; whoever sends the folder would send it
        for path in (desk.work.payload(party), desk.work.sealed(party), stale):
            remove_tree(path)
        removal = removal_of(desk, party)
        _delete_models(desk, removal)
        after = desk.history().outcome
        if after is not None:  # a kill after the line, and before it was done, leaves older ones
            delete_targets(desk, but=after.alignment)
        write_removal(desk, removal, to=desk.work.certificates)
        files = write_removal(desk, removal, to=to)
    return Removed(removal=removal, files=files, concluded=concluded)


def _ran(desk: AnalystDesk, history: History, what: str) -> Outcome:
    """Return what was trained last; StepError when nothing was."""
    if history.outcome is not None:
        return history.outcome
    raise StepError(
        f"nothing has run in round '{desk.agreement.round_id}', so there is no target to {what} "
        "with. Use 'cobasis analyst receive', then 'cobasis analyst run'."
    )


def _with_late(desk: AnalystDesk, outcome: Outcome, *, party: str, history: History) -> Alignment:
    """Return the frozen alignment with a late party's fit, which is on the disk afterwards."""
    alignment = frozen(desk, outcome)
    if party in alignment.fits:
        return alignment
    everybody = [*outcome.uploads, party]
    uploads = kept_uploads(desk, history, parties=[party])
    images = uploads.anchor_images(excluded=[name for name in uploads if name not in everybody])
    with FitFolder(desk.work.alignments / outcome.alignment) as fits:
        if party not in fits:
            rows = alignment.target.rows
            with one_blas_thread():
                batch = next(batches({party: images[party]}, n_rows=rows.shape[0]))
                fits[party] = alignment.aligner.fits(batch, alignment.target)[party]
            fits.flush()
    whole = FitFolder(desk.work.alignments / outcome.alignment)
    gone = {name: None for name in whole if name not in everybody}
    return replace(alignment, fits=Overlay(whole, gone))


def _has_part(party: str, outcome: Outcome, *, realign: bool) -> bool:
    """Whether something has to be made again: the model, or the target."""
    return party in outcome.uploads or (realign and party in outcome.target_carries)


def _without(
    desk: AnalystDesk,
    party: str,
    history: History,
    *,
    realign: bool,
    to: Path,
    cluster: str | None,
    report: Report,
) -> Concluded:
    """Align, if it is asked for, and train, without a party."""
    outcome = _ran(desk, history, "remove a party")
    stay = tuple(name for name in outcome.uploads if name != party)
    _require_enough(desk, party, stay)
    if realign:
        name, alignment = align_anew(desk, history, parties=stay, report=report)
    else:
        name, whole = outcome.alignment, frozen(desk, outcome)
        alignment = whole.remove(party) if party in whole.fits else whole
    upload = {**history.removed, **history.received}[party].upload
    return conclude(
        desk,
        alignment,
        name=name,
        history=history,
        family=outcome.family,
        event=REMOVED,
        told={"party": party, "upload": upload, "realigned": realign},
        to=to,
        cluster=cluster,
        report=report,
    )


def _require_enough(desk: AnalystDesk, party: str, stay: Collection[str]) -> None:
    try:
        require_enough(desk, stay, missing=[party])
    except StepError as error:
        raise StepError(
            f"without party '{party}' too few would stay: {error.args[0]} If the party has to "
            "leave at once, destroy the round's uploads: 'cobasis analyst forget --early'."
        ) from None


def _delete_models(desk: AnalystDesk, removal: Removal) -> None:
    """Delete models that the party's rows shaped from the work folder; one is in use."""
    if desk.work.models.is_dir():
        used = removal.model_sha256
        for path in sorted(desk.work.models.iterdir()):
            if not _is(path, used):
                remove_tree(path)


def _is(path: Path, digest: str) -> bool:
    return path.is_file() and file_digest(path) == digest
