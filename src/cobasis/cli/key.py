"""``cobasis key new``: make a key, and write its public half."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import Owner, owned
from cobasis.errors import DiskError, IdentityError

if TYPE_CHECKING:
    from cobasis.keys.identity import Identity
    from cobasis.protocol.enrolment import Role

app = typer.Typer(help="Keys: who somebody is.", no_args_is_help=True)

Whose = Annotated[str, typer.Argument(metavar="NAME", help="As the agreement will call its owner.")]


@app.callback()
def _group() -> None:
    """Keep this a group, though it has one command."""


@app.command()
@owned
def new(
    owner: Owner,
    name: Whose,
    analyst: Annotated[bool, typer.Option("--analyst", help="For a round's analyst.")] = False,
) -> None:
    """Make a key that signs and unseals: one file, encrypted with a passphrase, mode 0600.

    Its public half is written here, as NAME.pub. Typed again, it writes that file again. Nothing
    recovers a lost key or passphrase: keep a copy of both, apart from each other.

    Example: cobasis key new north
    """
    from cobasis.cli.answers import KeyAnswer
    from cobasis.disk.whole import write_whole

    path, to = owner.key(name), Path(f"{name}.pub")
    role: Role = "analyst" if analyst else "party"
    made_now, other = not path.exists(), to.exists()
    if not made_now:
        public = _found(owner, name, role).public
        other = other and to.read_text(encoding="utf-8") != public.text()
    if other:
        whose = "that would be made. Nothing was made" if made_now else f"'{path}'"
        raise DiskError(
            f"'{to}' exists, and is not of the key {whose}. Move it away, or type this in another "
            "folder."
        )
    if made_now:
        public = _made(owner, name, role).public
    write_whole(to, public.text().encode(), mode=0o644)
    answer = KeyAnswer.of(public, command="key new", round=None, path=str(to))
    owner.say(
        answer,
        lines=[
            f"Made {path}" if made_now else f"{path} was there, and is as it was",
            f"Wrote {to}, the public half, of {'an analyst' if analyst else 'a party'}",
            f"Fingerprint: {public.fingerprint}",
            f"Next: send {to} to the party that makes the agreement, and read the",
            "fingerprint to them over the telephone",
        ],
    )


def _made(owner: Owner, name: str, role: "Role") -> "Identity":
    """Make a key and keep it."""
    from cobasis.keys.at_rest import save_identity
    from cobasis.keys.identity import Identity

    made = Identity.new(name, role=role)
    save_identity(made, owner.key(name), passphrase=owner.passphrase(new=True))
    return made


def _found(owner: Owner, name: str, role: "Role") -> "Identity":
    """Open the key that is there, if it is for this role."""
    found = owner.identity(name)
    if found.public.role != role:
        raise IdentityError(
            f"the key of '{name}' is there, and its role is {found.public.role}, not {role}. A key "
            "has one role, and is never written over. Choose another name for the other."
        )
    return found
