"""``cobasis status``: how a round stands, who waits for whom, and the next command to type."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from cobasis.cli.options import AgreementFile, Owner, alone, owned, wrapped

if TYPE_CHECKING:
    from cobasis.bundle.transcript import Entry
    from cobasis.cli.answers import StatusAnswer
    from cobasis.protocol.agreement import Agreement, Exchange
    from cobasis.protocol.enrolment import Role
    from cobasis.protocol.signatures import News, Receipt

_WIDTH, _LEAD = 79, 13
_SOON = timedelta(days=2)
_TAKEN = {"span": ("adopted", "consensus"), "return": ("accepted", "return")}
"""How a party's transcript calls what it took, and the word of its digest."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What a home, and the analyst's newest news, show of a round."""

    path: Path
    agreement: "Agreement"
    signed: tuple[str, ...]
    name: str = ""
    role: "Role | None" = None
    own: "tuple[Entry, ...]" = ()
    news: "News | None" = None
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
    def exchanges(self) -> "tuple[Exchange, ...]":
        """The round's."""
        from cobasis.protocol.agreement import exchanges

        return exchanges(self.agreement)

    @property
    def open(self) -> "Exchange | None":
        """The exchange that has not ended, as far as is known."""
        taken = sum(bool(self.taken(each.reply)) for each in self.exchanges)
        ended = max(taken, len(self.news.ended) if self.news else 0)
        return self.exchanges[ended] if ended < len(self.exchanges) else None

    @property
    def late(self) -> tuple[str, ...]:
        """Who sent all, and is not in the last run."""
        if self.news is None or not self.news.trained_on:
            return ()
        known = {*self.news.trained_on, *self.out}
        return tuple(name for name in self.receipts(self.exchanges[-1]) if name not in known)

    @property
    def out(self) -> dict[str, str]:
        """The parties that nobody waits for, and why."""
        if self.news is None:
            return {}
        removed = dict.fromkeys(self.news.removed, "removed")
        return {**dict.fromkeys(self.news.without, "left out"), **removed}

    def has(self, event: str) -> bool:
        """Whether the transcript of whoever asks says so."""
        return any(each.event == event for each in self.own)

    def taken(self, reply: str) -> tuple[str, ...]:
        """Return the digests of the spans or the returns that whoever asks has accepted."""
        event, word = _TAKEN[reply]
        return tuple(str(each.told[word]) for each in self.own if each.event == event)

    def receipts(self, exchange: "Exchange") -> "dict[str, Receipt]":
        """Return what the analyst has received of an exchange, by party."""
        found = self.news.receipts_of(exchange.number) if self.news else {}
        return {party: signed.receipt for party, signed in found.items()}

    def missing(self, exchange: "Exchange") -> tuple[str, ...]:
        """Return whose message is not in, of those whom the analyst waits for."""
        came = {*self.receipts(exchange), *self.out}
        return tuple(name for name in self.agreement.parties if name not in came)

    def complete(self, exchange: "Exchange") -> bool:
        """Whether the analyst can end an exchange."""
        closes = self.agreement.closes
        came = set(self.receipts(exchange)) - set(self.out)
        closed = closes is not None and closes < self.now
        return len(came) >= self.agreement.minimum_parties and (
            closed or not self.missing(exchange)
        )


@owned
def status(
    owner: Owner,
    agreement: AgreementFile = None,
) -> None:
    """Say how a round stands, who waits for whom, and what to type next.

    No passphrase is asked. What others did is known from the analyst's newest news: those that
    were accepted, or an icu.news that lies beside the agreement.

    Example: cobasis status icu.toml
    """
    from cobasis.bundle.agreement_file import read_draft
    from cobasis.cli.answers import StatusAnswer
    from cobasis.protocol.agreement import missing_fields

    path = alone(agreement)
    fields = read_draft(path)
    if missing := missing_fields(fields):
        lead = f"{path} is a draft of round '{fields.get('round_id', '')}'."
        empty = f"To be filled before anybody signs: {', '.join(missing)}."
        command = f"cobasis agreement new {path} *.pub --analyst lab.pub"
        answer = StatusAnswer(
            command="status",
            round=str(fields.get("round_id", "")),
            path=str(path),
            state="draft",
            missing=list(missing),
            next=command,
            now=True,
        )
        owner.say(answer, lines=[lead, *wrapped(empty), *_sentence("Next", command)])
        return
    standing = read_standing(owner, path)
    owner.say(_answer(standing), lines=_lines(standing))


