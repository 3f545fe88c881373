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
from cobasis.analyst_side.session import NEWS, SUFFIX, WorkFolder
from cobasis.bundle.agreement_file import read_agreement, sealed_agreement, stem_of
from cobasis.bundle.run_folder import FitFolder, StateFolder
from cobasis.bundle.transcript import Checked, Entry, verify_transcript
from cobasis.bundle.uploads import UploadFolder
from cobasis.disk.whole import file_digest, opened
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
from cobasis.protocol.signatures import (
    MAX_BYTES,
    News,
    Receipt,
    SignedReceipt,
    check_countersigned,
    check_receipt,
)

_MAX_SMALL = 2**20


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was checked."""

    what: str
    name: str
    code: str = ""  # of what failed; empty where it holds
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
    """What was checked of a round."""

    agreement: Agreement
    findings: tuple[Finding, ...]
    # each transcript's last hash: whoever notes it can tell later whether lines are missing
    heads: Mapping[str, str]

    @property
    def failed(self) -> tuple[Finding, ...]:
        """What does not hold."""
        return tuple(each for each in self.findings if not each.holds)


def verify(agreement_path: Path, folder: Path, *, report: Report = silent) -> Verified:
    """Check all that a folder has of a round: signatures, chains, receipts, files, and fits."""
    agreement = read_agreement(agreement_path).agreement
    if not folder.is_dir():
        raise OptionError(f"there is no folder '{folder}'. Give the one with transcripts and news.")
    sealed = partial(sealed_agreement, agreement_path)
    findings = [checked("agreement", agreement.round_id, by=sealed)]
    transcripts: dict[str, Checked] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        read = partial(_read_chain, path, into=transcripts)
        findings.append(checked("transcript", path.name, by=read))
    ours = _analyst_lines(transcripts.values(), agreement)
    findings += _receipts(folder, agreement, entries=ours)
    findings += _countersigned(transcripts.values(), agreement)
    stem = stem_of(agreement_path)
    findings += compared_files(folder, ours, stem=stem, report=report)
    for path in sorted(folder.rglob("removal-*.json")):
        findings.append(checked("removal", path.name, by=partial(_removal, path, agreement)))
    work = folder / f"{stem}{SUFFIX}"
    findings += checked_fits(
        work if work.is_dir() else folder, agreement, entries=ours, report=report
    )
    if len(findings) == 1:
        raise OptionError(
            f"'{folder}' has neither a transcript (*.jsonl) nor news (*.news), so nothing of the "
            "round can be checked. Give the folder that has them."
        )
    heads = {name: each.head for name, each in transcripts.items()}
    return Verified(agreement=agreement, findings=tuple(findings), heads=heads)


def _read_chain(path: Path, *, into: dict[str, Checked]) -> None:
    into[str(path)] = verify_transcript(path)


def _analyst_lines(transcripts: Iterable[Checked], agreement: Agreement) -> tuple[Entry, ...]:
    """Return the lines of the analyst's transcript of this agreement, if it is there."""
    digest = agreement.digest().hex()
    for each in transcripts:
        opened_as = [entry.told["agreement"] for entry in each.entries if entry.event == OPENED]
        if opened_as[-1:] == [digest]:
            return each.entries
    return ()


def _receipts(
    folder: Path, agreement: Agreement, *, entries: tuple[Entry, ...]
) -> Iterator[Finding]:
    """Check news, and every receipt in them: signature, and the transcript's line it names."""
    for path in sorted(folder.rglob(f"*{NEWS}")):
        found: list[SignedReceipt] = []
        yield checked("news", path.name, by=partial(_news, path, agreement, into=found))
        for signed in found:
            check = partial(_receipt, signed, agreement, entries=entries)
            what = f"{signed.receipt.party}, exchange {signed.receipt.exchange}"
            yield checked("receipt", what, by=check)


def _news(path: Path, agreement: Agreement, *, into: list[SignedReceipt]) -> None:
    with opened(path) as (file, _):
        into += News.from_text(file.read(MAX_BYTES + 1) or b"", agreement).receipts


def _receipt(signed: SignedReceipt, agreement: Agreement, *, entries: tuple[Entry, ...]) -> None:
    receipt = signed.receipt
    _check_signed(signed, agreement)
    lines = {entry.hash: entry for entry in entries if entry.event == RECEIVED}
    line = lines.get(receipt.transcript)
    if entries and (line is None or line.told["file"] != receipt.file):
        raise TranscriptError(
            f"the receipt for party '{receipt.party}' names a line that the analyst's transcript "
            "does not have, or that is about another file. Keep both: one of them was changed."
        )


def _check_signed(signed: SignedReceipt, agreement: Agreement) -> None:
    """Check a receipt's signature, and that it is of this agreement and an enrolled party."""
    receipt: Receipt = signed.receipt
    check_receipt(
        signed,
        analyst=_analyst(agreement),
        agreement=agreement.digest().hex(),
        party=receipt.party,
        file=receipt.file,
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


def _removal(path: Path, agreement: Agreement) -> None:
    with opened(path) as (file, _):
        check_removal(file.read(_MAX_SMALL), analyst=_analyst(agreement))


def _analyst(agreement: Agreement) -> PublicIdentity:
    if agreement.analyst is None:
        raise OptionError(
            "the agreement enrols no analyst, so no receipt can be checked. Use the sealed one."
        )
    return agreement.analyst


def compared_files(
    folder: Path, entries: Iterable[Entry], *, stem: str, report: Report
) -> Iterator[Finding]:
    """Compare what was sent and returned, and is in a folder, with the transcript's digests."""
    known = _known(entries, stem)
    paths = sorted(path for path in folder.rglob("*") if path.name in known and path.is_file())
    for done, path in enumerate(paths):
        report("comparing digests", done, len(paths))
        what = "payload" if path.suffix == ".safetensors" else path.name.rpartition("-")[2]
        yield checked(what, path.name, by=partial(_compare, path, known[path.name]))


def _known(entries: Iterable[Entry], stem: str) -> dict[str, set[str]]:
    """Return the digests that a file of each name may have."""
    known: dict[str, set[str]] = {}
    last = 1
    for entry in entries:
        told = cast("dict[str, Any]", entry.told)
        if entry.event == RECEIVED:
            last = max(last, told["exchange"])
            name = f"{told['party']}.{told['exchange']}-{told['message']}"
            for each in (name, f"{stem}.{name}"):  # in the work folder, and as it was sent
                known.setdefault(each, set()).add(told["file"])
            known.setdefault(f"{told['party']}.safetensors", set()).add(told.get("payload", ""))
        for line in told.get("returns", []):
            digest, party = line.split("  ", 1)
            known.setdefault(f"{stem}.{party}.{last}-return", set()).add(digest)
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
