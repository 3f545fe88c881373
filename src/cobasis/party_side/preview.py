"""What will leave, said before anything does: the split, the span, the size, in words."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from cobasis.errors import AgreementError, ForeignBundleError, StepError
from cobasis.linalg.arrays import Hidden
from cobasis.party_side.desk import PartyDesk, digest_of
from cobasis.party_side.rows import PartyRows, open_rows, refuse_outside
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.choice import require_proposals
from cobasis.vault import Asked, Forced, Fresh, Kept, Refused, Spent, UploadEntry


@dataclass(frozen=True, kw_only=True)
class Dry:
    """What an upload would show, and to whom; for the party's own screen.

    Attributes
    ----------
    n_rows, n_held : int
        The table's rows, and how many of them never leave.
    n_columns, n_features, n_components, n_anchor_rows : int
        Raw columns, encoded ones, and what they are projected on.
    n_bytes : int
        What the numbers weigh before they are compressed.
    precision : str
        How they are written.
    reader, fingerprint : str
        Who can open it, and the fingerprint of their key.
    span : {"fresh", "kept", "forced"}
        Whether a basis is made, the stored one used, or one made though rows were uploaded before.
    leaves, stays : tuple of str
        In words.
    guarantee : str
        What the noise promises, or that there is no formal guarantee.
    warnings : tuple of str
        What a person should think about first.
    """

    n_rows: int
    n_held: int
    n_columns: int
    n_features: int
    n_components: int
    n_anchor_rows: int
    n_bytes: int
    precision: str
    reader: str
    fingerprint: str
    span: Literal["fresh", "kept", "forced"]
    leaves: tuple[str, ...]
    stays: tuple[str, ...]
    guarantee: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Ready(Hidden):
    """Rows that are split, and the basis that they have to go through; nothing has left.

    Attributes
    ----------
    desk : PartyDesk
        The party's.
    rows : PartyRows
        Its rows.
    choice : Fresh or Kept
        The vault's word on the span.
    dry : Dry
        What would leave.
    """

    desk: PartyDesk
    rows: PartyRows
    choice: Fresh | Kept
    dry: Dry


def make_ready(
    desk: PartyDesk,
    table: Path,
    *,
    forced: Forced | None = None,
    proposing: bool = False,
    looking: bool = False,
    report: Report = silent,
) -> Ready:
    """Split a table, ask the vault for the span, and say what an upload would show."""
    if proposing:
        require_proposals(desk.agreement, party=desk.name)
    desk.round.secret()  # without it nothing can be made: says so before the table is read
    refuse_outside(desk, table, report=report)
    rows = open_rows(desk, table, report=report)
    agreement = desk.agreement
    refuse_crowds(rows, agreement, party=desk.name)
    asked = Asked(
        rows=rows.fingerprints,
        shape=(agreement.n_features, agreement.n_components),
        people=rows.people,
        columns=_encoding(agreement),
    )
    choice = desk.vault.choose_span(asked)
    if isinstance(choice, Refused):  # nobody's word makes a second span where the stored one fits
        if forced is None and not looking:
            choice.refuse()
        choice = Fresh(asked=replace(asked, forced=forced), over_old_rows=True)
    return Ready(
        desk=desk, rows=rows, choice=choice, dry=_dry(desk, rows, choice, proposing=proposing)
    )


def _encoding(agreement: Agreement) -> str:
    """Return a digest of how columns become numbers; what a cell may be is no part of that."""
    told = [each.model_dump(exclude={"unit", "low", "high"}) for each in agreement.features]
    return digest_of(json.dumps(told, sort_keys=True).encode())


def _dry(desk: PartyDesk, rows: PartyRows, choice: Fresh | Kept, *, proposing: bool) -> Dry:
    """Say what would leave."""
    agreement, reader = desk.agreement, desk.analyst
    span: Literal["fresh", "kept", "forced"] = "fresh"
    if isinstance(choice, Kept):
        span = "kept"
    elif choice.over_old_rows:
        span = "forced"
    image = agreement.n_anchor_rows * agreement.n_components * 8
    return Dry(
        n_rows=len(rows.marks),
        n_held=rows.n_held,
        n_columns=len(agreement.columns),
        n_features=agreement.n_features,
        n_components=agreement.n_components,
        n_anchor_rows=agreement.n_anchor_rows,
        n_bytes=image if proposing else weight(agreement, rows.n_sent),
        precision="fp64" if proposing else agreement.precision,
        reader=reader.name,
        fingerprint=reader.fingerprint,
        span=span,
        leaves=leaves(agreement, rows, proposing=proposing),
        stays=stays(agreement, rows, proposing=proposing),
        guarantee=guarantee_of(agreement, desk.vault.ledger.affordable(choice.asked, agreement)),
        warnings=() if proposing else _warnings(desk, choice),
    )


def _warnings(desk: PartyDesk, choice: Fresh | Kept) -> tuple[str, ...]:
    """Return what a person should think about before this leaves."""
    told = ["an upload is pseudonymised personal data, not anonymous data"]
    if desk.agreement.dp is not None and not desk.agreement.id:
        told.append(
            "the agreement names no id column, so people whose numbers change count as others, and "
            "their budget begins anew"
        )
    if isinstance(choice, Kept) and choice.changes.few:
        told.append(
            f"{choice.changes.added} rows came and {choice.changes.gone} went since these rows "
            "were uploaded last: whoever has both uploads can tell whose they are. Wait until more "
            "have changed, or leave these rows out"
        )
    if isinstance(choice, Fresh) and choice.over_old_rows:
        told.append(
            "some rows were uploaded before through another basis: whoever has both uploads can "
            "rebuild more of them than one shows"
        )
    before = sent_before(desk)
    if before is not None:
        told.append(
            f"an upload of this round was made on {before.time} already; the analyst takes one per "
            "round, so send only one of the two files"
        )
    return tuple(told)


def sent_before(desk: PartyDesk) -> UploadEntry | None:
    """Return this round's last finished upload, None where there is none."""
    found = desk.vault.upload_of(desk.agreement)
    return None if found is None else found.entry