def read_standing(owner: Owner, path: Path) -> Standing:
    """Read all that lies here about a round; no key is opened."""
    from cobasis.analyst_side.session import work_folder
    from cobasis.bundle.agreement_file import signed_agreement, stem_of
    from cobasis.bundle.transcript import verify_transcript
    from cobasis.errors import IdentityError, UnknownPartyError
    from cobasis.keys.at_rest import home
    from cobasis.party_side.session import NEWS, transcript_path
    from cobasis.protocol.signatures import signed_by

    file = signed_agreement(path)
    agreement, folder = file.agreement, home(owner.home)
    try:
        who = owner.who(agreement)
    except (IdentityError, UnknownPartyError):
        if owner.name:
            raise
        who = None
    news, own = [path.with_name(f"{stem_of(path)}.news")], None
    if who is not None and who.role == "analyst":
        own = work_folder(path).transcript
    elif who is not None:
        own = transcript_path(agreement, who.name, home=folder)
        news.append(own.with_name(NEWS))
    newest = _newest(news, agreement)
    told = signed_by(agreement, file.signatures)
    return Standing(
        path=path,
        agreement=agreement,
        signed=tuple({**dict.fromkeys(told), **dict.fromkeys(newest.agreed if newest else ())}),
        name=who.name if who else "",
        role=who.role if who else None,
        own=verify_transcript(own).entries if own is not None and own.exists() else (),
        news=newest,
    )


def _newest(paths: list[Path], agreement: "Agreement") -> "News | None":
    """Return the newest news of those that are here."""
    from cobasis.protocol.signatures import News

    found = [News.from_text(path.read_bytes(), agreement) for path in paths if path.exists()]
    return max(found, key=lambda each: each.time, default=None)


def _answer(of: Standing) -> "StatusAnswer":
    from cobasis.cli.answers import StandingPart, StatusAnswer

    command, now = next_command(of)
    return StatusAnswer(
        command="status",
        round=of.agreement.round_id,
        path=str(of.path),
        state="unsigned" if of.unsigned else "sealed",
        name=of.name,
        role=of.role or "",
        as_of=of.news.time if of.news else None,
        exchange=of.open.number if of.open else None,
        n_exchanges=len(of.exchanges),
        parties=[
            StandingPart(
                name=name,
                signed=name in of.signed,
                received={
                    each.message: of.receipts(each)[name].time
                    for each in of.exchanges
                    if name in of.receipts(each)
                },
                out=of.out.get(name, ""),
            )
            for name in of.agreement.parties
        ],
        deadline=of.agreement.deadline,
        minimum_parties=of.agreement.minimum_parties,
        waits_for=list(waits_for(of)),
        next=command,
        now=now,
    )


def _lines(of: Standing) -> Iterator[str]:
    """Yield the screen, which fits 80 columns."""
    you = f"you: {of.name}, {of.role}" if of.role else "you: no key of this round"
    head = f"Round {of.agreement.round_id}   {of.agreement.purpose}"
    [first, *_] = wrapped(head) or [""]
    yield f"{first[: _WIDTH - len(you) - 2]:<{_WIDTH - len(you)}}{you}"
    if not of.unsigned:
        yield _exchange(of)
    yield from wrapped(_as_of(of))
    yield from _signatures(of)
    if not of.unsigned:
        yield from _messages(of)
        yield from _deadline(of)
    waits = waits_for(of)
    last = f", then {waits[-1]}" if len(waits) > 1 else _listed(waits) or "nobody"
    yield from _sentence("Waits for", f"{_listed(waits[:-1])}{last}" if len(waits) > 1 else last)
    command, now = next_command(of)
    if now or not command:
        yield from _sentence("You", command or "nothing to do now")
    else:
        yield from _sentence("You", f"nothing to do now; when {_when(of)}:")
        yield f"{'':<{_LEAD}}{command}"


def _exchange(of: Standing) -> str:
    if of.open is None:
        return "All exchanges have ended" if len(of.exchanges) > 1 else "The exchange has ended"
    left = ", then ".join(each.message for each in of.exchanges[of.open.number - 1 :])
    return f"Exchange {of.open.number} of {len(of.exchanges)}: {left}"


