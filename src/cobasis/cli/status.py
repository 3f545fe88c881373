"""``cobasis status``: how a round stands, who waits for whom, and the next command to type."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

from cobasis.analyst_side.session import work_folder
from cobasis.bundle.agreement_file import BY_COMMAND, news_at, signed_agreement, stem_of
from cobasis.bundle.transcript import Entry, verify_transcript
from cobasis.cli.options import AgreementFile, Home, Owner, ProxyCA, alone, grouped
from cobasis.cli.words import day, listed, message_in_words, picked, wrapped
from cobasis.disk.whole import file_digest
from cobasis.errors import CobasisError, UnknownPartyError
from cobasis.party_side.session import NEWS, transcript_path
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.exchanges import Exchange, exchanges
from cobasis.protocol.news import News, stopped_by
from cobasis.protocol.signatures import Receipt, analyst_of, signed_by, signers
from cobasis.protocol.terms import others_of
from cobasis.protocol.vertical import complete
from cobasis.protocol.word import WORD, Word

_WIDTH, _LEAD = 79, 13


class Step(NamedTuple):
    what: str = ""  # sign, wait, receive, run, send, accept or end; empty for who takes no part
    command: str = ""  # as it is typed; empty where nothing is
    when: str = ""  # what has to have come before
    bring: str = ""  # a file that may still have to be sent: nobody has said that it came


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What a home, and the analyst's newest news, show of a round."""

    path: Path
    agreement: Agreement
    exchanges: tuple[Exchange, ...]
    analyst: str
    signed: tuple[str, ...]
    unsigned: tuple[str, ...]  # as far as is known
    gaps: tuple[str, ...]  # of a draft: what is not filled yet
    sealed: bool  # everybody's signature lies here, without which nothing is sent or accepted
    name: str
    role: str  # empty for nobody's key
    stranger: str  # then, which home was looked into, and who is enrolled
    own: tuple[Entry, ...]
    news: News  # empty where none are here
    known: bool  # whether any are
    attempt: int = 1  # of sums, by the news that whoever asks has accepted
    asked: str = ""  # what became of asking the analyst's server
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @cached_property
    def open(self) -> Exchange | None:
        ended = max(sum(bool(self.taken(each)) for each in self.exchanges), len(self.news.ended))
        return self.exchanges[ended] if ended < len(self.exchanges) else None

    @property
    def last(self) -> Exchange:
        """The exchange that is open, or the one that ended last."""
        return self.open or self.exchanges[-1]

    @property
    def shown(self) -> tuple[Exchange, ...]:
        """The exchanges that are open or have ended, the last of each kind."""
        every = self.exchanges if self.open is None else self.exchanges[: self.open.number]
        return tuple({each.message: each for each in every}.values())

    @cached_property
    def out(self) -> dict[str, str]:
        """The parties that nobody waits for, and why."""
        left = dict.fromkeys(self.news.without, "left out")
        return left | dict.fromkeys(self.news.removed, "removed")

    @cached_property
    def revoked(self) -> tuple[str, ...]:
        """Whose keys were revoked, of those who are in the round and of whoever asks."""
        found = stopped_by(self.news.revoked, self.agreement, out={*self.out} - {self.name})
        return tuple(each.name for each, _ in found)

    @property
    def halted(self) -> str:
        """Why the analyst could not end the exchange that is open, without a figure."""
        why = self.news.halted
        return why and f"{self.analyst} could not end the exchange: {why}"

    @cached_property
    def outside(self) -> set[str]:
        """The parties that the common span was made without."""
        if not self.news.ended or self.exchanges[0].reply != "span":
            return set()
        # the news name who is in the span only where that is not everybody with a receipt
        spanned = self.news.spanned or self.receipts(self.exchanges[0])
        return {*self.agreement.parties} - {*spanned}

    @cached_property
    def late(self) -> tuple[str, ...]:
        before = self.news.trained_on
        return tuple(x for x in self.came(self.exchanges[-1]) if before and x not in before)

    @cached_property
    def outdated(self) -> str:
        """Why the model that was accepted is no more the round's; empty where no news tell it."""
        taken = [each for each in self.own if each.event == "accepted"]
        if not taken or self.name in self.news.removed or self.has("forgotten"):
            return ""
        rows, on = cast("list[str]", taken[-1].told["trained_on"]), self.news.trained_on
        newer = self.news.time < str(taken[-1].told.get("made", ""))  # the model, perhaps
        why = f"is older than the last run, on {listed(on)}"
        if gone := [name for name in self.news.removed if name in rows]:
            why = f"holds rows of {listed(gone)}, removed since"
        elif newer or {*on} == {*rows}:
            return ""
        due = f"; a newer return is due from {self.analyst}" * (self.name in on)
        return f"the model here {why}{due}"

    @cached_property
    def complete(self) -> bool:
        """Whether the analyst can end the exchange that is open."""
        if self.open is None:
            return False
        closes, came = self.agreement.closes, self.came(self.open)
        # masks cancel in the sums of all only, whenever that is
        closed = closes is not None and closes < self.now and not self.open.masked
        return len(came) >= self.open.fewest and (closed or not self.awaited)

    @cached_property
    def awaited(self) -> tuple[str, ...]:
        came = {*self.out, *self.receipts(self.last)}
        return tuple(name for name in self.agreement.parties if name not in came)

    @cached_property
    def waits_for(self) -> tuple[str, ...]:
        """Whom the round waits for, in their order, as far as is known."""
        if self.unsigned:
            return (*(name for name in self.unsigned if name != self.analyst), self.analyst)
        if self.open is None:
            return (self.analyst,) if self.late or (self.outdated and self.step.when) else ()
        return (*(self.awaited if self.known and not self.complete else ()), self.analyst)

    @cached_property
    def step(self) -> Step:
        name, out = self.path.name, self.out.get(self.name)
        gone = out == "removed" or (out and self.agreement.sums)
        # who proposed too late accepts no span that was made without it
        late = self.name in self.outside and self.has(self.exchanges[0].sent_as)
        if out == "removed" and not self.has("forgotten"):
            return Step(command=f"cobasis forget {name}", when="nothing of it is to stay here")
        if not self.role or self.has("forgotten") or gone or late or self.revoked:
            return Step()
        if self.name in self.unsigned:
            typed, when = "sign", "it is no draft" * bool(self.gaps)
            if self.gaps and self.role == "party":  # perhaps the author
                by_hand = ", ".join(each for each in self.gaps if each not in BY_COMMAND)
                typed, when = "agreement new", by_hand and f"somebody fills in {by_hand}, by hand"
            return Step("sign", f"cobasis {typed} {name}", when=when)
        if self.role == "analyst":
            return self._step_of_analyst()
        found = self._step_of_party()
        if self.agreement.server and found.when:  # what comes over HTTPS comes by go alone
            return Step(found.what, f"cobasis go {name} data.csv", f"{self.analyst} has answered")
        return found

    def _step_of_analyst(self) -> Step:
        name, groups = self.path.name, self.agreement.groups
        shown = {each.name: self.path.with_name(f"{each.name}.reference") for each in groups}
        if self.open is not None and groups and shown[self.name].exists():
            typed = " --without ".join((f"cobasis run {name}", *self.awaited))
            if away := [path.name for path in shown.values() if not path.exists()]:
                return Step("run", typed, when=f"{listed(away)} lie here")
            if not work_folder(self.path).table.exists():
                return Step("run", typed)
            return Step("run", f"{typed} --trained SUMS.toml", when="the sums of all are accepted")
        if not self.unsigned and (self.complete or (self.open is None and self.late)):
            return Step("run", f"cobasis run {name}")
        come = "signatures have come" if self.unsigned else "files have come"
        typed = "cobasis serve" if self.agreement.server else f"cobasis receive {name} inbox/"
        return Step("receive", typed, when=come)

    def _step_of_party(self) -> Step:
        name, stem = self.path.name, stem_of(self.path)
        if self.agreement.sums is None and not self.has("joined"):  # as in a home from before
            secret = self.path.with_name(f"{self.name}.secret")
            when = "" if secret.exists() else f"{secret.name} lies here"
            return Step("sign", f"cobasis sign {name}", when=when)
        if not self.sealed:
            here = f"{self.analyst}'s sealed agreement lies here"
            own = "" if self.name in self.news.agreed else f"{self.name}.sig"
            return Step("wait", f"cobasis status {name}", when=here, bring=own)
        if self.news.attempt > self.attempt:
            return Step("accept", f"cobasis accept {name} {stem}.news")
        due = bool(self.outdated) and self.name in self.news.trained_on  # a newer return
        for each in self.exchanges:
            late = each.reply == "span" and self.name in self.outside  # too late for a proposal
            if not self.sent(each) and not late:
                return Step("send", f"cobasis send {name} data.csv")
            file = self.path.with_name(f"{stem}.{self.name}.{each.number}-{each.reply}")
            came = file.exists() and file_digest(file) not in self.taken(each)
            later = any(map(self.sent, self.exchanges[each.number :]))  # its answer is what counts
            if not self.taken(each) or ((came or due) and not later):
                when = "" if came else f"{self.analyst}'s files have come"
                what = "end" if due and not came else "accept"  # go waits for none
                own = f"{stem}.{self.name}.{each.number}-{each.message}"
                own *= self.sent(each) and not came and self.name not in self.receipts(each)
                return Step(what, f"cobasis accept {stem}.news {file.name}", when, bring=own)
        others = others_of(self.agreement.held_by(self.name))
        made = f"--part -o {self.name}.part" if others else "-o out.csv"
        return Step("end", f"cobasis predict {name} new.csv {made}" if self.agreement.model else "")

    def has(self, event: str) -> bool:
        return any(each.event == event for each in self.own)

    def sent(self, exchange: Exchange) -> bool:
        """Whether whoever asks has made its file of an exchange, of sums that of this attempt."""
        made = (each.told for each in self.own if each.event == exchange.sent_as)
        told = [(each.get("attempt", 1), each["exchange"]) for each in made]
        return (self.news.attempt, exchange.number) in told

    def taken(self, exchange: Exchange) -> tuple[str, ...]:
        """Return the digests of what whoever asks has accepted as an exchange's reply."""
        own = (each.told for each in self.own if each.event == exchange.taken_as)
        return tuple(str(x[exchange.answer]) for x in own if x["exchange"] == exchange.number)

    def receipts(self, exchange: Exchange) -> dict[str, Receipt]:
        return {x: signed.receipt for x, signed in self.news.receipts_of(exchange.number).items()}

    def came(self, exchange: Exchange) -> list[str]:
        """Return whose messages count: nobody's who is out, nor of a block that lacks one."""
        return complete([x for x in self.receipts(exchange) if x not in self.out], self.agreement)

    def missed(self, exchange: Exchange, name: str) -> bool:
        """Whether an exchange ended before a party's message came, and nobody left it out."""
        ended = exchange.number <= len(self.news.ended)
        return ended and name not in {*self.out, *self.receipts(exchange)}

    def party(self, name: str) -> dict[str, Any]:
        came = {each.message: self.receipts(each).get(name) for each in self.shown}
        received = {message: each.time for message, each in came.items() if each is not None}
        out = self.out.get(name, "too late" * self.missed(self.last, name))
        return {"name": name, "signed": name in self.signed, "received": received, "out": out}


