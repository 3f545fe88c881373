"""A party's vault: what it keeps of its data sets and rounds, and the rule about spans."""

import hmac
from collections.abc import Iterable
from pathlib import Path

from cobasis.errors import StepError
from cobasis.linalg.blocks import Blocks
from cobasis.linalg.hidden import Hidden
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.secrets import SecretBasis
from cobasis.vault import rounds
from cobasis.vault.beginning import begun
from cobasis.vault.datasets import (
    Dataset,
    Uploaded,
    UploadEntry,
    entries,
    load_datasets,
    save_dataset,
)
from cobasis.vault.fingerprints import Fingerprints, fingerprints, people
from cobasis.vault.ledger import Ledger
from cobasis.vault.place import Place
from cobasis.vault.records import Cipher
from cobasis.vault.rounds import RoundRecords
from cobasis.vault.spans import Asked, Fresh, Kept, Refused, choose_span


class Vault(Hidden):
    """A party's secrets at rest.

    Every write is one file, old or new and never half, so a crash at any moment leaves a vault
    that works; what it left behind goes at the next opening. Two processes take turns.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from cobasis.linalg.blocks import WholeTable
    >>> import pyrage
    >>> key = pyrage.x25519.Identity.generate()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     vault = Vault(
    ...         Path(folder, "north"), party="north",
    ...         seal=lambda plain: pyrage.encrypt(plain, [key.to_public()]),
    ...         unseal=lambda sealed: pyrage.decrypt(sealed, [key]))
    ...     rows = vault.fingerprints(WholeTable(np.eye(3)))
    ...     vault.choose_span(Asked(rows=rows, shape=(3, 2)))
    <Fresh, hidden>
    """

    def __init__(self, folder: Path, *, party: str, seal: Cipher, unseal: Cipher) -> None:
        self.party = party
        self._place = Place(folder, party=party, seal=seal, unseal=unseal)
        self._records = self._place.records

    def fingerprints(self, rows: Blocks) -> Fingerprints:
        """Return the fingerprints of encoded rows under this vault's key."""
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
