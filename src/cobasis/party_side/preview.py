"""What will leave, said before anything does: the split, the span, the size, in words."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy.typing as npt

from cobasis.linalg.arrays import Hidden
from cobasis.party_side.rows import Findings, PartyRows, public_rows_in
from cobasis.party_side.session import PartySession, digest_of, upcoming
from cobasis.protocol.agreement import Agreement, Exchange
from cobasis.vault import Asked, Forced, Fresh, Kept, Refused, Spent


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What an upload would show, and to whom; for the party's own screen."""

    n_features: int  # columns once encoded
    n_components: int
    n_bytes: int  # before compression
    precision: str
    reader: str
    fingerprint: str
    span: Literal["fresh", "kept", "forced"]  # forced: made though rows were uploaded before
    leaves: tuple[str, ...]
    stays: tuple[str, ...]
    guarantee: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Ready(Hidden):
    """Rows that are split, and the basis that they have to go through; nothing has left."""

    session: PartySession
    rows: PartyRows
    choice: Fresh | Kept
    exchange: Exchange
    preview: Preview
    public_rows: npt.ArrayLike | None  # the agreed ones, where anchor or basis need them


def make_ready(
    session: PartySession,
    found: Findings,
    *,
    forced: Forced | None = None,
    looking: bool = False,
    public_rows: Path | None = None,
) -> Ready:
    """Ask the vault for the span of rows that fit, and say what would leave.

    Somebody who is only looking is told of a second span where it is refused to others.
    """
    agreement, exchange = session.agreement, upcoming(session)
    rows = found.opened(agreement)
    asked = Asked(
        rows=rows.fingerprints,
        shape=(agreement.n_features, agreement.n_components),
        people=rows.people,
        columns=_encoding(agreement),
    )
    choice = session.vault.choose_span(asked)
    if isinstance(choice, Refused):  # nobody's word makes a second span where the stored one fits
        if forced is None and not looking:
            choice.refuse()
        choice = Fresh(asked=replace(asked, forced=forced), over_old_rows=True)
    proposing, shown = exchange.message == "proposal", None
    if public_rows is not None:
        shown = public_rows_in(public_rows, agreement=agreement, party=session.name)
    return Ready(
        session=session,
        rows=rows,
        choice=choice,
        exchange=exchange,
        preview=_preview(session, rows, choice, proposing=proposing),
        public_rows=shown,
    )


def _encoding(agreement: Agreement) -> str:
    """Return a digest of how columns become numbers; what a cell may be is no part of that."""
    told = [each.model_dump(exclude={"unit", "low", "high"}) for each in agreement.features]
    return digest_of(json.dumps(told, sort_keys=True).encode())


def _preview(
    session: PartySession, rows: PartyRows, choice: Fresh | Kept, *, proposing: bool
) -> Preview:
    """Say what would leave."""
    agreement, reader = session.agreement, session.analyst
    span: Literal["fresh", "kept", "forced"] = "fresh"
    if isinstance(choice, Kept):
        span = "kept"
    elif choice.over_old_rows:
        span = "forced"
    image = agreement.n_anchor_rows * agreement.n_components * 8
    return Preview(
        n_features=agreement.n_features,
        n_components=agreement.n_components,
        n_bytes=image if proposing else weight(agreement, rows.n_sent),
        precision="fp64" if proposing else agreement.precision,
        reader=reader.name,
        fingerprint=reader.fingerprint,
        span=span,
        leaves=leaves(agreement, rows, proposing=proposing),
        stays=stays(agreement, rows, proposing=proposing),
        guarantee=guarantee_of(agreement, session.vault.ledger.affordable(choice.asked, agreement)),
        warnings=() if proposing else _warnings(session, choice),
    )


def _warnings(session: PartySession, choice: Fresh | Kept) -> tuple[str, ...]:
    """Return what a person should think about before this leaves."""
    told = ["an upload is pseudonymised personal data, not anonymous data"]
    if session.agreement.dp is not None and not session.agreement.id:
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
    return tuple(told)


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
