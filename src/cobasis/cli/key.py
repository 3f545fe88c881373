"""``cobasis key``: make a key, and show its public half."""

from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import Owner, owned

if TYPE_CHECKING:
    from cobasis.keys.identity import Identity

app = typer.Typer(help="Keys: who somebody is.", no_args_is_help=True)

Whose = Annotated[str, typer.Argument(metavar="NAME", help="As the agreement will call its owner.")]


@app.command()
@owned
def new(owner: Owner, name: Whose) -> None:
    """Make a key that signs and unseals: one file, encrypted with a passphrase, mode 0600.

    Nothing recovers a lost key or passphrase: keep a copy of both, apart from each other.

    Example: cobasis key new north
    """
    from cobasis.keys.at_rest import save_identity
    from cobasis.keys.identity import Identity

    path = owner.key(name)
    made = Identity.new(name)
    save_identity(made, path, passphrase=owner.passphrase(new=True))
    _show(
        owner,
        made,
        command="key new",
        lines=[
            f"Made {path}.",
            f"Fingerprint {made.public.fingerprint}: read it out to whoever enrols you.",
            f"Next: cobasis key show {name} > {name}.pub",
        ],
    )


@app.command()
@owned
def show(owner: Owner, name: Whose) -> None:
    """Print the public half of a key, for the agreement.

    Example: cobasis key show north > north.pub
    """
    found = owner.identity(name)
    text = found.public.text().rstrip("\n")
    _show(owner, found, command="key show", lines=[text])


def _show(owner: Owner, identity: "Identity", *, command: str, lines: list[str]) -> None:
    """Print an identity's public half."""
    from cobasis.cli.answers import KeyAnswer

    public = identity.public
    answer = KeyAnswer(
        command=command,
        round=None,
        name=public.name,
        fingerprint=public.fingerprint,
        identity=public.text(),
    )
    owner.say(answer, lines=lines)
