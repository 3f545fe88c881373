"""From an alignment to sealed returns: certify, train, enclose, write, and record it."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cobasis.algorithms.base import Alignment, Fit
from cobasis.algorithms.certificate import Certificate
from cobasis.algorithms.views import Overlay
from cobasis.analyst_side.desk import AnalystDesk
from cobasis.analyst_side.history import History, Outcome, Training
from cobasis.analyst_side.keeping import kept_uploads
from cobasis.analyst_side.training import model_digest, model_file
from cobasis.bundle.chain import Entry
from cobasis.bundle.envelope import Written, write_bundle
from cobasis.bundle.messages import enclose_return
from cobasis.disk.whole import make_folder, remove_tree
from cobasis.engine.alignments import align_folder
from cobasis.engine.certifying import certify_folder
from cobasis.engine.fit_folder import FitFolder
from cobasis.errors import RetentionError
from cobasis.models.chain import Chain
from cobasis.models.families import ModelName
from cobasis.progress import Report
from cobasis.protocol.messages import Return
from cobasis.store.folder import UploadFolder

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


def align_anew(
    desk: AnalystDesk, history: History, *, parties: Collection[str], report: Report
) -> tuple[str, Alignment]:
    """Make a target of these images and fit them to it, or take that up where it stopped."""
    uploads = kept_uploads(desk, history, parties=parties, report=report)
    others = [name for name in uploads if name not in parties]
    images = uploads.anchor_images(excluded=others)
    named = [desk.digest, *(f"{name} {history.received[name].upload}" for name in sorted(parties))]
    # a payload that was opened again has another time of writing, and the engine minds
    name = _name_of([*named, json.dumps(images.states())])
    aligner = desk.agreement.make_aligner()
    made = align_folder(images, aligner=aligner, to=desk.work.alignments / name, report=report)
    # an earlier run of these parties left its folder, where fits of those who came late may be
    late: dict[str, Fit | None] = dict.fromkeys(set(made.fits) - set(parties))
    return name, replace(made, fits=Overlay(made.fits, late))


def frozen(desk: AnalystDesk, outcome: Outcome) -> Alignment:
    """Return the alignment that parties hold their changes of basis of."""
    folder = desk.work.alignments / outcome.alignment
    fits = FitFolder(folder) if folder.is_dir() else None
    if fits is None or fits.target is None or set(outcome.uploads) - set(fits):
        raise RetentionError(
            f"the target of round '{desk.agreement.round_id}' is not in '{folder}' any more, so no "
            "party can be added to it. Restore the folder from a copy, or agree on a new round."
        )
    gone = {name: None for name in fits if name not in outcome.uploads}
    aligner = desk.agreement.make_aligner()
    return Alignment(aligner=aligner, target=fits.target, fits=Overlay(fits, gone))


def conclude(
    desk: AnalystDesk,
    alignment: Alignment,
    *,
    name: str,
    history: History,
    family: ModelName | None,
    event: Training,
    told: Mapping[str, Any],
    to: Path,
    cluster: str | None,
    report: Report,
) -> Concluded:
    """Certify, train, write one sealed return for each party, and record it."""
    parties = sorted(alignment.fits)
    uploads = kept_uploads(desk, history, parties=parties)
    certificate = certify_folder(uploads, alignment, agreement=desk.agreement, report=report)
    model = _model(
        desk,
        alignment,
        name=name,
        uploads=uploads,
        family=family,
        cluster=cluster,
        report=report,
    )
    made = Outcome(
        uploads={party: history.received[party].upload for party in parties},
        alignment=name,
        family=family,
        model_sha256=None if model is None else model_digest(model),
        evidence={party: certificate.parties[party].evidence for party in parties},
        n_rows=sum(history.received[party].n_rows for party in parties),
        target_carries=tuple(dict.fromkeys((*alignment.target.shaped_by, *history.contributors))),
        returns={},
        time="",
    )
    written = _send_all(desk, alignment, made, model=model, to=to, report=report)
    made = replace(made, returns={party: each.digest for party, each in written.items()})
    facts = {**made.told(), **told, "versions": _versions()}
    entry = desk.transcript.append(event, facts)
    delete_targets(desk, but=name)
    return Concluded(
        outcome=replace(made, time=entry.time),
        certificate=certificate,
        files={party: each.path for party, each in written.items()},
        entry=entry,
    )


def delete_targets(desk: AnalystDesk, *, but: str) -> None:
    """Delete the targets and changes of basis that are not in use any more."""
    for path in sorted(desk.work.alignments.glob("*")):
        if path.name != but:
            remove_tree(path)


def _model(
    desk: AnalystDesk,
    alignment: Alignment,
    *,
    name: str,
    uploads: UploadFolder,
    family: ModelName | None,
    cluster: str | None,
    report: Report,
) -> Chain | None:
    """Return the model of these parties' rows; None for representation."""
    if family is None:
        return None
    parties = sorted(alignment.fits)
    payloads = {party: uploads[party] for party in parties}
    digest = _name_of([name, family, *parties, version("cobasis")])
    return model_file(
        desk.work.models / f"{digest}.safetensors",
        alignment,
        uploads=payloads,
        agreement=desk.agreement,
        family=family,
        cluster=cluster,
        report=report,
    )


def _send_all(
    desk: AnalystDesk,
    alignment: Alignment,
    outcome: Outcome,
    *,
    model: Chain | None,
    to: Path,
    report: Report,
) -> dict[str, Written]:
    """Seal one return for each party, and for nobody else."""
    make_folder(to)
    written = {}
    for done, party in enumerate(outcome.uploads):
        report("sealing returns", done, len(outcome.uploads))
        returned = Return(
            party=party,
            agreement_digest=desk.agreement.digest(),
            change_of_basis=alignment.fits[party].change_of_basis,
            model=model,
            evidence=outcome.evidence[party],
            trained_on=tuple(outcome.uploads),
            target_carries=outcome.target_carries,
            simulated=False,
        )
        draft, parts = enclose_return(
            returned, agreement=desk.agreement, sender=desk.name, upload=outcome.uploads[party]
        )
        written[party] = write_bundle(
            to / f"{party}{RETURN}",
            draft=draft,
            parts=parts,
            sign=desk.identity.sign,
            recipients=[desk.enrolled[party]],
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
