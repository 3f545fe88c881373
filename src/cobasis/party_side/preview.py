"""What will leave, said before anything does; and what each defence would cost, in a draft."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cobasis.bundle.uploads import STORED
from cobasis.errors import LabelError, SpanReuseError, UnsignedError
from cobasis.features.outcome import VALUE, part_of
from cobasis.linalg.arrays import Hidden, Mask
from cobasis.models import UNSCORED
from cobasis.party_side.rows import Findings, PartyRows, public_rows_in, unlike
from cobasis.party_side.session import PartySession
from cobasis.privacy.aggregate import GREEN
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.exchanges import Exchange, MessageName
from cobasis.protocol.scores import FEWEST_OF_CLASS, FEWEST_ROWS
from cobasis.protocol.sums_terms import (
    guarantee_of,
    layout_of,
    least_difference,
    may_leave_out,
    score_layout,
)
from cobasis.protocol.terms import others_of
from cobasis.vault.datasets import Asked, Choice, Forced, SumsEntry

NONE = "no formal guarantee"

_ABOUT_CELLS = {"unit", "low", "high", "blanks_at_most", "source"}
"""What a cell may be, which is no part of how it becomes a number."""


@dataclass(frozen=True, kw_only=True)
class Preview:
    n_bytes: int
    precision: str
    leaves: tuple[str, ...]
    stays: tuple[str, ...]
    guarantee: str = NONE
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, repr=False)
class Ready(Hidden):
    session: PartySession
    rows: PartyRows
    choice: Choice
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
    """Ask the vault whether these rows may leave, and through which span; say what would.

    Somebody who is only looking is told of a second span where it is refused to others.
    """
    agreement, exchange = session.agreement, session.upcoming
    session.refuse_rollback()
    rows = found.opened(agreement, doubts=() if looking else unlike(session, found))
    columns = [each.model_dump(exclude=_ABOUT_CELLS) for each in agreement.features]
    columns += [] if agreement.map.kind == "columns" else [agreement.map.model_dump()]
    side = rows.held if exchange.held else ~rows.held
    asked = Asked(
        rows=rows.marks[side],
        beside=rows.marks[~side],
        shape=(agreement.n_features, agreement.n_components),
        people=rows.marks[:0] if rows.ids is None else rows.ids[side],
        columns=hashlib.sha256(json.dumps(columns, sort_keys=True).encode()).hexdigest(),
        names=agreement.columns,
        sums=_sums_entry(session, rows, exchange=exchange) if exchange.masked else None,
        message=exchange.message,
    )
    try:
        choice = session.vault.choose_span(asked)
    except SpanReuseError:  # nobody's word makes a second span where the stored one fits
        if forced is None and not looking:
            raise
        choice = Choice(asked=replace(asked, forced=forced), span="forced")
    return Ready(
        session=session,
        rows=rows,
        choice=choice,
        exchange=exchange,
        preview=_preview(session, rows, choice, exchange=exchange),
        public_rows=public_rows_in(public_rows, agreement, party=session.name),
    )


def _sums_entry(session: PartySession, rows: PartyRows, *, exchange: Exchange) -> SumsEntry:
    agreement, kept = session.agreement, session.round.accepted()
    keys, attempt = dict.fromkeys(agreement.parties, ""), 1
    with suppress(UnsignedError):  # whoever looks before all have signed; `send` asks again
        keys, attempt = session.roster()
    side = rows.held if exchange.held else ~rows.held
    least, data = least_difference(agreement), rows.version(side, labels=False)
    if exchange.held:  # of rows that no least_rows counts, and of one model
        least, model = GREEN * score_layout(agreement).n_words, kept.model_sha256 if kept else ""
        data = hashlib.sha256(f"{data}{model}".encode()).hexdigest()
    return SumsEntry(
        participants=tuple(keys),
        attempt=attempt,
        data=f"{data}:{_labels_of(rows, agreement, side=side)}",
        least=0 if agreement.dp else least,  # noise hides the difference, and is paid for
        aggregate=not exchange.held and may_leave_out(agreement),
        step=exchange.number if agreement.tabular else 1,
    )


def _labels_of(rows: PartyRows, agreement: Agreement, *, side: Mask) -> str:
    """Return digests of each column of labels and of what it holds; empty without any."""
    codes = rows.table.labels()
    if codes is None:
        return ""
    found, words = [], {VALUE: [*map(str, agreement.classes)], "event": ["0", "1"]}
    beside = {} if agreement.outcome is None else agreement.outcome.columns
    for role, name in {VALUE: agreement.label, **beside}.items():
        told = part_of(codes, role)
        if told is None or not name:
            continue
        told = told[side]
        if listed := words.get(role):
            told = np.array(listed)[told.astype(np.int64)]
        order = np.lexsort((told, rows.marks[side]))
        column = hashlib.sha256(name.encode()).hexdigest()
        found.append(f"{column}={hashlib.sha256(told[order].tobytes()).hexdigest()}")
    return ";".join(found)


def _preview(
    session: PartySession, rows: PartyRows, choice: Choice, *, exchange: Exchange
) -> Preview:
    agreement, guarantee = session.agreement, NONE
    spent = session.vault.affordable(choice.asked, agreement)
    if agreement.dp is not None:
        terms = agreement.dp
        promised = [terms.lifetime_epsilon, *(each.lifetime_epsilon for each in spent.charges)]
        so_far = spent.epsilon(terms.delta, centred=terms.adjacency == "add-remove")
        guarantee = (
            f"{guarantee_of(agreement)}; releases so far {len(spent.charges)}, "
            f"epsilon spent on these rows {so_far:.4g} of {min(promised):g}"
        )
    shown = leaving(agreement, exchange.message, n_rows=len(choice.asked.rows))
    stays = [*shown.stays]
    if rows.n_held and not exchange.held:
        why = "" if agreement.task in UNSCORED else ", to score the model on"
        stays.append(f"{rows.n_held:,} rows that are held back{why}")
    if agreement.id:
        stays.append(f"the id column '{agreement.id}', and every column that is not agreed on")
    return replace(
        shown,
        leaves=(*shown.leaves, "the names of party, round and agreement"),
        stays=tuple(stays),
        guarantee=guarantee,
        warnings=(*shown.warnings, *_beyond(rows, agreement)),
    )


def _beyond(rows: PartyRows, agreement: Agreement) -> Iterator[str]:
    """Say where times lie behind the agreed grid."""
    end = agreement.outcome.grid[-1] if agreement.outcome and agreement.outcome.grid else np.inf
    time = part_of(rows.table.labels(), "time" if agreement.task == "table" else VALUE)
    if time is not None and end < np.inf and (time > end).any():
        yield (
            f"some times are above {end:g}, the last of the agreed grid: those people are followed "
            f"until then, and an event behind it is not counted [{LabelError.code}]"
        )


_PRIVATE = "the raw rows, the secret basis, the anchor and the consortium secret"


def _rows(n_rows: int | None) -> str:
    return "your rows" if n_rows is None else f"{n_rows:,} rows"


def _proposal(agreement: Agreement, n_rows: int | None) -> Preview:
    size = agreement.n_components
    return Preview(
        n_bytes=8 * agreement.n_anchor_rows * size,
        precision="fp64",
        leaves=(f"up to {size:,} directions of {_rows(n_rows)}, as the secret anchor sees them",),
        stays=(_PRIVATE, "every projected row and every label"),
    )


def _upload(agreement: Agreement, n_rows: int | None) -> Preview:
    size, (row, image) = agreement.n_components, map(np.dtype, STORED[agreement.precision])
    n_bytes = size * (agreement.n_anchor_rows * image.itemsize + (n_rows or 0) * row.itemsize)
    noise, labels, order = "" if agreement.dp is None else " with noise", "", "random order"
    if agreement.label:
        named = [*map(repr, labels_of(agreement))]
        n_bytes += 8 * len(named) * (n_rows or 0)
        randomised = agreement.dp is not None and agreement.dp.label_epsilon is not None
        how = "with some labels changed at random" if randomised else "IN THE CLEAR"
        labels = f", and their column{'s' * (len(named) > 1)} {', '.join(named)} {how}"
    if agreement.holdings and (others := others_of(agreement)):
        order = f"the order of {', '.join(others)}, with a tag of whose they are"
    numbers = f"{size:,} number{'s' * (size > 1)}"
    return Preview(
        n_bytes=n_bytes,
        precision=agreement.precision,
        leaves=(
            f"{_rows(n_rows)} in {order}, as {numbers} each{noise}{labels}",
            f"the image of the secret anchor, {agreement.n_anchor_rows:,} x {size:,} numbers",
        ),
        stays=(_PRIVATE,),
        warnings=("an upload is pseudonymised personal data, not anonymous data",),
    )


def _sums(agreement: Agreement, n_rows: int | None) -> Preview:
    n_words, terms, of = layout_of(agreement).n_words, agreement.sums, agreement.outcome
    few = "sums of few rows for each feature still tell who is among them"
    by = " and ".join(["", *map(repr, labels_of(agreement))])
    what = f"{n_words:,} sums over {_rows(n_rows)}{by}"
    if agreement.tabular:
        what += ", at weights that all know"
    elif terms is not None and terms.n_bins is not None:
        few = "a level, a bin or a group of few people shows them in the table"
        groups = f", for each '{agreement.label}'" if agreement.label else ""
        what += f", of each column alone{groups}: numbers, their squares, how many lie in each of "
        what += f"{terms.n_bins} bins or have a word"
        if of is not None and of.weight:
            few += ", and so does a weight far above all others"
            what += f"; numbers and words once more, each row times its '{of.weight}', and with"
            what += " these how many are above 0, and their squares"
        if of is not None and of.grid:
            few += ", and so does a time at which few left"
            what += f"; with '{of.event}' and without, who left in each of {len(of.grid)} "
            what += f"intervals of '{of.time}'"
    return _masked(agreement, what, few=few, n_words=n_words)


def _scores(agreement: Agreement, n_rows: int | None) -> Preview:
    what = f"counts, losses and a histogram of scores over {_rows(n_rows)} that are held back"
    if n_rows is not None and n_rows < FEWEST_ROWS:
        what = f"zeros alone, since {_rows(n_rows)} that are held back are below {FEWEST_ROWS}"
    elif agreement.sums and agreement.sums.importance:
        what += ", and what shuffling each column costs there"
    few = (
        "a bin of few rows shows what the model gives to them; of fewer than "
        f"{FEWEST_ROWS} rows, or {FEWEST_OF_CLASS} of a class, only zeros leave"
    )
    return _masked(agreement, what, few=few, n_words=score_layout(agreement).n_words)


def _masked(agreement: Agreement, what: str, *, few: str, n_words: int) -> Preview:
    noise = "" if agreement.dp is None else ", with noise"
    return Preview(
        n_bytes=8 * n_words,
        precision="int64",
        leaves=(f"{what}{noise}, under masks that cancel in the total of all who take part",),
        stays=("the raw rows and every label, your sums without masks, the key of the masks",),
        warnings=() if agreement.dp else (few,),
    )


_SHOWN = {"proposal": _proposal, "upload": _upload, "sums": _sums, "scores": _scores}


def leaving(agreement: Agreement, message: MessageName, *, n_rows: int | None = None) -> Preview:
    """Say what leaves of so many rows; of rows that nobody has counted, in the same words."""
    return _SHOWN[message](agreement, n_rows)


def labels_of(agreement: Agreement) -> list[str]:
    """Return the names of the columns that leave beside the rows, as they are."""
    beside = () if agreement.outcome is None else agreement.outcome.columns.values()
    return [name for name in (agreement.label, *beside) if name]
