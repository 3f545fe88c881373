"""``cobasis party``: what a party does in a round, up to its upload."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli import party_in, party_out
from cobasis.cli.options import (
    Agreed,
    AsJson,
    Home,
    Name,
    PassphraseFile,
    Yes,
    consent,
    passphrase_from,
    progress,
    say,
)

if TYPE_CHECKING:
    from cobasis.cli.answers import CheckAnswer, SentAnswer
    from cobasis.party_side.checking import Findings
    from cobasis.party_side.desk import PartyDesk
    from cobasis.party_side.readying import Dry, Ready
    from cobasis.party_side.sending import Sent

app = typer.Typer(help="A party's side of a round.", no_args_is_help=True)

Data = Annotated[Path, typer.Argument(metavar="DATA", help="The party's table, CSV or Parquet.")]
Out = Annotated[Path, typer.Option("-o", "--out", help="The sealed file.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would leave.")]
Public = Annotated[
    Path | None, typer.Option(help="Table of public rows, where the agreement names some.")
]


@app.command()
def join(
    agreement: Agreed,
    secret: Annotated[Path, typer.Argument(metavar="SECRET", help="As it was sent.")],
    home: Home = None,
    name: Name = None,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Check the consortium secret against the agreement, and keep it in the vault.

    Example: cobasis party join icu.toml north.secret
    """
    from cobasis.cli.answers import JoinAnswer
    from cobasis.party_side import joining
    from cobasis.party_side.desk import open_desk

    desk = open_desk(agreement, home=home, name=name, passphrase=passphrase_from(passphrase_file))
    maker = joining.join(desk, secret)
    say(
        JoinAnswer(
            command="party join",
            round=desk.agreement.round_id,
            party=desk.name,
            secret_from=maker,
        ),
        as_json=as_json,
        lines=[
            f"'{desk.name}' has joined round '{desk.agreement.round_id}'.",
            f"The secret that '{maker}' made is the agreement's, and is kept in the vault.",
        ],
    )