@grouped
def status(owner: Owner, agreement: AgreementFile = None, tls_ca: ProxyCA = None) -> None:
    """Say how a round stands, who waits for whom, and what to type next.

    What others did is known from the analyst's newest news, those that were accepted or an
    icu.news beside the agreement. With a passphrase's file the analyst's server is asked for newer
    ones.

    Example: cobasis status icu.toml
    """
    found = _asked(owner, standing(owner, alone(agreement), draft=True), ca=tls_ca)
    owner.say(
        shown(found),
        command="status",
        round=found.agreement.round_id,
        state="unsigned" if found.unsigned else "sealed",
        as_of=found.news.time if found.known else None,
        exchange=found.open and found.open.number,
        n_exchanges=len(found.exchanges),
        parties=[found.party(name) for name in found.agreement.parties],
        next=found.step.command,
        now=bool(found.step.command) and not found.step.when,
        **picked(found, "path", "name", "role", "asked", "waits_for", "revoked", "halted"),
        outdated=found.outdated,
        **picked(found.agreement, "deadline", "minimum_parties"),
    )


def _asked(owner: Owner, of: Standing, *, ca: Path | None) -> Standing:
    """Look again with what the analyst's server has for a party; say so where it tells nothing."""
    if of.role != "party" or not of.agreement.server or of.gaps:
        return of
    if owner.passphrase_file is None:
        told = "The server was not asked: a question takes your key. Give --passphrase-file."
        return replace(of, asked=told)
    from cobasis.transport.client import Remote  # noqa: PLC0415 -- loads httpx, for this alone

    sign = owner.enrolled(owner.who(of.agreement)).sign
    try:
        with Remote(of.agreement, name=of.name, sign=sign, ca=ca, insist=False) as remote:
            remote.fetch("news", of.path.with_name(f"{stem_of(of.path)}.news"))
    except CobasisError as error:
        return replace(of, asked=f"The server has told nothing: {error}")
    return replace(standing(owner, of.path), asked="The server was asked now")


