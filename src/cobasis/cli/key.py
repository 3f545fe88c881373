"""``cobasis key new``: make a key, and write its public half."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from cobasis.cli.options import Owner, grouped
from cobasis.cli.words import PERSON, picked
from cobasis.disk.whole import write_whole
from cobasis.errors import DiskError, IdentityError, OptionError
from cobasis.keys.identity import Identity, save_identity
from cobasis.protocol.enrolment import Role

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def key() -> None:
    """Make the key that says who somebody is."""


@app.command()
@grouped
def new(
    owner: Owner,
    name: Annotated[str, Argument(metavar="NAME", help="As the agreement will call its owner.")],
    analyst: Annotated[bool, Option("--analyst", help="For a round's analyst.")] = False,
    approver: Annotated[
        bool, Option("--approver", help="For an officer, who approves a party's files.")
    ] = False,
) -> None:
    """Make a key that signs and unseals: one file, encrypted with a passphrase, mode 0600.

    Its public half is written here, as NAME.pub. Typed again, it writes that file again. Nothing
    recovers a lost key or passphrase: keep a copy of both, apart from each other.

    Example: cobasis key new north
    """
    path, to = owner.key(name), Path(f"{name}.pub")
    role = _role(analyst=analyst, approver=approver)
    identity = owner.identity(name) if path.exists() else None
    if identity is not None and identity.public.role != role:
        raise IdentityError(
            f"the key of '{name}' is there, and its role is {identity.public.role}, not {role}. A "
            "key has one role, and is never written over. Choose another name for the other."
        )
    there = to.read_text(encoding="utf-8") if to.exists() else None
    if there is not None and (identity is None or there != identity.public.text()):
        whose = "that would be made. Nothing was made" if identity is None else f"'{path}'"
        raise DiskError(
            f"'{to}' exists, and is not of the key {whose}. Move it away, or type this in another "
            "folder."
        )
    lead = f"{path} was there, and is as it was"
    if identity is None:
        identity, lead = Identity.new(name, role=role), f"Made {path}"
        save_identity(identity, path, passphrase=owner.passphrase(new=True))
    public = identity.public
    write_whole(to, public.text().encode(), mode=0o644)
    told = {"command": "key new", "round": None, "path": to, **picked(public, *PERSON)}
    owner.say(
        [
            lead,
            f"Wrote {to}, the public half, of {'a party' if role == 'party' else f'an {role}'}",
            "Fingerprint, to be read over the telephone to the agreement's author:",
            f"  {public.fingerprint}",
            f"Next: send {to} to that author, the party that makes the agreement",
        ],
        **told,
    )


def _role(*, analyst: bool, approver: bool) -> Role:
    """Return the one role that a key has."""
    if analyst and approver:
        raise OptionError("a key has one role: give --analyst or --approver, not both.")
    return "analyst" if analyst else "approver" if approver else "party"
