"""``cobasis status``: how a round stands, who waits for whom, and the next command to type."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cobasis.cli.options import Owner, agreed, owned

if TYPE_CHECKING:
    from cobasis.bundle.transcript import Entry
    from cobasis.protocol.agreement import Agreement
    from cobasis.protocol.exchanges import Exchange
    from cobasis.protocol.news import News
    from cobasis.protocol.receipts import Receipt

WIDTH = 80
_INDENT = 13
SENT = {"proposal": "proposed", "upload": "prepared"}
TAKEN = {"span": "adopted", "return": "accepted"}
"""How a party's transcript calls what it sent, and what it took."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What a home, and the analyst's newest news, show of a round.

    Attributes
    ----------
    path, agreement : Path, Agreement
        The agreement's file, and what it says.
    signed : tuple of str
        Whose signatures are known to be good, the analyst's too.
    name, role : str
        Who asks; empty where the home has no key of the round.
    own : tuple of Entry
        The transcript of whoever asks.
    news : News or None
        At the analyst what it would sign now.
    late : tuple of str
        Parties that came after the last run; known at the analyst only.
    now : datetime
        By this machine's clock.
    """

    path: Path
    agreement: "Agreement"
    signed: tuple[str, ...]
    name: str = ""
    role: Literal["", "party", "analyst"] = ""
    own: "tuple[Entry, ...]" = ()
    news: "News | None" = None
    late: tuple[str, ...] = ()
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def analyst(self) -> str:
        """What the analyst is called."""
        return "the analyst" if self.agreement.analyst is None else self.agreement.analyst.name

    @property
    def unsigned(self) -> tuple[str, ...]:
        """Who has not signed, as far as is known."""
        from cobasis.protocol.signatures import signers

        return tuple(name for name in signers(self.agreement) if name not in self.signed)

    @property
    def exchange(self) -> "Exchange | None":
        """The exchange that is open, as far as is known; None when all have ended."""
        from cobasis.protocol.exchanges import exchanges

        every = exchanges(self.agreement)
        ended = len(self.news.ended) if self.news else sum(self.has(TAKEN[e.reply]) for e in every)
        return every[ended] if ended < len(every) else None

    def has(self, event: str) -> bool:
        """Whether the transcript of whoever asks says so."""
        return any(each.event == event for each in self.own)

    def receipts(self, exchange: "Exchange") -> "dict[str, Receipt]":
        """Return what the analyst has received of an exchange, by party."""
        found = self.news.receipts_of(exchange.number) if self.news else {}
        return {party: signed.receipt for party, signed in found.items()}

    def missing(self, exchange: "Exchange") -> tuple[str, ...]:
        """Return whose message is not in, of those whom the analyst waits for."""
        out = (*self.news.without, *self.news.removed) if self.news else ()
        came = {*self.receipts(exchange), *out}
        return tuple(name for name in self.agreement.parties if name not in came)

    def closed(self) -> bool:
        """Whether the deadline is over."""
        closes = self.agreement.closes
        return closes is not None and closes < self.now

    def complete(self, exchange: "Exchange") -> bool:
        """Whether the analyst can end an exchange."""
        enough = len(self.receipts(exchange)) >= self.agreement.minimum_parties
        return enough and (self.closed() or not self.missing(exchange))


@owned
def status(
    owner: Owner,
    words: Annotated[
        list[Path] | None, typer.Argument(metavar="[AGREEMENT]", help="The agreement's file.")
    ] = None,
) -> None:
    """Say how a round stands, who waits for whom, and what to type next.

    No passphrase is asked. A party knows the others from the newest `icu.news`, in its home or
    beside the agreement; the analyst from its own folder.

    Example: cobasis status icu.toml
    """
    from cobasis.cli.answers import DraftAnswer

    path, _ = agreed(words or [])
    draft = _draft(path)
    if draft is not None:
        told, people, empty = draft
        answer = DraftAnswer(
            command="status", round=told, path=str(path), people=people, empty=empty
        )
        owner.say(answer, lines=_of_draft(answer))
        return
    standing = _standing(owner, path)
    owner.say(_answer(standing), lines=_lines(standing))


def _lines(of: Standing) -> Iterator[str]:
    """Yield the screen, no line wider than 80 columns but for a command."""
    you = f"you: {of.name}, {of.role}" if of.role else "you: no key of this round"
    head = f"Round {of.agreement.round_id}   {of.agreement.purpose}"
    yield f"{head[: WIDTH - len(you) - 3]:<{WIDTH - len(you)}}{you}"
    if not of.unsigned:
        yield _exchange_line(of)
    yield _as_of(of)
    yield from _agreement_lines(of)
    if not of.unsigned:
        yield from _message_lines(of)
        yield from _deadline_line(of)
    yield f"{'Waits for':<{_INDENT}}{_waits_for(of) or 'nobody'}"
    command, now = next_command(of)
    yield from _wrapped("You", command if now else f"nothing to do now{command and '; '}{command}")


def _exchange_line(of: Standing) -> str:
    from cobasis.protocol.exchanges import exchanges

    every = exchanges(of.agreement)
    if of.exchange is None:
        return (
            f"All {len(every)} exchanges have ended" if len(every) > 1 else "The exchange has ended"
        )
    left = ", then ".join(each.message for each in every[of.exchange.number - 1 :])
    return f"Exchange {of.exchange.number} of {len(every)}: {left}"


def _as_of(of: Standing) -> str:
    if of.role == "analyst":
        return f"As of now, from {of.path.stem}.round"
    if of.news is None:
        return f"No news from {of.analyst} are here: of the others nothing is known"
    age = of.now - _time(of.news.time)
    hours = int(age.total_seconds() // 3600)
    old = (
        f"{hours // 24} days" if hours >= 48 else f"{hours} hours" if hours else "less than an hour"
    )
    return (
        f"As of {_day(of.news.time)} {of.news.time[11:16]} UTC (signed by {of.analyst}; {old} old)"
    )


def _agreement_lines(of: Standing) -> Iterator[str]:
    n_signers = len(of.signed) + len(of.unsigned)
    if not of.unsigned:
        when = f" {_day(of.news.sealed)}" if of.news and of.news.sealed else ""
        yield f"  {'agreement':<11}sealed{when} by all {n_signers}"
        return
    yield f"  {'agreement':<11}signed by {_listed(of.signed) or 'nobody'}"
    yield f"  {'':<11}missing {_listed(of.unsigned)}"


def _message_lines(of: Standing) -> Iterator[str]:
    """Yield a line for each party and exchange that is open or has ended."""
    from cobasis.protocol.exchanges import exchanges

    every = exchanges(of.agreement)
    shown = every if of.exchange is None else every[: of.exchange.number]
    width = max(map(len, of.agreement.parties)) + 2
    for exchange in shown:
        word = exchange.message
        for party in of.agreement.parties:
            yield f"  {word:<11}{party:<{width}}{_state(of, exchange, party)}"
            word = ""


def _state(of: Standing, exchange: "Exchange", party: str) -> str:
    """Return what is known of one party's message."""
    receipt = of.receipts(exchange).get(party)
    mine = party == of.name
    if of.news and party in of.news.removed:
        return "removed"
    if receipt is not None:
        here = {str(each.told.get("file")) for each in of.own if each.event == "receipt"}
        kept = ", receipt is here" if mine and receipt.file in here else ""
        late = ", after the last run" if party in of.late else ""
        return f"received {_day(receipt.time)}{kept}{late}"
    if of.news and party in of.news.without:
        return "left out"
    if mine and of.has(SENT[exchange.message]):
        return "made here; no receipt yet"
    return "missing" if of.news or mine else "not known"


