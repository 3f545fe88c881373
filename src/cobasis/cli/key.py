"""``cobasis key``: make a key and write its public half, or have one that was stolen revoked."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from cobasis.bundle.agreement_file import REVOKED, line_in, sealed_agreement, stem_of, text_of
from cobasis.bundle.transcript import now
from cobasis.cli.options import Owner, Yes, agreed, consent, grouped, the_one
from cobasis.cli.words import PERSON, picked, wrapped
from cobasis.disk.whole import write_whole
from cobasis.errors import DiskError, IdentityError, OptionError
from cobasis.keys.identity import Identity, save_identity
from cobasis.protocol.agreement import moment_text
from cobasis.protocol.enrolment import Role
from cobasis.protocol.news import Revocation
from cobasis.protocol.refusals import require_known
from cobasis.protocol.signatures import analyst_of, everybody
from cobasis.vault.records import seal_anew


def key() -> None:
    """Make the key that says who somebody is, or have a stolen one revoked."""


@grouped
def new(
    owner: Owner,
    name: Annotated[str, Argument(metavar="NAME", help="As the agreement will call its owner.")],
    analyst: Annotated[bool, Option("--analyst", help="For a round's analyst.")] = False,
    approver: Annotated[bool, Option("--approver", help="For an officer of a party.")] = False,
    replace: Annotated[bool, Option("--replace", help="A newer key, signed by this one.")] = False,
) -> None:
    """Make a key that signs and unseals.

    It is one file, encrypted with a passphrase, mode 0600. Its public half is written here, as
    NAME.pub. Typed again, it writes that file again. Nothing recovers a lost key or passphrase:
    keep a copy of both, apart from each other. With --replace the key that is there signs for a
    newer one, and stays beside it for rounds that enrol it.

    Example: cobasis key new north
    """
    path, to = owner.key(name), Path(f"{name}.pub")
    if analyst and approver:
        raise OptionError("a key has one role: give --analyst or --approver, not both.")
    role: Role = "analyst" if analyst else "approver" if approver else "party"
    own, lead = _own(owner, name, role=role, to=to), f"{path} was there, and is as it was"
    if replace and not own:
        raise IdentityError(f"there is no key of '{name}' to replace. Leave out --replace.")
    if replace or not own:
        own, lead = (Identity.new(name, role=role, before=own),), f"Made {path}"
        save_identity(own[0], path, passphrase=owner.passphrase(new=True))
    identity, public = own[0], own[0].public
    write_whole(to, public.text().encode(), mode=0o644)
    lines = [lead]
    if identity.before:
        word = to.with_suffix(".succession")
        write_whole(word, identity.succession.text().encode(), mode=0o644)
        vault = owner.folder() / "vault" / name
        seal_anew(vault, seal=identity.seal_for_self, unseal=identity.unseal_own)
        lines.append(f"Wrote {word}, signed by the key before: send it, too")
    owner.say(
        [
            *lines,
            f"Wrote {to}, the public half, of {'a party' if role == 'party' else f'an {role}'}",
            "Fingerprint, to be read over the telephone to the agreement's author:",
            f"  {public.fingerprint}",
            f"Next: send {to} to that author, the party that makes the agreement",
        ],
        command="key new",
        round=None,
        path=to,
        **picked(public, *PERSON),
    )


def _own(owner: Owner, name: str, *, role: Role, to: Path) -> tuple[Identity, ...]:
    """Return the key that is there, and those before it; raise where something is in the way."""
    path = owner.key(name)
    newest = owner.identity(name) if path.exists() else None
    own = () if newest is None else (newest, *newest.before)
    if own and own[0].public.role != role:
        raise IdentityError(
            f"the key of '{name}' is there, and its role is {own[0].public.role}, not {role}. A "
            "key has one role, and is never written over. Choose another name for the other."
        )
    there = text_of(to) if to.exists() else None
    if there is not None and there not in {each.public.text() for each in own}:
        whose = f"'{path}'" if own else "that would be made. Nothing was made"
        raise DiskError(
            f"'{to}' exists, and is not of the key {whose}. Move it away, or type this in another "
            "folder."
        )
    return own


@grouped
def revoke(
    owner: Owner,
    words: Annotated[
        list[Path], Argument(metavar="[AGREEMENT] NAME", help="Whose key somebody else may have.")
    ],
    yes: Yes = False,
) -> None:
    """Stop a round in which a key was stolen.

    Somebody else may have the key: the round stands still, and people decide. It takes the analyst
    and a party. One types this, and the other, with the file that it writes
    beside the agreement, types the same; last is the analyst, who tells everybody by icu.news.
    Nobody can take it back.

    Example: cobasis key revoke icu.toml north
    """
    path, rest = agreed(words)
    agreement, name = sealed_agreement(path), str(the_one(rest, what="a name, whose key it is"))
    people = everybody(agreement)
    require_known(name, people)
    who, whose = owner.who(agreement), people[name]
    to = path.with_name(f"{stem_of(path)}.{name}{REVOKED}")
    told = {"agreement": agreement.digest().hex(), "name": name, "time": moment_text(now())}
    made = line_in(to, Revocation) if to.exists() else Revocation(**told, signatures={})
    made.holds(agreement, name=name)  # or says why it cannot
    session = owner.analyst(path) if who.role == "analyst" else None
    identity = owner.enrolled(who) if session is None else session.identity
    if who.name not in made.signatures:
        owner.tell([f"The key of {name}, as of {made.time}:", f"  {whose.fingerprint}"])
        stops = "nothing more is sent, taken or made in this round, and nobody can take that back"
        accepted = "What was accepted stays in use."
        owner.tell(wrapped(f"Once the analyst and a party have signed, {stops}. {accepted}"))
        question = "Type the round's name to revoke the key"
        consent(question, yes=yes, what=f"'{to}'", word=agreement.round_id)
        made = made.signed(who.name, identity.sign)
        write_whole(to, made.text().encode(), mode=0o644)
    stopped = session is not None and made.holds(agreement)
    other = analyst_of(agreement).name if session is None else "a party"
    then = f"Next: send {to} to {other}, who types the same beside it"
    if session is not None and stopped:
        with session.at_work():
            session.revoke(made)
        then = f"Round '{agreement.round_id}' stands still. Send {session.news} to everybody."
    owner.say(
        [f"{to} is signed by {' and '.join(sorted(made.signatures))}", *wrapped(then)],
        command="key revoke",
        round=agreement.round_id,
        path=to,
        signed=sorted(made.signatures),
        stopped=stopped,
        **picked(whose, *PERSON),
    )
