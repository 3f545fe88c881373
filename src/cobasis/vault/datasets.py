"""What a vault holds of one data set: its basis for life, and every upload of its rows."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from cobasis.linalg.arrays import Hidden
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.plaintext import basis_columns, secret_bytes
from cobasis.protocol.secrets import PartyKey, SecretBasis
from cobasis.vault.fingerprints import Fingerprints
from cobasis.vault.records import Record, Records


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What one upload with noise spends."""

    release: str  # digest of all that the noise was drawn for
    mu: float  # sensitivity over noise
    labels: float  # epsilon of a person's labels, 0 where they are public
    # promised for all uploads of a data set; each agreement's promise is kept
    lifetime_epsilon: float
    delta: float


def charge_of(agreement: Agreement, release: str) -> Charge | None:
    """Return what an upload spends, None where it has no noise."""
    terms = agreement.dp
    if terms is None:
        return None
    return Charge(
        release=release,
        mu=terms.calibration.mu,
        labels=terms.spent_on_labels,
        lifetime_epsilon=terms.lifetime_epsilon,
        delta=terms.delta,
    )


FOLDER = "datasets"


@dataclass(frozen=True, kw_only=True)
class UploadEntry:
    """One line of a party's upload history."""

    number: int  # counts all uploads of the vault, from 1
    time: str
    round_id: str
    agreement: str
    upload: str  # the sealed file's digest; empty when it is not known whether it became whole
    n_rows: int
    n_components: int
    basis: str
    span: Literal["fresh", "kept", "forced"]  # forced where some rows had been uploaded before
    reason: str  # why it was forced
    by: str  # who answers for it
    charge: Charge | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Dataset(Hidden):
    """Rows that are seen through one span, as long as they live."""

    name: str  # the vault's own
    basis: SecretBasis
    key: PartyKey  # draws the order of rows in every round, and what is held back
    last: Fingerprints  # sorted fingerprints of the last upload's rows
    earlier: Fingerprints  # of rows that only uploads before had
    people: Fingerprints  # sorted fingerprints of all identifiers ever uploaded
    columns: str  # digest of how columns became numbers, which the basis goes with
    history: tuple[UploadEntry, ...]  # oldest first

    def knows(self, rows: Fingerprints, people: Fingerprints) -> npt.NDArray[np.bool_]:
        """Tell of rows, then of people, whether they were ever uploaded through this basis."""
        known = np.isin(rows, self.last) | np.isin(rows, self.earlier)
        return np.concatenate([known, np.isin(people, self.people)])

    def uploading(self, rows: Fingerprints, *, people: Fingerprints, entry: UploadEntry) -> Self:
        """Return the data set as it is once an upload of these rows has begun."""
        left = self.last[~np.isin(self.last, rows)]
        return replace(
            self,
            last=rows,
            earlier=np.union1d(self.earlier[~np.isin(self.earlier, rows)], left),
            people=np.union1d(self.people, people),
            history=(*self.history, entry),
        )

    def uploaded(self, number: int, digest: str) -> Self:
        """Return the data set with an upload's digest filled in."""
        history = tuple(
            replace(entry, upload=digest) if entry.number == number else entry
            for entry in self.history
        )
        return replace(self, history=history)


@dataclass(frozen=True, kw_only=True, repr=False)
class Uploaded(Hidden):
    """What a party uploaded in a round."""

    dataset: Dataset  # its basis is the upload's
    entry: UploadEntry


def save_dataset(dataset: Dataset, records: Records) -> None:
    """Write a data set: one record, so that basis and history are of one state."""
    record = Record(
        about={
            "columns": dataset.columns,
            "history": [asdict(entry) for entry in dataset.history],
        },
        arrays={
            "basis": basis_columns(dataset.basis),
            "key": np.frombuffer(secret_bytes(dataset.key), dtype=np.uint8),
            "last": dataset.last,
            "earlier": dataset.earlier,
            "people": dataset.people,
        },
    )
    records.put(f"{FOLDER}/{dataset.name}", record)


def load_datasets(records: Records) -> tuple[Dataset, ...]:
    """Read every data set, the one that was uploaded last at the end."""
    found = [_loaded(name, records) for name in records.names(FOLDER)]
    return tuple(sorted(found, key=lambda each: each.history[-1].number))


def entries(datasets: Iterable[Dataset]) -> tuple[UploadEntry, ...]:
    """Return every upload of some data sets, oldest first."""
    found = (entry for dataset in datasets for entry in dataset.history)
    return tuple(sorted(found, key=lambda entry: entry.number))


def _loaded(name: str, records: Records) -> Dataset:
    """Read one data set."""
    record = records.get(name)
    if record is None:
        records.refuse(name, "it is gone")
    arrays = record.arrays
    return Dataset(
        name=name.removeprefix(f"{FOLDER}/"),
        basis=SecretBasis(arrays["basis"], party=records.party),
        key=PartyKey(arrays["key"].tobytes()),
        last=arrays["last"],
        earlier=arrays["earlier"],
        people=arrays["people"],
        columns=record.about["columns"],
        history=tuple(_entry(**told) for told in record.about["history"]),
    )


def _entry(*, charge: dict[str, Any] | None = None, **told: Any) -> UploadEntry:  # noqa: ANN401
    """Read one line; those that were written before there was noise have no charge."""
    return UploadEntry(**told, charge=None if charge is None else Charge(**charge))
