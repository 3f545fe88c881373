"""``cobasis verify``: what anybody can check of a round, and what only its analyst can."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from cobasis.algorithms.base import TARGET
from cobasis.algorithms.certificate import fit_error, refuse_wrong_fit
from cobasis.analyst_side.history import OPENED, RECEIVED, history_of
from cobasis.analyst_side.membership import check_removal
from cobasis.analyst_side.receive import file_digest
from cobasis.analyst_side.session import WorkFolder
from cobasis.bundle.agreement_file import read_agreement
from cobasis.bundle.receipts import read_receipt
from cobasis.bundle.run_folder import FitFolder, StateFolder
from cobasis.bundle.transcript import Checked, Entry, verify_transcript
from cobasis.bundle.uploads import UploadFolder
from cobasis.disk.files import opened
from cobasis.errors import (
    CobasisError,
    FileChangedError,
    OptionError,
    SignatureError,
    TranscriptError,
)
from cobasis.linalg.arrays import Matrix
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.protocol.receipts import (
    Receipt,
    SignedReceipt,
    check_countersigned,
    check_receipt,
)

_MAX_SMALL = 2**20


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was checked.

    Attributes
    ----------
    what : {"agreement", "transcript", "receipt", "upload", "payload", "return", "removal", "fit"}
        Its kind.
    name : str
        Whose, or which file.
    code, reason : str
        Why it failed; empty where it holds.
    """

    what: str
    name: str
    code: str = ""
    reason: str = ""

    @property
    def holds(self) -> bool:
        """Whether it is as it should be."""
        return not self.code


def checked(what: str, name: str, *, by: Callable[[], object]) -> Finding:
    """Check one thing; an error of ours is what came of it."""
    try:
        by()
    except CobasisError as error:
        return Finding(what=what, name=name, code=error.code, reason=str(error.args[0]))
    return Finding(what=what, name=name)


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What was checked of a round.

    Attributes
    ----------
    agreement : Agreement
        The round's.
    findings : tuple of Finding
        All that was found to check.
    heads : mapping of str to str
        The last hash of each transcript, by file. Whoever notes it can tell later whether lines
        are missing.
    """

    agreement: Agreement
    findings: tuple[Finding, ...]
    heads: Mapping[str, str]

    @property
    def failed(self) -> tuple[Finding, ...]:
        """What does not hold."""
        return tuple(each for each in self.findings if not each.holds)


def verify(agreement_path: Path, folder: Path, *, report: Report = silent) -> Verified:
    """Check all that a folder has of a round: signatures, chains, receipts, files, and fits."""
    file = read_agreement(agreement_path)
    if not folder.is_dir():
        raise OptionError(
            f"there is no folder '{folder}'. Give the one with the transcript and receipts."
        )
    agreement = file.agreement
    findings = [checked("agreement", agreement.round_id, by=file.check_sealed)]
    transcripts: dict[str, Checked] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        read = partial(_read_chain, path, into=transcripts)
        findings.append(checked("transcript", path.name, by=read))
    ours = _analyst_lines(transcripts.values(), agreement)
    findings += _receipts(folder, agreement, entries=ours)
    findings += _countersigned(transcripts.values(), agreement)
    findings += compared_files(folder, ours, report=report)
    findings += _removals(folder, agreement)
    findings += checked_fits(folder, agreement, entries=ours, report=report)
    if len(findings) == 1:
        raise OptionError(
            f"'{folder}' has neither a transcript (*.jsonl) nor a receipt (*.receipt), so nothing "
            "of the round can be checked. Give the folder that has them."
        )
    heads = {name: each.head for name, each in transcripts.items()}
    return Verified(agreement=agreement, findings=tuple(findings), heads=heads)


def _read_chain(path: Path, *, into: dict[str, Checked]) -> None:
    into[str(path)] = verify_transcript(path)


def _analyst_lines(transcripts: Iterable[Checked], agreement: Agreement) -> tuple[Entry, ...]:
    """Return the lines of the analyst's transcript of this agreement, if it is there."""
    digest = agreement.digest().hex()
    for each in transcripts:
        first = each.entries[0] if each.entries else None
        if first and first.event == OPENED and first.told.get("agreement") == digest:
            return each.entries
    return ()


def _receipts(
    folder: Path, agreement: Agreement, *, entries: tuple[Entry, ...]
) -> Iterator[Finding]:
    """Check every receipt: the analyst's signature, and the line of the transcript it names."""
    for path in sorted(folder.rglob("*.receipt")):
        check = partial(_receipt, path, agreement, entries=entries)
        yield checked("receipt", path.name, by=check)


def _receipt(path: Path, agreement: Agreement, *, entries: tuple[Entry, ...]) -> None:
    signed = read_receipt(_small(path))
    receipt = signed.receipt
    _check_signed(signed, agreement)
    lines = {entry.hash: entry for entry in entries if entry.event == RECEIVED}
    line = lines.get(receipt.transcript)
    if entries and (line is None or line.told["upload"] != receipt.upload):
        raise TranscriptError(
            f"the receipt for party '{receipt.party}' names a line that the analyst's transcript "
            "does not have, or that is about another upload. Keep both: one of them was changed."
        )