def _deadline_line(of: Standing) -> Iterator[str]:
    if of.exchange is None:
        return
    count = f"{of.agreement.minimum_parties} needed"
    if of.news:
        count += f", {len(of.receipts(of.exchange))} in"
    closes = of.agreement.closes
    if closes is None:
        yield f"  {'deadline':<11}none; {count}"
        return
    days = (closes - of.now).days
    ahead = "over" if of.closed() else f"in {days} days" if days > 1 else "within two days"
    yield f"  {'deadline':<11}{_day(of.agreement.deadline)} {closes:%H:%M} UTC, {ahead}; {count}"


def _waits_for(of: Standing) -> str:
    """Return whom the round waits for, as far as is known."""
    if of.unsigned:
        return _listed(of.unsigned)
    if of.exchange is None:
        return of.analyst if of.late else ""
    missing = of.missing(of.exchange) if of.news else ()
    if not of.news or of.complete(of.exchange):
        return of.analyst
    return f"{_listed(missing)}, then {of.analyst}" if missing else of.analyst


def next_command(of: Standing) -> tuple[str, bool]:
    """Return what whoever asks types next, and whether now; later, with when before it."""
    at = of.path.name
    if not of.role:
        return "", False
    if of.name in of.unsigned:
        return f"cobasis sign {at}", True
    if of.role == "analyst":
        return _next_of_analyst(of, at)
    if of.unsigned:
        return f"when {of.path.stem}.sealed.toml has come, put it beside {at}", False
    return _next_of_party(of, at)


def _next_of_analyst(of: Standing, at: str) -> tuple[str, bool]:
    receive = f"cobasis receive {at} inbox/"
    if of.unsigned:
        return f"when signatures have come: {receive}", False
    if of.has("forgotten"):
        return "", False
    if of.late if of.exchange is None else of.complete(of.exchange):
        return f"cobasis run {at}", True
    return f"when files have come: {receive}", False


def _next_of_party(of: Standing, at: str) -> tuple[str, bool]:
    from cobasis.protocol.exchanges import exchanges

    if of.has("forgotten"):
        return "", False
    for each in exchanges(of.agreement):
        if not of.has(SENT[each.message]):
            return f"cobasis send {at} data.csv", True
        if not of.has(TAKEN[each.reply]):
            file = f"{of.path.stem}.{of.name}.{each.number}-{each.reply}"
            accept = f"cobasis accept {file}"
            if (of.path.parent / file).exists():
                return accept, True
            return f"when {of.analyst}'s file has come: {accept}", False
    return f"cobasis predict {at} new.csv -o out.csv", True


def _wrapped(word: str, text: str) -> Iterator[str]:
    """Yield a sentence within the width; a command that does not fit has a line of its own."""
    before, colon, command = text.partition(": cobasis ")
    if colon and _INDENT + len(text) > WIDTH:
        text, command = f"{before}:", f"cobasis {command}"
    else:
        command = ""
    for line in wrap(text, WIDTH - _INDENT, break_on_hyphens=False):
        yield f"{word:<{_INDENT}}{line}"
        word = ""
    if command:
        yield f"{'':<{_INDENT}}{command}"


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def _day(text: str) -> str:
    return f"{_time(text):%-d %b %Y}"
