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

    Parameters
    ----------
    folder : Path
        The party's own; made when it is missing.
    party : str
        Whose it is.
    seal, unseal : callable, bytes to bytes
        To and from the party's own key. `unseal` raises ValueError for what was not sealed
        for it.

    Raises
    ------
    VaultError
        The vault is damaged, of another version, or another party's.
    DiskError
        The disk is full, or may not be read or written.

    Notes
    -----
    **Who sees what.** The party alone. Whoever reads the disk without the party's key sees how
    many data sets and rounds there are, and how large.

    Every write is one file, old or new and never half, so a crash at any moment leaves a vault
    that works; what it left behind goes at the next opening. Two processes take turns.

    **Cost.** A few milliseconds a record; 8 bytes per row that was uploaded.

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
        """Return the fingerprints of encoded rows under this vault's key.

        Parameters
        ----------
        rows : Blocks of shape (n_rows, n_features)
            On the agreed scale, without labels and identifiers.

        Returns
        -------
        ndarray of shape (n_rows,), uint64
            Sorted.

        Notes
        -----
        **Who sees what.** The party alone.

        **Cost.** One pass over the rows, some seconds per million.
        """
        return fingerprints(rows, self._place.derived(b"fingerprints"))

    def people(self, identifiers: Iterable[str]) -> Fingerprints:
        """Return the fingerprints of rows' identifiers, in their order, under a key of its own."""
        return people(identifiers, self._place.derived(b"people"))

    def choose_span(self, asked: Asked) -> Fresh | Kept | Refused:
        """Say which basis rows have to be uploaded through.

        Parameters
        ----------
        asked : Asked
            The rows' fingerprints, and what the round makes of them.

        Returns
        -------
        Fresh, Kept or Refused
            As `cobasis.vault.spans.choose_span` says.

        Raises
        ------
        VaultError
            A record cannot be used.

        Notes
        -----
        **Who sees what.** The party alone. Nothing is written: `begin_upload` asks again and
        holds on to the answer.

        **Cost.** All data sets are read; a search for each row.
        """
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
        """Keep the basis, the rows and the charge of an upload, before a byte of it leaves.

        Parameters
        ----------
        choice : Fresh or Kept
            From `choose_span`.
        basis : SecretBasis
            The stored one, or the one that was made where the choice was Fresh.
        agreement : Agreement
            The round's.
        time : str
            Now, ISO 8601 in UTC.
        release : str
            ``Plan.release``: what its noise was drawn for.

        Returns
        -------
        int
            The number of the history's new line, for `finish_upload`.

        Raises
        ------
        SpanReuseError
            Rows were uploaded before, and the basis is not the one that they went through.
        BudgetError
            It breaks a guarantee, or spends more than is left; nothing is charged.
        VaultError, DiskError
            The vault cannot be read or written; it is as it was.

        Notes
        -----
        **Who sees what.** The party alone. **Cost.** One record is written.
        """
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
        """Write an upload's digest into the history, now that its file is whole.

        Parameters
        ----------
        number : int
            What `begin_upload` returned.
        digest : str
            Of the sealed file, 64 hexadecimal digits.

        Raises
        ------
        StepError
            No upload of that number has begun.
        VaultError, DiskError
            The vault cannot be read or written; it is as it was.

        Notes
        -----
        **Who sees what.** The party alone. **Cost.** One record is written.
        """
        with self._place.alone():
            for dataset in self.datasets():
                if any(entry.number == number for entry in dataset.history):
                    save_dataset(dataset.uploaded(number, digest), self._records)
                    return
        msg = (
            f"party '{self.party}' has begun no upload of number {number}, so none can be "
            "finished. Begin it first."
        )
        raise StepError(msg)

    def upload_of(self, agreement: Agreement, *, upload: str | None = None) -> Uploaded | None:
        """Return a finished upload of a round, None where there is none.

        Parameters
        ----------
        agreement : Agreement
            The round's.
        upload : str, optional
            Digest of the sealed file; by default that of the last one.

        Returns
        -------
        Uploaded or None
            With the basis that it went through.

        Raises
        ------
        VaultError
            A record cannot be used.

        Notes
        -----
        **Who sees what.** The party alone. **Cost.** All data sets are read.
        """
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
        """Destroy a round's secret, consensus and return; nothing happens where there are none.

        Parameters
        ----------
        agreement : Agreement
            The round's.

        Raises
        ------
        DiskError
            The disk may not be written to.

        Notes
        -----
        **Who sees what.** Afterwards the party can neither predict nor join again without the
        secret being sent once more. The upload history stays, and the data set's basis does, too:
        without them, the same rows could go through a second span. What others received stays
        with them. Files are unlinked, not overwritten: somebody with the party's key and an older
        copy of the disk can still read them.

        **Cost.** One folder gets another name, at which moment the round is forgotten.
        """
        self._place.remove(self._round_folder(agreement))

    def _round_folder(self, agreement: Agreement) -> str:
        """Return where a round's records stand, under a name that says nothing."""
        token = hmac.digest(self._place.derived(b"rounds"), agreement.digest(), "sha256")[:16]
        return f"{rounds.FOLDER}/{token.hex()}"
