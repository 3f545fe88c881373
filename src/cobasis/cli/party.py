"""``cobasis party``: what a party does in a round, up to its upload."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli import party_in, party_out
from cobasis.cli.options import Agreed, Owner, Yes, consent, owned, progress

if TYPE_CHECKING:
    from cobasis.party_side.readying import Dry, Ready

app = typer.Typer(help="A party's side of a round.", no_args_is_help=True)

Data = Annotated[Path, typer.Argument(metavar="DATA", help="The party's table, CSV or Parquet.")]
Out = Annotated[Path, typer.Option("-o", "--out", help="The sealed file.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would leave.")]
Public = Annotated[
    Path | None, typer.Option(help="Table of public rows, where the agreement names some.")
]


@app.command()
@owned
def join(
    owner: Owner,
    agreement: Agreed,
    secret: Annotated[Path, typer.Argument(metavar="SECRET", help="As it was sent.")],
) -> None:
    """Check the consortium secret against the agreement, and keep it in the vault.

    Example: cobasis party join icu.toml north.secret
    """
    from cobasis.cli.answers import JoinAnswer
    from cobasis.party_side import joining

    desk = owner.party(agreement)
    maker = joining.join(desk, secret)
    owner.say(
        JoinAnswer(
            command="party join",
            round=desk.agreement.round_id,
            party=desk.name,
            secret_from=maker,
        ),
        lines=[
            f"'{desk.name}' has joined round '{desk.agreement.round_id}'.",
            f"The secret that '{maker}' made is the agreement's, and is kept in the vault.",
        ],
    )


@app.command()
@owned
def check(
    owner: Owner,
    agreement: Agreed,
    data: Data,
) -> None:
    """Hold a table against the agreement: columns, types, words, ranges, empty cells, rows.

    Nothing leaves, and nothing is uploaded; the agreement need not be signed yet.

    Example: cobasis party check icu.toml data.csv
    """
    from cobasis.cli.answers import CheckAnswer, ColumnAnswer
    from cobasis.party_side import checking

    desk = owner.party(agreement, sealed=False)
    with progress() as report:
        found = checking.check(desk, data, report=report)
    kind = {True: "refused", False: "told"}
    lines = [f"{kind[each.refused]:>7}: {each.text}" for each in found.findings]
    lines += [f"refused: {each}" for each in found.problems]
    verdict = "fits the agreement" if found.fits else "does not fit the agreement"
    lines.append(f"The table of {found.n_rows:,} rows {verdict}.")
    answer = CheckAnswer.of(
        found,
        command="party check",
        round=desk.agreement.round_id,
        party=desk.name,
        findings=[ColumnAnswer.of(each) for each in found.findings],
    )
    owner.say(answer, lines=lines)
    if not found.fits:
        raise typer.Exit(2)


@app.command()
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
    from cobasis.party_side.readying import make_ready

    desk = owner.party(agreement)
    with progress() as report:
        ready = make_ready(desk, data, report=report, proposing=True)
    _send(owner, ready, out=out, public=public_rows, dry_run=dry_run, yes=yes, proposing=True)


@app.command()
@owned
def prepare(
    owner: Owner,
    agreement: Agreed,
    data: Data,
    out: Out,
    public_rows: Public = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    force: Annotated[
        bool, typer.Option("--force", help="Show rows through a second basis; needs --reason.")
    ] = False,
    reason: Annotated[
        str, typer.Option(help="Why, and who answers for it; stays in the history.")
    ] = "",
) -> None:
    """Make the party's one upload: say what would leave, ask, then sign and seal it.

    Example: cobasis party prepare icu.toml data.csv -o north.upload
    """
    from cobasis.party_side.readying import make_ready
    from cobasis.vault.spans import Forced

    desk = owner.party(agreement)
    forced = Forced(reason=reason, by=desk.name) if force else None
    with progress() as report:
        ready = make_ready(desk, data, forced=forced, report=report)
    _send(owner, ready, out=out, public=public_rows, dry_run=dry_run, yes=yes)


def _send(
    owner: Owner,
    ready: "Ready",
    *,
    out: Path,
    public: Path | None,
    dry_run: bool,
    yes: bool,
    proposing: bool = False,
) -> None:
    """Say what would leave, ask, make the sealed file, and say what was made."""
    from cobasis.cli.answers import DryAnswer, SentAnswer
    from cobasis.party_side import sending
    from cobasis.party_side.making import read_public_rows

    dry, desk = ready.dry, ready.desk
    about = {
        "command": "party propose" if proposing else "party prepare",
        "round": desk.agreement.round_id,
        "party": desk.name,
    }
    if dry_run and owner.as_json:
        owner.say(DryAnswer.of(dry, dry_run=True, **about), lines=())
        return
    for line in _in_words(dry, proposing=proposing):
        typer.echo(line, err=owner.as_json)
    if dry_run:
        return
    consent("Make the sealed file?", yes=yes, what="the sealed file")
    rows = None if public is None else read_public_rows(desk, public)
    make = sending.propose if proposing else sending.prepare
    with progress() as report:
        sent = make(ready, out, public_rows=rows, report=report)
    lines = [f"Wrote {out} ({sent.n_bytes:,} bytes), sealed for '{desk.analyst.name}'."]
    if not proposing:
        lines[0] += " The numbers in it are those of the file that was made before." * sent.again
        lines.append(f"Its SHA-256, which the receipt will name: {sent.digest}")
    answer = SentAnswer.of(
        sent, path=str(sent.path), sha256=sent.digest, warnings=dry.warnings, **about
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
        *(f"Note: {each}." for each in dry.warnings),
    ]


party_in.register(app)
party_out.register(app)
