"""``cobasis send``: what leaves a party, said, audited and asked for before it does."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from cobasis.bundle.agreement_file import stem_of
from cobasis.cli import options
from cobasis.cli.mapping import Mapped
from cobasis.cli.options import Given, Owner, Public, Sensitive, Yes, about, grouped, progress
from cobasis.cli.words import audit_in_words, listed, picked, wrapped
from cobasis.errors import OptionError
from cobasis.party_side import send as sending
from cobasis.party_side.audit import approve, audited, typed_by
from cobasis.party_side.preview import Ready, labels_of, make_ready
from cobasis.party_side.rows import Findings, unlike
from cobasis.party_side.send import Allow, Made, Sent, require_turn
from cobasis.party_side.session import PartySession, refuse_target
from cobasis.protocol.enrolment import officers_of
from cobasis.vault.datasets import Forced


@dataclass(frozen=True, kw_only=True)
class Asked(Mapped):
    """How somebody is asked before anything leaves, and what was answered beforehand."""

    sensitive: Sensitive = None
    signed_by: Annotated[list[str] | None, Option(help="Who signs for the audit; repeat.")] = None
    override_by: Annotated[list[str] | None, Option(help="Two who answer for what is blocked.")] = (
        None
    )
    override_reason: Annotated[str, Option(help="Why it leaves all the same; is kept.")] = ""
    checked: Annotated[list[str] | None, Option(help="An odd column that is right; repeat.")] = None
    yes: Yes = False

    def override(self) -> Forced | None:
        if not self.override_by and not self.override_reason:
            return None
        return Forced(reason=self.override_reason, by=tuple(self.override_by or ()))

    def consent(self, approved: bool) -> None:
        """Ask whether the file may be made; with nobody here, an officer's approval answers."""
        answered = self.yes or (approved and not options.on_terminal())
        options.consent("Make the sealed file?", yes=answered, what="the sealed file")

    def about_columns(self, owner: Owner, session: PartySession, found: Findings) -> bool:
        """Ask whether columns that look unlike the agreement are right; whether some are mapped."""
        named = set(self.checked or ())
        known = [*session.agreement.columns, *labels_of(session.agreement)]
        if unknown := named - {*known}:
            raise OptionError(
                f"--checked {listed(sorted(unknown))} names no column of the agreement. Its "
                f"columns are {listed(known)}."
            )
        doubts = unlike(session, found)
        if not doubts:
            return False
        columns = {each.column for each in doubts}
        owner.tell([f"Columns that look unlike the agreement, {len(columns)} of {len(known)}:"])
        owner.tell(line for each in doubts for line in wrapped(each.counted, lead="  - "))
        if not columns <= named and options.on_terminal():
            question = "Are these columns in the agreed order, and right as they are?"
            if not typer.confirm(question, err=True):
                if self.converted(session, doubts):
                    return True
                typer.echo("Nothing was made. Correct the table, then type send again.", err=True)
                raise typer.Exit(2)
            named = columns
        told = ((each.column, each.problem) for each in doubts if each.column in named)
        session.round.call_right(told)
        return False

    def about_audit(self, owner: Owner, before: Callable[[], None]) -> Allow:
        """Return what happens between making a file and sealing it; `before` ends the bars."""

        def allow(made: Made) -> dict[str, object]:
            found = audited(made, sensitive=self.sensitive or (), compared=False)
            before()
            owner.tell(audit_in_words(found.report))
            names, override = tuple(self.signed_by or ()), self.override()
            session = made.ready.session
            keyed = officers_of(session.agreement, session.name)
            asked = found.report.to_sign and not (found.report.blocking and override is None)
            if asked and not (names or keyed) and options.on_terminal():
                told = typer.prompt("Who signs for this", default="", show_default=False, err=True)
                names = (told,)
            if names and not keyed:
                owner.tell([f"Signed for by {listed(names)}: {typed_by(session.name)}."])
            ask = self.consent
            return approve(session, found, signed_by=names, override=override, ask=ask)

        return allow


