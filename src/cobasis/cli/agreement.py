"""``cobasis agreement``: written, enrolled, signed by everybody, sealed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.agreement_new import new
from cobasis.cli.agreement_state import show_state
from cobasis.cli.options import Agreed, AsJson, Owner, owned
from cobasis.errors import IdentityError

if TYPE_CHECKING:
    from cobasis.protocol.agreement import Agreement
    from cobasis.protocol.enrolment import PublicIdentity

app = typer.Typer(help="The agreement that everybody signs.", no_args_is_help=True)
app.command()(new)


@app.command()
def enrol(
    agreement: Agreed,
    party: Annotated[
        list[Path] | None, typer.Option("--party", help="What `key show` printed; repeat.")
    ] = None,
    analyst: Annotated[Path | None, typer.Option(help="The analyst's .pub file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write parties and the analyst into the agreement; a known name gets its new key.

    Compare every fingerprint with its owner, over the telephone.

    Example: cobasis agreement enrol icu.toml --party north.pub --analyst lab.pub
    """
    from cobasis.bundle import agreement_file

    agreement_file.enrol(
        agreement,
        parties=[_identity(path) for path in party or []],
        analyst=None if analyst is None else _identity(analyst),
    )
    show_state(agreement, command="agreement enrol", as_json=as_json)


def _identity(path: Path) -> "PublicIdentity":
    from cobasis.bundle.agreement_reading import text_of
    from cobasis.protocol.enrolment import PublicIdentity

    return PublicIdentity.from_text(text_of(path))


@app.command()
@owned
def sign(
    owner: Owner,
    agreement: Agreed,
    out: Annotated[Path, typer.Option("-o", "--out", help="The signature, to be sent.")],
) -> None:
    """Sign the agreement as it stands; read it first.

    Example: cobasis agreement sign icu.toml --as north -o north.sig
    """
    from cobasis.bundle.agreement_file import read_agreement
    from cobasis.cli.analyst_answers import SignAnswer
    from cobasis.disk.whole import write_whole
    from cobasis.keys.at_rest import home
    from cobasis.protocol.signatures import sign_agreement

    found = read_agreement(agreement).agreement
    who = _signer(found, home(owner.home), owner.name)
    made = sign_agreement(found, name=who, sign=owner.identity(who).sign)
    write_whole(out, made.text().encode())
    owner.say(
        SignAnswer(
            command="agreement sign",
            round=found.round_id,
            name=who,
            digest=made.agreement,
            path=str(out),
        ),
        lines=[
            f"'{who}' signed round '{found.round_id}' ({made.agreement}).",
            f"Send {out} to whoever seals the agreement.",
        ],
    )


def _signer(agreement: "Agreement", home: Path, name: str | None) -> str:
    """Return whose key signs: the one that is named, or the only one here that is enrolled."""
    from cobasis.keys.at_rest import names
    from cobasis.protocol.signatures import signers

    enrolled = signers(agreement)
    here = [each for each in names(home) if each in enrolled]
    if name is not None:
        return name
    if len(here) == 1:
        return here[0]
    raise IdentityError(
        f"the home folder '{home}' has {len(here)} keys of those who sign round "
        f"'{agreement.round_id}' ({', '.join(enrolled) or 'nobody is enrolled'}). Say whose: --as."
    )


@app.command()
def seal(
    agreement: Agreed,
    signatures: Annotated[list[Path], typer.Argument(metavar="SIG...", help="All signatures.")],
    as_json: AsJson = False,
) -> None:
    """Put everybody's signature into the agreement, or say who is missing.

    Example: cobasis agreement seal icu.toml north.sig south.sig east.sig lab.sig
    """
    from cobasis.bundle import agreement_file
    from cobasis.bundle.agreement_reading import text_of
    from cobasis.protocol.signatures import Signature

    agreement_file.seal(agreement, [Signature.from_text(text_of(path)) for path in signatures])
    show_state(agreement, command="agreement seal", as_json=as_json)


@app.command()
def show(agreement: Agreed, as_json: AsJson = False) -> None:
    """Say how the agreement stands: what is open, who takes part, who has signed.

    Example: cobasis agreement show icu.toml
    """
    show_state(agreement, command="agreement show", as_json=as_json)
