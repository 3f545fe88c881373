"""``cobasis key``: make a key, and show its public half."""

from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import AsJson, Home, PassphraseFile, passphrase_from, say

if TYPE_CHECKING:
    from cobasis.keys.identity import Identity

app = typer.Typer(help="Keys: who somebody is.", no_args_is_help=True)

Whose = Annotated[str, typer.Argument(metavar="NAME", help="As the agreement will call its owner.")]


@app.command()
def new(
    name: Whose, home: Home = None, passphrase_file: PassphraseFile = None, as_json: AsJson = False
) -> None:
    """Make a key that signs and unseals: one file, encrypted with a passphrase, mode 0600.

    Nothing recovers a lost key or passphrase: keep a copy of both, apart from each other.

    Example: cobasis key new north
    """
    from cobasis.keys.at_rest import save_identity
    from cobasis.keys.home import home as home_folder
    from cobasis.keys.home import key_path
    from cobasis.keys.identity import Identity

    path = key_path(home_folder(home), name)
    made = Identity.new(name)
    save_identity(made, path, passphrase=passphrase_from(passphrase_file, new=True)())
    _show(
        made,
        command="key new",
        as_json=as_json,
        lines=[
            f"Made {path}.",
            f"Fingerprint {made.public.fingerprint}: read it out to whoever enrols you.",
            f"Next: cobasis key show {name} > {name}.pub",
        ],
    )


@app.command()
def show(
    name: Whose, home: Home = None, passphrase_file: PassphraseFile = None, as_json: AsJson = False
) -> None:
    """Print the public half of a key, for the agreement.

    Example: cobasis key show north > north.pub
    """
    from cobasis.keys.at_rest import load_identity
    from cobasis.keys.home import home as home_folder
    from cobasis.keys.home import key_path

    path = key_path(home_folder(home), name)
    found = load_identity(path, passphrase=passphrase_from(passphrase_file)())
    text = found.public.text().rstrip("\n")
    _show(found, command="key show", as_json=as_json, lines=[text])


def _show(identity: "Identity", *, command: str, as_json: bool, lines: list[str]) -> None:
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
    say(answer, as_json=as_json, lines=lines)
