"""What a vault keeps before a byte of an upload leaves: the basis, the rows, a line of history."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from cobasis.errors import SpanReuseError
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.keeping import basis_columns
from cobasis.protocol.secrets import SecretBasis
from cobasis.vault.charges import Charge
from cobasis.vault.datasets import Dataset, UploadEntry, entries
from cobasis.vault.spans import Fresh, Kept, Refused, choose_span


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
