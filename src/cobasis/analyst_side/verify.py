"""``cobasis verify``: what anybody can check of a round, and what only its analyst can."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from cobasis.algorithms.certificate import fit_error, refuse_wrong_fit
from cobasis.algorithms.images import View
from cobasis.analyst_side.history import OPENED, RECEIVED, Outcome, history_of
from cobasis.analyst_side.membership import check_removal
from cobasis.analyst_side.session import NEWS, SUFFIX, WorkFolder
from cobasis.bundle.agreement_file import news_at, read_agreement, sealed_agreement, stem_of
from cobasis.bundle.folders import FitFolder, UploadFolder
from cobasis.bundle.transcript import Entry, verify_transcript
from cobasis.disk.whole import file_digest, opened
from cobasis.errors import CobasisError, DiskError, FileChangedError, OptionError, TranscriptError
from cobasis.progress import Report, counted, silent
from cobasis.protocol.signatures import Receipt, SignedReceipt, analyst_of, check_receipt
from cobasis.protocol.vertical import units_of

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Finding:
    what: str
    name: str
    code: str = ""  # of what failed; empty where it holds
    reason: str = ""

    @property
    def holds(self) -> bool:
        return not self.code


def verify(agreement_path: Path, folder: Path, *, report: Report = silent) -> "Verification":
    """Check all that a folder has of a round: signatures, chains, receipts, files, and fits."""
    if not folder.is_dir():
        raise OptionError(f"there is no folder '{folder}'. Give the one with transcripts and news.")
    found = Verification(agreement_path, folder, report=report)
    found.transcripts()
    found.receipts()
    found.files()
    for path in found.here("*removal-*.json"):
        found.one("removal", path.name, path, by=found.removal)
    found.fits()
    if len(found.findings) == 1:
        raise OptionError(
            f"'{folder}' has neither a transcript (*.jsonl) nor news (*.news) of round "
            f"'{found.agreement.round_id}', so nothing of it can be checked. Give the folder that "
            "has them."
        )
    return found


class Verification:
    def __init__(self, agreement_path: Path, folder: Path, *, report: Report) -> None:
        self.agreement = read_agreement(agreement_path).agreement
        self.folder, self.stem, self.report = folder, stem_of(agreement_path), report
        self.digest = self.agreement.digest().hex()
        self.findings: list[Finding] = []
        self.chains: dict[str, tuple[Entry, ...]] = {}
        # of the analyst's transcript, if it is there
        self.entries: tuple[Entry, ...] = ()
        self.known: dict[str, set[str]] = {}
        self.outcome: Outcome | None = None
        self.one("agreement", self.agreement.round_id, agreement_path, by=sealed_agreement)
        every = {stem_of(path) for path in folder.glob("*.toml") if self._is_other(path)}
        self.stems = sorted({*every, self.stem}, key=len, reverse=True)  # icu.b.news is not of icu
        walked = os.walk(folder, onerror=self._unread)
        self.paths = sorted(Path(at, name) for at, _, names in walked for name in names)

    @property
    def failed(self) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if not each.holds)

    def _is_other(self, path: Path) -> bool:
        with suppress(CobasisError):  # a draft has no files
            return read_agreement(path).agreement.digest() != self.agreement.digest()
        return False

    def _unread(self, error: OSError) -> None:  # else what is in there would count as not there
        told = {"code": DiskError.code, "reason": f"it cannot be read: {error.strerror}"}
        self.findings.append(Finding(what="folder", name=Path(error.filename).name, **told))

    def one(self, what: str, name: str, *of: object, by: Callable[..., Value]) -> Value | None:
        """Check one thing; an error of ours is what came of it."""
        found, code, reason = None, "", ""
        try:
            found = by(*of)
        except CobasisError as error:
            code, reason = error.code, str(error.args[0])
        except (AttributeError, LookupError, TypeError, ValueError):
            code = TranscriptError.code
            reason = "it says what no command of cobasis writes there, so somebody made it up"
        self.findings.append(Finding(what=what, name=name, code=code, reason=reason))
        return found

    def here(self, pattern: str) -> Iterator[Path]:
        """Yield files of a kind; none that is named after another agreement of the folder."""
        for path in self.paths:
            stems = {*map(self._round_of, path.relative_to(self.folder).parts)}
            if path.match(pattern) and stems == {self.stem}:
                yield path

    def _round_of(self, name: str) -> str:
        return next((stem for stem in self.stems if name.startswith(f"{stem}.")), self.stem)

    def transcripts(self) -> None:
        for path in self.here("*.jsonl"):
            if found := self.one("transcript", path.name, path, by=self._transcript):
                self.chains[str(path)] = found

    def _transcript(self, path: Path) -> tuple[Entry, ...]:
        found = verify_transcript(path)
        opening = [each.told["agreement"] for each in found if each.event == OPENED]
        if not self.entries and opening[-1:] == [self.digest]:
            self.outcome = history_of(found).outcome
            self.known = _known(found, self.stem)
            self.entries = found
        return found

    def receipts(self) -> None:
        for path in self.here(f"*{NEWS}"):
            news = self.one("news", path.name, path, self.agreement, by=news_at)
            for signed in news.receipts if news else ():
                what = f"{signed.receipt.party}, exchange {signed.receipt.exchange}"
                self.one("receipt", what, signed, by=self._receipt)
        words = {"signature", *Receipt.model_fields}
        for chain in self.chains.values():
            for entry in chain:
                if words <= set(entry.told) and entry.told["agreement"] == self.digest:
                    self.one("receipt", f"{entry.told['party']}, noted", entry.told, by=self._noted)

    def _receipt(self, signed: SignedReceipt) -> None:
        self._signed(signed)
        receipt = signed.receipt
        lines = {each.hash: each.told["file"] for each in self.entries if each.event == RECEIVED}
        if self.entries and lines.get(receipt.transcript) != receipt.file:
            raise TranscriptError(
                f"the receipt for party '{receipt.party}' names a line that the transcript has not "
                "of its file. Keep both: one of them was changed."
            )

    def _signed(self, signed: SignedReceipt) -> None:
        told = {"party": signed.receipt.party, "file": signed.receipt.file}
        analyst = analyst_of(self.agreement)
        check_receipt(signed, analyst=analyst, agreement=self.digest, **told)

    def _noted(self, told: Mapping[str, object]) -> None:
        fields = {name: told[name] for name in Receipt.model_fields}
        whole = {"receipt": fields, "signature": told["signature"]}
        self._signed(SignedReceipt.model_validate(whole))

    def removal(self, path: Path) -> None:
        with opened(path) as (file, _):
            check_removal(file.read(2**20), analyst=analyst_of(self.agreement))

    def files(self) -> None:
        paths = [path for path in self.here("*") if path.name in self.known and path.is_file()]
        for path in counted(paths, step="comparing digests", report=self.report):
            what = "payload" if path.suffix == ".safetensors" else path.name.rpartition("-")[2]
            self.one(what, path.name, path, by=self._compare)

    def _compare(self, path: Path) -> None:
        if file_digest(path) not in self.known[path.name]:
            raise FileChangedError(
                f"'{path.name}' is not the file that the transcript names. Ask for the right one."
            )

    def fits(self) -> None:
        """Check every fit of the last run, where anchor images and target are."""
        own, outcome = self.folder / f"{self.stem}{SUFFIX}", self.outcome
        work = WorkFolder(own if own.is_dir() else self.folder)
        place = work.alignments / (outcome.alignment if outcome else "")
        if outcome is None or not (work.payloads.is_dir() and place.is_dir()):
            return
        try:
            fits, kept_here = FitFolder(place), UploadFolder(work.payloads)
            if (target := fits.target) is None:
                raise DiskError(f"the target in '{place}' is damaged or gone. Restore the folder.")
        except CobasisError as error:  # what else there is to say stands beside it
            told = {"code": error.code, "reason": str(error.args[0])}
            self.findings.append(Finding(what="fits", name=place.name, **told))
            return
        parts = View(dict.fromkeys(outcome.uploads), read=kept_here.__getitem__)
        uploads = units_of(parts, self.agreement) if self.agreement.holdings else parts
        kind = self.agreement.make_aligner().fit_kind

        def check(party: str) -> None:
            image, change = uploads[party].anchor_image[:], fits[party].change_of_basis
            error = fit_error(image, change, target=target.rows, kind=kind)
            refuse_wrong_fit(error, party=party)

        for party in counted(uploads, step="checking fits", report=self.report):
            self.one("fit", party, party, by=check)


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
            number = told.get("exchange", last)
            known.setdefault(f"{stem}.{party}.{number}-return", set()).add(digest)
    return known