def standing(keys: Home, path: Path, *, draft: bool = False) -> Standing:
    """Read all that lies here about a round, or its draft; no key is opened."""
    file = signed_agreement(path, draft=draft)
    agreement, who, stranger = file.agreement, None, ""
    try:
        who = keys.who(agreement)
    except UnknownPartyError as error:
        if keys.name:
            raise
        stranger = error.args[0]
    told: Any = {"round_id": agreement.round_id, "agreement": agreement.digest().hex()}
    analyst = analyst_of(agreement).name
    nothing = News(**told, analyst=analyst, time="1970-01-01T00:00:00Z", agreed=())
    beside = news_at(path.with_name(f"{stem_of(path)}.news"), agreement)
    own, kept = None, nothing
    if who is not None and who.role == "analyst":
        own = work_folder(path).transcript
    elif who is not None:
        own = transcript_path(agreement, who.name, home=keys.folder())
        kept = news_at(own.with_name(NEWS), agreement) or nothing
    newest = max(beside or nothing, kept, key=lambda each: each.time)
    entries = verify_transcript(own) if own is not None and own.exists() else ()
    here = signed_by(agreement, file.signatures)
    agreed = dict.fromkeys((*here, *newest.agreed))
    ended = [cast("int", each.told["exchange"]) for each in entries if each.told.get("finished")]
    return Standing(
        path=path,
        agreement=agreement,
        exchanges=exchanges(agreement, last=ended[-1] if ended else newest.last),
        analyst=analyst,
        signed=tuple(agreed),
        unsigned=tuple(name for name in signers(agreement) if name not in agreed),
        gaps=file.gaps,
        sealed={*here} == {*signers(agreement)},
        name=who.name if who else "",
        role=who.role if who else "",
        stranger=stranger,
        own=entries,
        news=newest,
        known=newest is not nothing,
        attempt=kept.attempt,
    )