@app.command()
def check(
    agreement: Agreed,
    data: Data,
    home: Home = None,
    name: Name = None,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Hold a table against the agreement: columns, types, words, ranges, empty cells, rows.

    Nothing leaves, and nothing is uploaded; the agreement need not be signed yet.

    Example: cobasis party check icu.toml data.csv
    """
    from cobasis.party_side import checking
    from cobasis.party_side.desk import open_desk

    desk = open_desk(
        agreement,
        home=home,
        name=name,
        passphrase=passphrase_from(passphrase_file),
        sealed=False,
    )
    with progress() as report:
        found = checking.check(desk, data, report=report)
    kind = {True: "refused", False: "told"}
    lines = [f"{kind[each.refused]:>7}: {each.text}" for each in found.findings]
    lines += [f"refused: {each}" for each in found.problems]
    verdict = "fits the agreement" if found.fits else "does not fit the agreement"
    lines.append(f"The table of {found.n_rows:,} rows {verdict}.")
    say(_checked(desk, found), as_json=as_json, lines=lines)
    if not found.fits:
        raise typer.Exit(2)


def _checked(desk: "PartyDesk", found: "Findings") -> "CheckAnswer":
    """Return the answer about a table."""
    from cobasis.cli.answers import CheckAnswer, ColumnAnswer

    return CheckAnswer(
        command="party check",
        round=desk.agreement.round_id,
        party=desk.name,
        fits=found.fits,
        n_rows=found.n_rows,
        n_held=found.n_held,
        findings=[
            ColumnAnswer(
                column=each.column,
                problem=each.problem,
                refused=each.refused,
                n_rows=each.n_rows,
                text=each.text,
            )
            for each in found.findings
        ],
        problems=list(found.problems),
    )


@app.command()
def propose(
    agreement: Agreed,
    data: Data,
    out: Out,
    public_rows: Public = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    home: Home = None,
    name: Name = None,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Make the proposal of a span, where the agreement's basis is a consensus.

    Example: cobasis party propose icu.toml data.csv -o north.span
    """
    from cobasis.party_side import sending
    from cobasis.party_side.desk import open_desk
    from cobasis.party_side.making import read_public_rows
    from cobasis.party_side.readying import make_ready

    desk = open_desk(agreement, home=home, name=name, passphrase=passphrase_from(passphrase_file))
    with progress() as report:
        ready = make_ready(desk, data, report=report, proposing=True)
    if _only_shown(ready, "party propose", dry_run=dry_run, yes=yes, as_json=as_json):
        return
    public = None if public_rows is None else read_public_rows(desk, public_rows)
    with progress() as report:
        sent = sending.propose(ready, out, public_rows=public, report=report)
    say(
        _sent(ready, sent, "party propose"),
        as_json=as_json,
        lines=[f"Wrote {out} ({sent.n_bytes:,} bytes), sealed for '{desk.analyst.name}'."],
    )


@app.command()
def prepare(
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
    home: Home = None,
    name: Name = None,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Make the party's one upload: say what would leave, ask, then sign and seal it.

    Example: cobasis party prepare icu.toml data.csv -o north.upload
    """
    from cobasis.party_side import sending
    from cobasis.party_side.desk import open_desk
    from cobasis.party_side.making import read_public_rows
    from cobasis.party_side.readying import make_ready
    from cobasis.vault.spans import Forced

    desk = open_desk(agreement, home=home, name=name, passphrase=passphrase_from(passphrase_file))
    forced = Forced(reason=reason, by=desk.name) if force else None
    with progress() as report:
        ready = make_ready(desk, data, forced=forced, report=report)
    if _only_shown(ready, "party prepare", dry_run=dry_run, yes=yes, as_json=as_json):
        return
    public = None if public_rows is None else read_public_rows(desk, public_rows)
    with progress() as report:
        sent = sending.prepare(ready, out, public_rows=public, report=report)
    again = " The numbers in it are those of the file that was made before." if sent.again else ""
    say(
        _sent(ready, sent, "party prepare"),
        as_json=as_json,
        lines=[
            f"Wrote {out} ({sent.n_bytes:,} bytes), sealed for '{desk.analyst.name}'.{again}",
            f"Its SHA-256, which the receipt will name: {sent.digest}",
        ],
    )


def _only_shown(ready: "Ready", command: str, *, dry_run: bool, yes: bool, as_json: bool) -> bool:
    """Say what would leave, then ask; whether that is all there was to do."""
    from cobasis.cli.answers import DryAnswer

    dry = ready.dry
    if dry_run and as_json:
        fields = vars(dry) | {"leaves": list(dry.leaves), "stays": list(dry.stays)}
        fields |= {"warnings": list(dry.warnings)}
        told = {name: fields[name] for name in DryAnswer.model_fields if name in fields}
        answer = DryAnswer(
            command=command,
            round=ready.desk.agreement.round_id,
            party=ready.desk.name,
            **told,
        )
        say(answer, as_json=True, lines=())
        return True
    for line in _in_words(dry):
        typer.echo(line, err=as_json)
    if not dry_run:
        consent("Make the sealed file?", yes=yes, what="the sealed file")
    return dry_run


def _in_words(dry: "Dry") -> list[str]:
    """Return the dry run for people."""
    spans = {
        "fresh": "a new one",
        "kept": "the stored one, which these rows went through before",
        "forced": "a new one, forced though rows were uploaded before",
    }
    return [
        f"What leaves, {dry.n_bytes:,} bytes as {dry.precision} before compression:",
        *(f"  - {each}" for each in dry.leaves),
        f"Who can read it: '{dry.reader}' alone (fingerprint {dry.fingerprint})",
        "What stays here:",
        *(f"  - {each}" for each in dry.stays),
        f"The basis: {spans[dry.span]}",
        *(f"Note: {each}." for each in dry.warnings),
    ]


def _sent(ready: "Ready", sent: "Sent", command: str) -> "SentAnswer":
    """Return the answer about a sealed file."""
    from cobasis.cli.answers import SentAnswer

    return SentAnswer(
        command=command,
        round=ready.desk.agreement.round_id,
        party=ready.desk.name,
        path=str(sent.path),
        sha256=sent.digest,
        n_bytes=sent.n_bytes,
        again=sent.again,
        warnings=list(ready.dry.warnings),
    )


party_in.register(app)
party_out.register(app)