def _check_signed(signed: SignedReceipt, agreement: Agreement) -> None:
    """Check a receipt's signature, and that it is of this agreement and an enrolled party."""
    receipt: Receipt = signed.receipt
    check_receipt(
        signed,
        analyst=_analyst(agreement),
        agreement=agreement.digest().hex(),
        party=receipt.party,
        upload=receipt.upload,
    )


def _countersigned(transcripts: Iterable[Checked], agreement: Agreement) -> Iterator[Finding]:
    """Check the receipts that parties countersigned in their transcripts."""
    enrolled = {each.name: each for each in agreement.enrolled}
    words = set(SignedReceipt.model_fields) - {"receipt"} | set(Receipt.model_fields)
    for each in transcripts:
        for entry in each.entries:
            if words <= set(entry.told):
                check = partial(_check_told, entry.told, agreement, enrolled)
                yield checked("receipt", f"{entry.told['party']}, countersigned", by=check)


def _check_told(
    told: Mapping[str, object], agreement: Agreement, enrolled: Mapping[str, PublicIdentity]
) -> None:
    fields = {name: told[name] for name in Receipt.model_fields}
    signed = SignedReceipt.model_validate(
        {
            "receipt": fields,
            "signature": told["signature"],
            "countersignature": told["countersignature"] or None,
        }
    )
    _check_signed(signed, agreement)
    party = enrolled.get(signed.receipt.party)
    if party is None:
        raise SignatureError(
            f"'{signed.receipt.party}' is not enrolled, so its countersignature proves nothing. "
            "Look which agreement it belongs to."
        )
    check_countersigned(signed, party=party)


def _removals(folder: Path, agreement: Agreement) -> Iterator[Finding]:
    """Check the certificates of removals."""
    for path in sorted(folder.rglob("removal-*.json")):
        yield checked("removal", path.name, by=partial(_removal, path, agreement))


def _removal(path: Path, agreement: Agreement) -> None:
    check_removal(_small(path), analyst=_analyst(agreement))


def _small(path: Path) -> bytes:
    with opened(path) as (file, _):
        data: bytes = file.read(_MAX_SMALL)
    return data


def _analyst(agreement: Agreement) -> PublicIdentity:
    if agreement.analyst is None:
        raise OptionError(
            "the agreement enrols no analyst, so no receipt can be checked. Use the sealed one."
        )
    return agreement.analyst


def compared_files(folder: Path, entries: Iterable[Entry], *, report: Report) -> Iterator[Finding]:
    """Compare uploads and returns that are in a folder with the digests that a transcript has."""
    known = _known(entries)
    paths = sorted(path for path in folder.rglob("*") if path.name in known and path.is_file())
    for done, path in enumerate(paths):
        report("comparing digests", done, len(paths))
        what = "payload" if path.suffix == ".safetensors" else path.suffix[1:]
        yield checked(what, path.name, by=partial(_compare, path, known[path.name]))


def _known(entries: Iterable[Entry]) -> dict[str, set[str]]:
    """Return the digests that a file of each name may have."""
    known: dict[str, set[str]] = {}
    for entry in entries:
        told = cast("dict[str, Any]", entry.told)
        if entry.event == RECEIVED:
            known.setdefault(f"{told['party']}.upload", set()).add(told["upload"])
            known.setdefault(f"{told['party']}.safetensors", set()).add(told["payload"])
        for line in told.get("returns", []):
            digest, name = line.split("  ", 1)
            known.setdefault(f"{name}.return", set()).add(digest)
    return known


def _compare(path: Path, digests: set[str]) -> None:
    if file_digest(path) not in digests:
        raise FileChangedError(
            f"'{path.name}' is not the file that the transcript names. It was changed, or is of "
            "another round. Ask for the right one."
        )


def checked_fits(
    folder: Path, agreement: Agreement, *, entries: Iterable[Entry], report: Report
) -> Iterator[Finding]:
    """Check every fit of the last run, where anchor images and target are."""
    work, outcome = WorkFolder(folder), history_of(entries).outcome
    if outcome is None or not work.payloads.is_dir():
        return
    place = work.alignments / outcome.alignment
    kept = StateFolder(place).get(TARGET)
    if kept is None:
        return
    fits, target = FitFolder(place), kept[0]["rows"]
    uploads = UploadFolder(work.payloads)
    for done, party in enumerate(outcome.uploads):
        report("checking fits", done, len(outcome.uploads))
        check = partial(_fit, party, uploads, fits=fits, target=target, agreement=agreement)
        yield checked("fit", party, by=check)


def _fit(
    party: str, uploads: UploadFolder, *, fits: FitFolder, target: Matrix, agreement: Agreement
) -> None:
    error = fit_error(
        uploads[party].read_image(),
        fits[party].change_of_basis,
        target=target,
        kind=agreement.make_aligner().fit_kind,
    )
    refuse_wrong_fit(error, party=party)