def _as_of(of: Standing) -> str:
    if of.news is None:
        if of.role == "analyst":
            return "Nothing was received yet"
        return f"No news from {of.analyst} are here, so of the others nothing is known"
    hours = int((of.now - _time(of.news.time)).total_seconds() // 3600)
    age = f"{hours} hours" if timedelta(hours=hours) < _SOON else f"{hours // 24} days"
    old = age if hours > 1 else "an hour" if hours == 1 else "less than an hour"
    return (
        f"As of {_day(of.news.time)} {of.news.time[11:16]} UTC (signed by {of.analyst}; {old} old)"
    )


def _signatures(of: Standing) -> Iterator[str]:
    if not of.unsigned:
        when = f" {_day(of.news.sealed)}" if of.news and of.news.sealed else ""
        yield f"  {'agreement':<11}sealed{when} by all {len(of.signed)}"
        return
    yield from wrapped(_listed(of.signed) or "nobody", lead=f"  {'agreement':<11}signed by ")
    known = "missing" if of.news or of.role == "analyst" else "not known"
    yield from wrapped(_listed(of.unsigned), lead=f"  {'':<11}{known} ")


def _messages(of: Standing) -> Iterator[str]:
    """Yield a line for each party and exchange that is open or has ended."""
    width = max(map(len, of.agreement.parties)) + 2
    for exchange in of.exchanges if of.open is None else of.exchanges[: of.open.number]:
        for at, party in enumerate(of.agreement.parties):
            word = "" if at else exchange.message
            yield f"  {word:<11}{party:<{width}}{_message(of, exchange, party)}"


def _message(of: Standing, exchange: "Exchange", party: str) -> str:
    """Return what is known of one party's message."""
    from cobasis.party_side.session import SENT_AS

    receipt, mine = of.receipts(exchange).get(party), party == of.name
    if of.out.get(party) == "removed":
        return "removed"
    if receipt is not None:
        here = {each.told.get("file") for each in of.own if each.event == "receipt"}
        kept = ", receipt is here" if mine and receipt.file in here else ""
        out = f", {of.out[party]}" if party in of.out else ""
        late = ", after the last run" if party in of.late and exchange is of.exchanges[-1] else ""
        return f"received {_day(receipt.time)}{kept}{out}{late}"
    if party in of.out:
        return of.out[party]
    if mine and of.has(SENT_AS[exchange.message]):
        return "made here; no receipt yet"
    return "missing" if of.news or mine else "not known"


def _deadline(of: Standing) -> Iterator[str]:
    if of.open is None:
        return
    came = f", {len(of.receipts(of.open))} in" if of.news else ""
    closes, when = of.agreement.closes, "none"
    if closes is not None:
        left = closes - of.now
        ahead = f"in {left.days} days" if left > _SOON else "in less than two days"
        when = f"{_day(of.agreement.deadline)} {closes:%H:%M} UTC"
        when += f", {'over' if closes < of.now else ahead}"
    yield f"  {'deadline':<11}{when}; {of.agreement.minimum_parties} needed{came}"


def waits_for(of: Standing) -> tuple[str, ...]:
    """Return whom the round waits for, in their order, as far as is known."""
    if of.unsigned:
        return (*(name for name in of.unsigned if name != of.analyst), of.analyst)
    if of.open is None:
        return (of.analyst,) if of.late else ()
    if of.news is None or of.complete(of.open):
        return (of.analyst,)
    return (*of.missing(of.open), of.analyst)


def next_command(of: Standing) -> tuple[str, bool]:
    """Return what whoever asks types next, and whether now or when others' files have come."""
    if of.role is None or of.has("forgotten") or of.out.get(of.name) == "removed":
        return "", False
    if of.name in of.unsigned:
        return f"cobasis sign {of.path.name}", True
    if of.role == "analyst":
        return _next_of_analyst(of)
    if of.unsigned:
        return f"cobasis status {of.path.name}", False
    return _next_of_party(of)


def _next_of_analyst(of: Standing) -> tuple[str, bool]:
    if not of.unsigned and (of.late if of.open is None else of.complete(of.open)):
        return f"cobasis run {of.path.name}", True
    return f"cobasis receive {of.path.name} inbox/", False


def _next_of_party(of: Standing) -> tuple[str, bool]:
    from cobasis.bundle.agreement_file import stem_of
    from cobasis.disk.whole import file_digest
    from cobasis.party_side.session import SENT_AS

    for each in of.exchanges:
        if not of.has(SENT_AS[each.message]):
            return f"cobasis send {of.path.name} data.csv", True
        file = of.path.with_name(f"{stem_of(of.path)}.{of.name}.{each.number}-{each.reply}")
        came = file.exists() and file_digest(file) not in of.taken(each.reply)
        if came or not of.taken(each.reply):
            return f"cobasis accept {stem_of(of.path)}.news {file.name}", came
    return f"cobasis predict {of.path.name} new.csv -o out.csv", True


def _when(of: Standing) -> str:
    """Return what a command that comes later waits for."""
    if of.role == "analyst":
        return "signatures have come" if of.unsigned else "files have come"
    what = "sealed agreement lies here" if of.unsigned else "files have come"
    return f"{of.analyst}'s {what}"


def _sentence(word: str, text: str) -> list[str]:
    return wrapped(text, lead=f"{word:<{_LEAD}}")


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def _day(text: str) -> str:
    return f"{_time(text):%-d %b %Y}"
