"""``cobasis send``: what leaves a party, said, audited and asked for before it does."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.audit import Public, Sensitive, in_words
from cobasis.cli.options import (
    Owner,
    Yes,
    agreed,
    ask_name,
    consent,
    owned,
    progress,
    the_one,
    wrapped,
)

if TYPE_CHECKING:
    from cobasis.party_side.preview import Ready
    from cobasis.party_side.rows import Findings
    from cobasis.party_side.send import Allow, Projected, Sent
    from cobasis.party_side.session import PartySession
    from cobasis.vault import Forced

Out = Annotated[
    Path | None,
    typer.Option("-o", "--out", help="The sealed file; else icu.NAME.1-upload, and so on."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only say what would leave, or what does not fit.")
]
Again = Annotated[
    bool, typer.Option("--again", help="Write the file that was sent last once more.")
]
SignedBy = Annotated[
    list[str] | None,
    typer.Option("--signed-by", help="Who signs for the audit; may be given again."),
]
OverrideBy = Annotated[
    list[str] | None,
    typer.Option("--override-by", help="One of two people who answer for what is blocked."),
]
OverrideReason = Annotated[
    str, typer.Option(help="Why it leaves all the same; stays in the transcript.")
]


@owned
def send(
    owner: Owner,
    words: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[AGREEMENT] DATA", help="The party's table, CSV or Parquet."),
    ] = None,
    out: Out = None,
    dry_run: DryRun = False,
    again: Again = False,
    public_rows: Public = None,
    sensitive: Sensitive = None,
    signed_by: SignedBy = None,
    override_by: OverrideBy = None,
    override_reason: OverrideReason = "",
    yes: Yes = False,
) -> None:
    """Make the next file for the analyst: check, audit, say what leaves, ask, sign and seal it.

    A round with a consensus takes a proposal first, and the upload once its span was accepted.

    Example: cobasis send icu.toml data.csv --signed-by "Dr N. Officer"
    """
    from cobasis.party_side import send as sending
    from cobasis.vault import Forced

    agreement, rest = agreed(words or [])
    data = None if again else the_one(rest, what="a table, CSV or Parquet")
    override = None
    if override_by or override_reason:
        override = Forced(reason=override_reason, by=tuple(override_by or ()))
    session = owner.party(agreement, sealed=not dry_run)
    if data is None:
        _say_sent(owner, session, sending.send_again(session, out))
    elif dry_run:
        _say_dry(owner, session, data)
    elif (sent := sending.finish(session, out)) is not None:
        _say_sent(owner, session, sent)
    else:
        asked = Asked(owner, yes, tuple(signed_by or ()), tuple(sensitive or ()), override)
        ready = _ready(asked, session, data, public_rows)
        with ExitStack() as shown:
            report = shown.enter_context(progress())
            allow = asked.about_audit(shown.close)  # a question would stand among the bars
            sent = sending.send(ready, out, allow=allow, report=report)
        _say_sent(owner, session, sent, warnings=ready.preview.warnings)


@dataclass(frozen=True)
class Asked:
    """How somebody is asked before anything leaves, and what was answered beforehand."""

    owner: Owner
    yes: bool
    signed_by: tuple[str, ...]
    sensitive: tuple[str, ...]
    override: "Forced | None"

    def consent(self) -> None:
        """Ask whether the file may be made."""
        consent("Make the sealed file?", yes=self.yes, what="the sealed file")

    def about_audit(self, before: Callable[[], None]) -> "Allow":
        """Return what happens between writing an upload and sealing it; `before` ends the bars."""
        from cobasis.party_side.audit import (
            Approval,
            Question,
            approve,
            audited,
            require_approval,
        )

        def allow(made: "Projected") -> dict[str, str]:
            found = audited(made, question=Question(sensitive=self.sensitive, compared=False))
            before()
            for line in in_words(found):
                self.owner.tell(line)
            names, stopped = self.signed_by, found.report.blocking and self.override is None
            if found.report.to_sign and not names and not stopped:
                names = ask_name("Who signs for this")
            approval = Approval(signed_by=names, override=self.override)
            require_approval(made.ready.session, found, approval=approval)
            self.consent()
            return approve(made.ready.session, found, approval=approval)

        return allow


def _ready(asked: Asked, session: "PartySession", data: Path, public_rows: Path | None) -> "Ready":
    """Make a table ready for the next file, say what would leave, and ask about a proposal."""
    from cobasis.party_side.preview import make_ready
    from cobasis.party_side.rows import check
    from cobasis.party_side.send import require_turn, take_secret

    owner = asked.owner
    maker = take_secret(session)
    if maker is not None:
        owner.tell(f"The secret that '{maker}' made is the agreement's, and is kept in the vault.")
    require_turn(session)
    with progress() as report:
        found = check(session, data, report=report)
    ready = make_ready(session, found, forced=asked.override, public_rows=public_rows)
    for line in _in_words(ready):
        owner.tell(line)
    if ready.exchange.message == "proposal":
        asked.consent()
    return ready


def _say_dry(owner: Owner, session: "PartySession", data: Path) -> None:
    """Say what would leave, or all that does not fit."""
    from cobasis.cli.answers import DryAnswer
    from cobasis.party_side.preview import make_ready
    from cobasis.party_side.rows import check
    from cobasis.party_side.session import upcoming

    with progress() as report:
        found = check(session, data, report=report)
    ready = make_ready(session, found, looking=True) if found.fits else None
    exchange = upcoming(session)
    answer = DryAnswer.by(
        session,
        found,
        command="send",
        exchange=exchange.number,
        message=exchange.message,
        problems=[str(each.args[0]) for each in found.problems],
        preview=None if ready is None else ready.preview,
    )
    lines = [*_checked(found), *(() if ready is None else _in_words(ready))]
    owner.say(answer, lines=lines)
    found.opened(session.agreement)  # raises where it does not fit


def _checked(found: "Findings") -> Iterator[str]:
    """Yield what was found in the table, for people."""
    for each in found.findings:
        yield from wrapped(each.text, lead="refused: " if each.refused else "   told: ")
    for problem in found.problems:
        yield from wrapped(str(problem.args[0]), lead="refused: ")
    verdict = "fits the agreement" if found.fits else "does not fit the agreement"
    yield f"The table of {found.n_rows:,} rows {verdict}."


def _say_sent(
    owner: Owner, session: "PartySession", sent: "Sent", *, warnings: tuple[str, ...] = ()
) -> None:
    """Say what was made, and what comes next."""
    from cobasis.bundle.agreement_file import stem_of
    from cobasis.cli.answers import SendAnswer

    exchange, analyst = sent.exchange, session.analyst.name
    answer = SendAnswer.by(
        session,
        sent,
        command="send",
        exchange=exchange.number,
        message=exchange.message,
        path=str(sent.path),
        sha256=sent.digest,
        warnings=warnings,
    )
    reply = session.beside(f"{exchange.number}-{exchange.reply}").name
    news = f"{stem_of(session.path)}.news"
    same = "The same file as before, to the last byte." if sent.again else ""
    owner.say(
        answer,
        lines=[
            f"Wrote {sent.path}",
            f"  {sent.n_bytes:,} bytes, sealed for '{analyst}'. {same}".rstrip(),
            f"  SHA-256 {sent.digest}",
            f"Next: take it to '{analyst}'. When its answer has come, type:",
            f"  cobasis accept {session.path.name} {news} {reply}",
        ],
    )


def _in_words(ready: "Ready") -> Iterator[str]:
    """Yield what would leave, for people."""
    from cobasis.protocol.agreement import exchanges

    preview, exchange = ready.preview, ready.exchange
    n_exchanges = len(exchanges(ready.session.agreement))
    yield f"Exchange {exchange.number} of {n_exchanges}: {exchange.message}. Nothing has left yet."
    yield f"What leaves, {preview.n_bytes:,} bytes as {preview.precision} before compression:"
    for each in preview.leaves:
        yield from wrapped(each, lead="  - ")
    yield f"Who can read it: '{preview.reader}' alone, fingerprint {preview.fingerprint}"
    yield "What stays here:"
    for each in preview.stays:
        yield from wrapped(each, lead="  - ")
    if exchange.message == "upload":  # a proposal comes before the basis
        yield f"The basis: {_SPANS[preview.span]}"
        yield from wrapped(f"The guarantee: {preview.guarantee}")
    for each in preview.warnings:
        yield from wrapped(f"Note: {each}.")


_SPANS = {
    "fresh": "a new one",
    "kept": "the stored one, which these rows went through before",
    "forced": "a new one, forced though rows were uploaded before",
}