def shown(of: Standing) -> Iterator[str]:
    you = f"you: {of.name}, {of.role}" if of.role else "you: neither party nor analyst"
    head = f"Round {of.agreement.round_id}   {of.agreement.purpose}"
    yield f"{wrapped(head)[0][: _WIDTH - len(you) - 2]:<{_WIDTH - len(you)}}{you}"
    if not of.unsigned and of.open is not None:
        steps = ", then ".join(dict.fromkeys(x.message for x in of.exchanges[of.open.number - 1 :]))
        yield f"Exchange {of.open.number} of {len(of.exchanges)}: {steps}"
    elif not of.unsigned:
        yield "All exchanges have ended" if len(of.exchanges) > 1 else "The exchange has ended"
    yield from wrapped(as_of(of))
    yield from wrapped(of.asked)
    if of.unsigned:
        yield from wrapped(listed(of.signed), lead=f"  {'agreement':<11}signed by ")
        known = "missing" if of.known or of.role == "analyst" else "not known"
        yield from wrapped(listed(of.unsigned), lead=f"  {'':<11}{known} ")
    else:
        when = f" {day(of.news.sealed)}" if of.news.sealed else ""
        yield f"  {'agreement':<11}sealed{when} by all {len(of.signed)}"
        yield from _messages(of)
    for name in of.revoked:
        yield f"  {'revoked':<11}the key of {name}: all stands still [CB315]"
    yield from wrapped(of.halted, lead=f"  {'halted':<11}")
    yield from wrapped(of.outdated, lead=f"  {'outdated':<11}")
    if gone := [each.time for each in of.own if each.event == "forgotten"]:
        yield f"  {'forgotten':<11}{day(gone[0])}, and what was kept here was destroyed"
    for each in (Word.model_validate(dict(x.told)) for x in of.own if x.event == WORD):
        yield from wrapped(f"{each.party}: {each.said()}", lead=f"  {'word':<11}")
    *first_ones, last = of.waits_for or ("nobody",)
    yield from _row("Waits for", ", then ".join(filter(None, (", ".join(first_ones), last))))
    if of.step.when:
        send = of.step.bring and f" but to send {of.step.bring} to '{of.analyst}', if you have not"
        yield from _row("You", f"nothing to do now{send}; when {of.step.when}:")
        yield f"{'':<{_LEAD}}{of.step.command}"
    else:
        yield from _row("You", of.step.command or of.stranger or "nothing to do now")


def as_of(of: Standing) -> str:
    if not of.known:
        if of.role == "analyst":
            return "Nothing was received yet"
        return f"No news from {of.analyst} are here, so of the others nothing is known"
    when = datetime.fromisoformat(of.news.time)
    return f"As of {when:%-d %b %Y %H:%M} UTC, signed by {of.analyst}"


def _messages(of: Standing) -> Iterator[str]:
    width = max(map(len, of.agreement.parties)) + 2
    for exchange in of.shown:
        for at, party in enumerate(of.agreement.parties):
            word = "" if at else exchange.message
            yield f"  {word:<11}{party:<{width}}{message_in_words(of, exchange, party)}"
    if of.open is None:
        return
    came = f", {len(of.came(of.open))} in" if of.known else ""
    closes, when = of.agreement.closes, "none"
    if closes is not None:
        when = f"{closes:%-d %b %Y %H:%M} UTC{', over' if closes < of.now else ''}"
    yield f"  {'deadline':<11}{when}; {of.open.fewest} needed{came}"


def _row(word: str, text: str) -> list[str]:
    return wrapped(text, lead=f"{word:<{_LEAD}}")
