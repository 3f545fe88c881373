"""``cobasis approve``: an officer signs for an audit, or takes that back; also by a button."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from cobasis.bundle.agreement_file import sealed_agreement, stem_of
from cobasis.cli.options import Action, Ask, Owner, Topic, Yes, agreed, consent, grouped, the_one
from cobasis.cli.words import PERSON, audit_in_words, picked, wrapped
from cobasis.disk.whole import write_whole
from cobasis.keys.identity import enrolled_here
from cobasis.models import needing
from cobasis.party_side.approval import approvals, approve_audit, read_audit
from cobasis.party_side.draft import field_of_words
from cobasis.privacy.audit.report import AuditReport
from cobasis.protocol.enrolment import officers_of
from cobasis.protocol.signatures import Approval
from cobasis.report.audit_page import render_audit


@grouped
def approve(
    owner: Owner,
    words: Annotated[
        list[Path], Argument(metavar="[AGREEMENT] AUDIT", help="What audit wrote, a .json file.")
    ],
    name: Annotated[
        str | None, Option("--key", "--as", help="The officer's key; else the one enrolled.")
    ] = None,
    deadline: Annotated[str, Option(help="Until when; else as agreed, or 30 days.")] = "",
    times: Annotated[int, Option(help="How many such files may leave.", min=1, max=1000)] = 1,
    word: Annotated[
        bool, Option("--word", help="Cover a coarse word back on the model, too.")
    ] = False,
    withdraw: Annotated[bool, Option("--withdraw", help="Take the approval back.")] = False,
    yes: Yes = False,
) -> None:
    """Show an audit's verdict and what it was made of, and sign that this file may leave.

    Send takes no approval of other rows, of an audit that was edited, or of better figures.

    Example: cobasis approve icu.toml audit.json --key officer
    """
    path, rest = agreed(words)
    agreement, audit = sealed_agreement(path), the_one(rest, what="what audit wrote, a .json file")
    found = read_audit(audit, agreement)
    party = found.report.about["party"]
    officers = {name: each.public for name, each in officers_of(agreement, party).items()}
    where = f"the approvals of party '{party}'"
    who = enrolled_here(officers, where=where, home=owner.folder(), name=name)
    identity = owner.enrolled(who)
    until = str(field_of_words("deadline", deadline)) if deadline else ""
    made = approve_audit(
        found, agreement, identity=identity, until=until, times=times, withdrawn=withdraw, word=word
    )
    to = path.with_name(f"{stem_of(path)}.{party}.{made.exchange}.{who.name}.approval")
    page = audit.with_suffix(".html")
    owner.tell(_screen(found.report, made))
    question = f"Type the round's name to {'withdraw' if withdraw else 'approve'}"
    consent(question, yes=yes, what=f"'{to}'", word=agreement.round_id)
    write_whole(to, made.text().encode(), mode=0o644)
    shown = render_audit(found, agreement, given=approvals(path, party))
    write_whole(page, shown.encode())
    wrote = [f"Wrote {each}" for each in (to, page)]
    then = "and sends nothing with what was approved" if withdraw else "and sends"
    lines = [*wrote, f"Next: {party} keeps it beside {path.name} {then}"]
    told = {"digest": made.report, "path": to, "again": False, "secret_from": ""}
    told |= {"command": "approve", "round": agreement.round_id, **picked(who, *PERSON)}
    owner.say(lines, **told)


def show(owner: Owner, path: Path, audit: Path) -> None:
    """Show an audit that is kept in a browser, until Ctrl-C, with a button for an officer."""
    with needing("starlette and uvicorn", extra="serve", what="--open"):
        from cobasis.cli.desk import Desk  # noqa: PLC0415 -- an extra
    agreement = sealed_agreement(path)
    asks = (
        Ask("--key", "Officer, else the one whose key is here"),
        Ask("--deadline", "Until when, else as agreed"),
        Ask("--times", "How many such files may leave", value="1"),
        Ask("--word", "Cover a coarse word back on the model, too", "check"),
        Ask("--withdraw", "Take the approval back", "check"),
    )
    files = (f"./{path.name}", str(audit.resolve()))
    options = ("--home", str(owner.folder().resolve()), "--yes")

    def topic() -> Topic:
        kept = read_audit(audit, agreement)
        party = kept.report.about["party"]
        draw = partial(render_audit, kept, agreement, given=approvals(path, party))
        return Topic(
            title=f"Audit of {party}",
            line=kept.report.verdict_words,
            stands=kept.seal,
            folder=path.parent,
            actions={"approve": Action(approve, files, asks, (agreement.round_id,), options)},
            pages={"": lambda at, **_: draw(approve=f"{at}/approve")},
        )

    topic()  # what cannot be shown is refused here
    Desk(lambda: {"audit": topic}, start="audit").open()


def _screen(report: AuditReport, made: Approval) -> Iterator[str]:
    yield from wrapped(
        f"The {made.exchange} of {made.party}, as it was audited on {report.about['time']}."
    )
    yield from audit_in_words(report)
    if made.withdrawn:
        told = f"What may leave no more by your word, whatever you approved: {made.exchange}."
        yield from wrapped(f"{told} What another officer approved still may; what left has left.")
        return
    if made.word:
        yield from wrapped(
            f"{made.party} may say back once whether the model is better there, on how many rows "
            "to the nearest 10, and its accuracy to 5 points."
        )
    yield from wrapped(
        f"What may leave: {made.covers}. The approval is void once a row, a "
        "row that is held back, how columns become numbers, basis, precision, the history of "
        f"uploads, the policy or the software ({report.about['tool_version']}) is another."
    )
