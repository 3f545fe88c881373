"""``cobasis party``: what a party does in a round; the steps stand in the files beside this."""

from pathlib import Path
from typing import Annotated

import typer

from cobasis.cli import party_audit, party_in, party_out, party_send
from cobasis.cli.options import Agreed, Owner, owned, progress
from cobasis.cli.party_audit import Data

app = typer.Typer(help="A party's side of a round.", no_args_is_help=True)


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
    from cobasis.party_side.secret import join as keep

    desk = owner.party(agreement)
    maker = keep(desk, secret)
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
    from cobasis.party_side import rows

    desk = owner.party(agreement, sealed=False)
    with progress() as report:
        found = rows.check(desk, data, report=report)
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


for _command in (
    party_send.propose,
    party_in.adopt,
    party_audit.audit,
    party_send.prepare,
    party_in.receipt,
    party_in.accept,
    party_out.predict,
    party_out.export,
    party_out.forget,
):
    app.command()(_command)
