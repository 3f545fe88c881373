"""``cobasis party``: what leaves a party."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import Agreed, Owner, Yes, consent, owned, progress
from cobasis.cli.party_audit import (
    Data,
    OverrideBy,
    OverrideReason,
    Public,
    Sensitive,
    SignedBy,
    asking,
)

if TYPE_CHECKING:
    from cobasis.party_side.preview import Dry, Ready
    from cobasis.party_side.send import Sent

Out = Annotated[Path, typer.Option("-o", "--out", help="The sealed file.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would leave.")]


@owned
def propose(
    owner: Owner,
    agreement: Agreed,
    data: Data,
    out: Out,
    public_rows: Public = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Make the proposal of a span, where the agreement's basis is a consensus.

    Example: cobasis party propose icu.toml data.csv -o north.span
    """
    from cobasis.party_side import send
    from cobasis.party_side.preview import make_ready
    from cobasis.party_side.send import read_public_rows

    desk = owner.party(agreement)
    with progress() as report:
        ready = make_ready(desk, data, report=report, proposing=True)
    if _told(owner, ready, command="party propose", dry_run=dry_run):
        return
    consent("Make the sealed file?", yes=yes, what="the sealed file")
    rows = read_public_rows(desk, public_rows)
    with progress() as report:
        sent = send.propose(ready, out, public_rows=rows, report=report)
    _say_sent(owner, ready, sent, command="party propose")


@owned
def prepare(
    owner: Owner,
    agreement: Agreed,
    data: Data,
    out: Out,
    public_rows: Public = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    sensitive: Sensitive = None,
    signed_by: SignedBy = None,
    override_by: OverrideBy = None,
    override_reason: OverrideReason = "",
) -> None:
    """Make the party's one upload: say what would leave, audit it, ask, then sign and seal it.

    Example: cobasis party prepare icu.toml data.csv -o north.upload --signed-by "Dr N. Officer"
    """
    from cobasis.party_side import send
    from cobasis.party_side.preview import make_ready
    from cobasis.party_side.send import read_public_rows
    from cobasis.vault import Forced

    desk, override = owner.party(agreement), None
    if override_by or override_reason:
        override = Forced(reason=override_reason, by=tuple(override_by or ()))
    with progress() as report:
        ready = make_ready(desk, data, forced=override, report=report)
    if _told(owner, ready, command="party prepare", dry_run=dry_run):
        return
    rows = read_public_rows(desk, public_rows)
    with ExitStack() as shown:
        report = shown.enter_context(progress())
        allow = asking(
            owner,
            yes=yes,
            signed_by=signed_by,
            override=override,
            sensitive=sensitive,
            before=shown.close,  # a question would stand in the display of progress
        )
        sent = send.prepare(ready, out, public_rows=rows, allow=allow, report=report)
    _say_sent(owner, ready, sent, command="party prepare")


def _told(owner: Owner, ready: "Ready", *, command: str, dry_run: bool) -> bool:
    """Say what would leave; return whether that was all."""
    from cobasis.cli.answers import DryAnswer

    dry, desk = ready.dry, ready.desk
    if dry_run and owner.as_json:
        about = {"command": command, "round": desk.agreement.round_id, "party": desk.name}
        owner.say(DryAnswer.of(dry, dry_run=True, **about), lines=())
        return True
    for line in _in_words(dry, proposing=command == "party propose"):
        typer.echo(line, err=owner.as_json)
    return dry_run


def _say_sent(owner: Owner, ready: "Ready", sent: "Sent", *, command: str) -> None:
    """Say what was made."""
    from cobasis.cli.answers import SentAnswer

    desk = ready.desk
    lines = [f"Wrote {sent.path} ({sent.n_bytes:,} bytes), sealed for '{desk.analyst.name}'."]
    if command == "party prepare":
        lines[0] += " The numbers in it are those of the file that was made before." * sent.again
        lines.append(f"Its SHA-256, which the receipt will name: {sent.digest}")
    answer = SentAnswer.of(
        sent,
        command=command,
        round=desk.agreement.round_id,
        party=desk.name,
        path=str(sent.path),
        sha256=sent.digest,
        warnings=ready.dry.warnings,
    )
    owner.say(answer, lines=lines)


def _in_words(dry: "Dry", *, proposing: bool) -> list[str]:
    """Return the dry run for people."""
    spans = {
        "fresh": "a new one",
        "kept": "the stored one, which these rows went through before",
        "forced": "a new one, forced though rows were uploaded before",
    }
    basis = [] if proposing else [f"The basis: {spans[dry.span]}"]  # a proposal comes before it
    return [
        f"What leaves, {dry.n_bytes:,} bytes as {dry.precision} before compression:",
        *(f"  - {each}" for each in dry.leaves),
        f"Who can read it: '{dry.reader}' alone (fingerprint {dry.fingerprint})",
        "What stays here:",
        *(f"  - {each}" for each in dry.stays),
        *basis,
        *([] if proposing else [f"The guarantee: {dry.guarantee}"]),
        *(f"Note: {each}." for each in dry.warnings),
    ]