@grouped
def send(
    owner: Owner,
    asked: Asked,
    given: Given,
    out: Annotated[Path | None, Option("-o", "--out", help="The sealed file.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only say what would leave.")] = False,
    again: Annotated[bool, Option("--again", help="Write the last file again.")] = False,
    public_rows: Public = None,
) -> None:
    """Make the next file for the analyst: check, audit, say what leaves, ask, sign and seal it.

    A round with a consensus takes a proposal first, and the upload once its span was accepted.

    Example: cobasis send icu.toml data.csv --signed-by "Dr N. Officer"
    """
    if again and (named := options.agreed(given.words)[1]):
        raise OptionError(
            f"--again writes the file that was sent last, and nothing of {listed(named)} would be "
            "in it. Leave that word out; other rows than those that were sent take a new round."
        )
    data = None if again else given.table
    asked.override()  # refused before a key is opened
    if out is not None:
        refuse_target(out, table=data)
    session = owner.party(given.agreement, sealed=not dry_run)
    if data is None:
        _say_sent(owner, session, sending.send_again(session, out))
    elif dry_run:
        _say_dry(owner, session, asked.check(owner, session, data))
    elif (sent := sending.finish(session, out)) is not None:
        _say_sent(owner, session, sent)
    else:
        require_turn(session)
        found = asked.check(owner, session, data)
        while found.fits and asked.about_columns(owner, session, found):
            found = asked.check(owner, session, data)
        ready = make_ready(session, found, forced=asked.override(), public_rows=public_rows)
        owner.tell(_in_words(ready))
        with ExitStack() as shown:
            session.report = shown.enter_context(progress())
            allow = asked.about_audit(owner, shown.close)  # a question would stand among the bars
            sent = sending.send(ready, out, allow=allow)
        _say_sent(owner, session, sent, warnings=ready.preview.warnings)


def _say_dry(owner: Owner, session: PartySession, found: Findings) -> None:
    problems = [str(each.args[0]) for each in found.problems]
    words = ("column", "problem", "refused", "asked", "text")
    lines: list[str] = []
    for each in found.findings:
        lead = "refused: " if each.refused else "  asked: " if each.asked else "   told: "
        lines += wrapped(each.counted, lead=lead)
    for problem in problems:
        lines += wrapped(problem, lead="refused: ")
    verdict = "fits the agreement" if found.fits else "does not fit the agreement"
    lines.append(f"The table of {found.n_rows:,} rows {verdict}.")
    preview: dict[str, object] | None = None
    if found.fits:
        ready, analyst = make_ready(session, found, looking=True), session.analyst
        lines += _in_words(ready)
        preview = vars(ready.preview) | picked(session.agreement, "n_features", "n_components")
        preview |= {"reader": analyst.name, "fingerprint": analyst.fingerprint}
        preview["span"] = ready.choice.span
    owner.say(
        lines,
        **about(session, command="send"),
        exchange=session.upcoming.number,
        message=session.upcoming.message,
        findings=[picked(each, *words) for each in found.findings],
        problems=problems,
        preview=preview,
        **picked(found, "fits", "n_rows", "n_held"),
    )
    found.opened(session.agreement)  # raises where it does not fit


def _say_sent(
    owner: Owner, session: PartySession, sent: Sent, *, warnings: tuple[str, ...] = ()
) -> None:
    exchange, analyst = sent.exchange, session.analyst.name
    reply = session.beside(f"{exchange.number}-{exchange.reply}").name
    same = " The same file as before, to the last byte." if sent.again else ""
    owner.say(
        [
            f"Wrote {sent.path}",
            f"  {sent.n_bytes:,} bytes, sealed for '{analyst}'.{same}",
            f"  SHA-256 {sent.digest}",
            *(["  It is made of the table as that was then."] if sent.again else ()),
            f"Next: take it to '{analyst}'. When its answer has come, type:",
            f"  cobasis accept {session.path.name} {stem_of(session.path)}.news {reply}",
        ],
        **about(session, command="send"),
        exchange=exchange.number,
        message=exchange.message,
        sha256=sent.digest,
        warnings=warnings,
        **picked(sent, "path", "n_bytes", "again"),
    )


def _in_words(ready: Ready) -> Iterator[str]:
    preview, exchange, reader = ready.preview, ready.exchange, ready.session.analyst
    n_exchanges, yet = len(ready.session.exchanges), "Nothing has left yet."
    if exchange.rows and (made := ready.session.history(exchange.sent_as)):
        yet = f"One was made on {made[-1].time} already: this is only how the table would look."
    yield from wrapped(f"Exchange {exchange.number} of {n_exchanges}: {exchange.message}. {yet}")
    yield f"What leaves, {preview.n_bytes:,} bytes as {preview.precision}:"
    for each in preview.leaves:
        yield from wrapped(each, lead="  - ")
    yield f"Who can read it: '{reader.name}' alone, fingerprint:"
    yield f"  {reader.fingerprint}"
    yield "What stays here:"
    for each in preview.stays:
        yield from wrapped(each, lead="  - ")
    mapping = ready.session.round.mapping()
    for each in mapping.in_words() if mapping.root else ():
        yield from wrapped(f"Your column {each}")
    if exchange.rows:  # which go through the basis
        yield f"The basis: {_SPANS[ready.choice.span]}"
    if exchange.rows or exchange.masked:
        yield from wrapped(f"The guarantee: {preview.guarantee}")
    for each in preview.warnings:
        yield from wrapped(f"Note: {each}.")


_SPANS = {
    "fresh": "a new one",
    "kept": "the stored one, which these rows went through before",
    "forced": "a second one for rows that were uploaded before, for which two have to answer",
}
