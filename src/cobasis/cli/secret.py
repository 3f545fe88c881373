"""``cobasis secret``: the consortium secret, made by one party for all of them."""

from pathlib import Path
from typing import Annotated

import typer

from cobasis.cli.options import Agreed, Owner, owned

app = typer.Typer(help="The consortium secret.", no_args_is_help=True)


@app.command()
@owned
def new(
    owner: Owner,
    agreement: Agreed,
    parties: Annotated[str, typer.Option("--for", help="All enrolled parties: north,south,east.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder; by default the agreement's.")
    ] = None,
) -> None:
    """Draw the secret, seal it to each party, and commit the agreement to it.

    One party does this, after `agreement enrol` and before anybody signs. Send each party its
    file, and nobody else; the analyst must have none.

    Example: cobasis secret new icu.toml --for north,south,east
    """
    from cobasis.cli.analyst_answers import SecretAnswer
    from cobasis.party_side.secret import make_secret

    made = make_secret(
        agreement,
        parties=[each.strip() for each in parties.split(",") if each.strip()],
        home=owner.home,
        name=owner.name,
        passphrase=owner.passphrase,
        to=out,
    )
    files = {path.stem: str(path) for path in made.files}
    owner.say(
        SecretAnswer(
            command="secret new",
            round=made.round_id,
            made_by=made.maker,
            commitment=made.commitment,
            files=files,
        ),
        lines=[
            f"'{made.maker}' made the secret of round '{made.round_id}', sealed for each party:",
            *(f"  {path}" for path in files.values()),
            f"{agreement} is committed to it. Next, everybody: cobasis agreement sign {agreement}",
        ],
    )
