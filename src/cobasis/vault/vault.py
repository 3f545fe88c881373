"""A party's vault: what it keeps of its data sets and rounds, and the rule about spans."""

import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from cobasis.errors import SpanReuseError, StepError
from cobasis.linalg.arrays import Blocks, Hidden
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.plaintext import basis_columns
from cobasis.protocol.secrets import SecretBasis
from cobasis.vault import rounds
from cobasis.vault.datasets import (
    Charge,
    Dataset,
    Uploaded,
    UploadEntry,
    entries,
    load_datasets,
    save_dataset,
)
from cobasis.vault.fingerprints import Fingerprints, fingerprints, people
from cobasis.vault.ledger import Ledger
from cobasis.vault.records import Cipher, Place
from cobasis.vault.rounds import RoundRecords
from cobasis.vault.spans import Asked, Fresh, Kept, Refused, choose_span


class Vault(Hidden):
    """A party's secrets at rest.

    Every write is one file, old or new and never half, so a crash at any moment leaves a vault
    that works; what it left behind goes at the next opening. Two processes take turns.
    """

    def __init__(self, folder: Path, *, party: str, seal: Cipher, unseal: Cipher) -> None:
        self.party = party
        self._place = Place(folder, party=party, seal=seal, unseal=unseal)
        self._records = self._place.records

    def fingerprints(self, rows: Blocks) -> Fingerprints:
        """Return the fingerprints of encoded rows under this vault's key, in their order."""
        return fingerprints(rows, self._place.derived(b"fingerprints"))

    def people(self, identifiers: Iterable[str]) -> Fingerprints:
        """Return the fingerprints of rows' identifiers, in their order, under a key of its own."""
        return people(identifiers, self._place.derived(b"people"))

    def choose_span(self, asked: Asked) -> Fresh | Kept | Refused:
        """Say which basis rows have to be uploaded through."""
        return choose_span(self.datasets(), asked, party=self.party)

    @property
    def ledger(self) -> Ledger:
        """What uploads have spent of the guarantee that people were given."""
        return Ledger(self._place, party=self.party)

    def begin_upload(
        self,
        choice: Fresh | Kept,
        basis: SecretBasis,
        *,
        agreement: Agreement,
        time: str,
        release: str = "",
    ) -> int:
        """Keep the basis, the rows and the charge of an upload, before a byte of it leaves."""
        with self._place.alone():
            dataset = begun(
                self.datasets(),
                choice,
                basis=basis,
                agreement=agreement,
                time=time,
                party=self.party,
                charge=self.ledger.charge(choice.asked, agreement, release=release),
            )
            save_dataset(dataset, self._records)
        return dataset.history[-1].number

    def finish_upload(self, number: int, digest: str) -> None:
        """Write an upload's digest into the history, now that its file is whole."""
        with self._place.alone():
            for dataset in self.datasets():
                if any(entry.number == number for entry in dataset.history):
                    save_dataset(dataset.uploaded(number, digest), self._records)
                    return
        raise StepError(
            f"party '{self.party}' has begun no upload of number {number}, so none can be "
            "finished. Begin it first."
        )

    def upload_of(self, agreement: Agreement, *, upload: str | None = None) -> Uploaded | None:
        """Return a finished upload of a round, None where there is none."""
        digest = agreement.digest().hex()
        found = [
            Uploaded(dataset=dataset, entry=entry)
            for dataset in self.datasets()
            for entry in dataset.history
            if entry.agreement == digest and entry.upload and upload in {None, entry.upload}
        ]
        return max(found, key=lambda each: each.entry.number, default=None)

    def datasets(self) -> tuple[Dataset, ...]:
        """Return every data set, the one that was uploaded last at the end."""
        return load_datasets(self._records)

    def history(self) -> tuple[UploadEntry, ...]:
        """Return every upload that was ever begun, oldest first; nothing deletes a line."""
        return entries(self.datasets())

    def round(self, agreement: Agreement) -> RoundRecords:
        """Return what the vault holds of a round, and keeps of it."""
        folder = self._round_folder(agreement)
        return RoundRecords(agreement, folder=folder, records=self._records)

    def forget_round(self, agreement: Agreement) -> None:
        """Destroy a round's secret, consensus and return; nothing happens where there are none."""
        self._place.remove(self._round_folder(agreement))

    def _round_folder(self, agreement: Agreement) -> str:
        """Return where a round's records stand, under a name that says nothing."""
        token = hmac.digest(self._place.derived(b"rounds"), agreement.digest(), "sha256")[:16]
        return f"{rounds.FOLDER}/{token.hex()}"


def begun(
    datasets: Sequence[Dataset],
    choice: Fresh | Kept,
    *,
    basis: SecretBasis,
    agreement: Agreement,
    time: str,
    party: str,
    charge: Charge | None = None,
) -> Dataset:
    """Return the data set as it is once an upload has begun; its last line of history is new."""
    asked = choice.asked
    now = choose_span(datasets, asked, party=party)
    if isinstance(now, Refused):
        now.refuse()
    _refuse_other_basis(now, choice, basis, party)
    number = max((entry.number for entry in entries(datasets)), default=0) + 1
    entry = replace(_entry(now, agreement, time, number=number), charge=charge)
    if isinstance(now, Kept):
        return now.dataset.uploading(asked.rows, people=asked.people, entry=entry)
    return Dataset(
        name=secrets.token_hex(8),
        basis=basis,
        key=choice.key,
        last=asked.rows,
        earlier=np.zeros(0, dtype=np.uint64),
        people=np.unique(asked.people),
        columns=asked.columns,
        history=(entry,),
    )


def _refuse_other_basis(
    now: Fresh | Kept, choice: Fresh | Kept, basis: SecretBasis, party: str
) -> None:
    """Refuse a basis that is not what the vault says now that nobody else writes to it."""
    if isinstance(now, Kept):
        fits = np.array_equal(basis_columns(basis), basis_columns(now.basis))
    else:
        fits = isinstance(choice, Fresh) and basis.shape == choice.asked.shape
    if not fits:
        raise SpanReuseError(
            f"the basis that party '{party}' is about to upload through is not the one that its "
            "vault has for these rows: another upload of them may have begun meanwhile. Nothing "
            "has left. Start again, and the stored one is used."
        )


def _entry(now: Fresh | Kept, agreement: Agreement, time: str, *, number: int) -> UploadEntry:
    """Return the history's new line."""
    forced = now.asked.forced if isinstance(now, Fresh) and now.over_old_rows else None
    made: Literal["fresh", "forced"] = "forced" if forced else "fresh"
    return UploadEntry(
        number=number,
        time=time,
        round_id=agreement.round_id,
        agreement=agreement.digest().hex(),
        upload="",
        n_rows=len(now.asked.rows),
        n_components=now.asked.shape[1],
        basis=agreement.basis,
        span="kept" if isinstance(now, Kept) else made,
        reason=forced.reason if forced else "",
        by=" and ".join(forced.by) if forced else "",
    )