def same_as_before(ready: Ready) -> bool:
    """Whether this round's last upload was of the same rows, through the same basis."""
    found = ready.desk.vault.upload_of(ready.desk.agreement)
    return (
        found is not None
        and isinstance(ready.choice, Kept)
        and found.dataset.name == ready.choice.dataset.name
        and np.array_equal(found.dataset.last, ready.rows.fingerprints)
    )


def require_made_for(desk: PartyDesk, upload: object) -> str:
    """Return the digest of the upload that a return was made for; it has to be one of ours."""
    known = isinstance(upload, str) and desk.vault.upload_of(desk.agreement, upload=upload)
    if isinstance(upload, str) and known:
        return upload
    raise ForeignBundleError(
        f"this return to party '{desk.name}' was made for the upload {str(upload)[:16]}, which is "
        f"none that its vault has made in round '{desk.agreement.round_id}', so no basis goes with "
        "it. Ask the analyst which file was received, and use the home folder that made it."
    )


def require_uploaded(desk: PartyDesk) -> UploadEntry:
    """Return this round's last finished upload; StepError where there is none."""
    found = sent_before(desk)
    if found is None:
        raise StepError(
            f"party '{desk.name}' has made no upload in round '{desk.agreement.round_id}', so "
            "nothing can have come back for it. Run 'cobasis party prepare' first."
        )
    return found


_BYTES = {"fp64": (8, 8), "fp32": (4, 4), "fp16": (2, 2), "int8": (1, 2)}
"""Of one number of a row, and of one of the anchor's image, by the agreed precision."""


def leaves(agreement: Agreement, rows: PartyRows, *, proposing: bool) -> tuple[str, ...]:
    """Say what leaves, in words."""
    size, labels = agreement.n_components, ""
    told = []
    if agreement.label:
        randomised = agreement.dp is not None and agreement.dp.label_epsilon is not None
        how = "with some labels changed at random" if randomised else "in the clear"
        labels = f", and their column '{agreement.label}' {how}"
    if proposing:
        told.append(
            f"up to {size:,} directions of {rows.n_sent:,} rows, as the secret anchor sees them"
        )
    else:
        noise = "" if agreement.dp is None else " with noise"
        told.append(
            f"{rows.n_sent:,} rows in random order, as {size:,} numbers each{noise}{labels}"
        )
        told.append(
            f"the image of the secret anchor, {agreement.n_anchor_rows:,} x {size:,} numbers"
        )
    return (*told, "the names of party, round and agreement")


def stays(agreement: Agreement, rows: PartyRows, *, proposing: bool) -> tuple[str, ...]:
    """Say what does not leave."""
    told = ["the raw rows, the secret basis, the anchor and the consortium secret"]
    if proposing:
        told.append("every projected row and every label")
    if rows.n_held:
        told.append(f"{rows.n_held:,} rows that are held back, to score the model on")
    if agreement.id:
        told.append(f"the id column '{agreement.id}', and every column that is not agreed on")
    return tuple(told)


def weight(agreement: Agreement, n_rows: int) -> int:
    """Return the bytes of rows, image and labels before they are compressed."""
    row, image = _BYTES[agreement.precision]
    label = 8 if agreement.label else 0
    rows = n_rows * (agreement.n_components * row + label)
    return rows + agreement.n_anchor_rows * agreement.n_components * image


NONE = "no formal guarantee"


def guarantee_of(agreement: Agreement, spent: Spent) -> str:
    """Return the guarantee that the round gives, and what was spent before it."""
    terms = agreement.dp
    if terms is None:
        return NONE
    promised = [terms.lifetime_epsilon, *(each.lifetime_epsilon for each in spent.charges)]
    return (
        f"{terms.statement(basis=agreement.basis)}; releases so far {len(spent.charges)}, epsilon "
        f"spent on these rows {spent.epsilon(terms.delta):.4g} of {min(promised):g}"
    )


def refuse_crowds(rows: PartyRows, agreement: Agreement, *, party: str) -> None:
    """Raise AgreementError where somebody has more rows than the guarantee covers."""
    terms = agreement.dp
    if terms is None or rows.ids is None:
        return
    _, counts = np.unique(rows.people, return_counts=True)
    if counts.max(initial=0) > terms.rows_per_person:
        raise AgreementError(
            f"some identifiers of party '{party}' stand in more than rows_per_person="
            f"{terms.rows_per_person} rows, so the noise of [dp] would be too small for these "
            "people. Leave rows of theirs out, or agree on a larger rows_per_person."
        )
