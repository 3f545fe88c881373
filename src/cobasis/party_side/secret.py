"""The consortium secret: one party draws it and seals it to every party, never to the analyst.

Each keeps it in its vault, and destroys it there when it forgets the round.
"""

import json
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from cobasis.bundle.agreement_file import commit, read_draft
from cobasis.bundle.envelope import Bundle, Draft, Expected, write_bundle
from cobasis.errors import AgreementError, CommitmentError, IdentityError, UnknownPartyError
from cobasis.keys.at_rest import home as home_folder
from cobasis.keys.at_rest import key_path, load_identity, names
from cobasis.linalg.rng import KEY_BYTES
from cobasis.party_side.session import PartySession, alone, opened_bundle
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.secrets import ConsortiumSecret

SUFFIX = ".secret"
_PART = "secret.bin"


@dataclass(frozen=True, kw_only=True)
class SecretMade:
    """A consortium secret that was made.

    Attributes
    ----------
    round_id : str
        The round.
    maker : str
        The party that made it.
    commitment : str
        What stands in the agreement now.
    files : tuple of Path
        One sealed file per party.
    """

    round_id: str
    maker: str
    commitment: str
    files: tuple[Path, ...]


def make_secret(
    agreement_path: Path,
    *,
    parties: Iterable[str],
    home: Path | None,
    name: str | None,
    passphrase: Callable[[], str],
    to: Path | None = None,
) -> SecretMade:
    """Draw the consortium secret, seal it to each party, and commit the agreement to it.

    The commitment is written last: when anything fails before, a second call makes another
    secret, and the files of the first are of no use.
    """
    key = secrets.token_bytes(KEY_BYTES)
    agreement = _committed(agreement_path, ConsortiumSecret(key))
    round_id, commitment = agreement.round_id, agreement.commitment
    _refuse_others(agreement, tuple(parties))
    maker = _maker(agreement, home_folder(home), name)
    identity = load_identity(key_path(home_folder(home), maker), passphrase=passphrase())
    if identity.public not in agreement.enrolled:
        raise IdentityError(
            f"the key of '{maker}' ({identity.public.fingerprint}) is not the one that round "
            f"'{round_id}' enrols for it. Use that key, or enrol this one."
        )
    files = []
    for party in agreement.enrolled:
        path = (to or agreement_path.parent) / f"{party.name}{SUFFIX}"
        written = Draft(
            kind="secret", round_id=round_id, agreement=agreement.digest().hex(), sender=maker
        )
        write_bundle(
            path, draft=written, parts={_PART: key}, sign=identity.sign, recipients=[party]
        )
        files.append(path)
    commit(agreement_path, commitment)
    return SecretMade(round_id=round_id, maker=maker, commitment=commitment, files=tuple(files))


def _committed(path: Path, secret: ConsortiumSecret) -> Agreement:
    """Return the agreement as it will be with a secret's commitment; it may not have one yet."""
    draft = read_draft(path)
    if draft.fields.get("commitment"):
        raise AgreementError(
            f"the agreement '{path}' is committed to a secret already, and a second one would give "
            "parties different anchors. Have the first sent again; or, before anybody signs, empty "
            'its field (commitment = "") and tell all parties.'
        )
    commitment = secret.commitment(str(draft.fields.get("round_id", "")))
    fields = json.dumps({**draft.fields, "commitment": commitment})
    return Agreement.model_validate_json(fields)


def _refuse_others(agreement: Agreement, parties: tuple[str, ...]) -> None:
    """Raise unless the named are exactly the enrolled."""
    if not agreement.enrolled:
        raise AgreementError(
            f"round '{agreement.round_id}' enrols nobody, so there is no key to seal a secret "
            "for. Use 'cobasis agreement enrol' first."
        )
    enrolled = [each.name for each in agreement.enrolled]
    unknown = [each for each in parties if each not in enrolled]
    forgotten = [each for each in enrolled if each not in parties]
    if unknown or forgotten:
        found = [
            *([f"not enrolled: {', '.join(unknown)}"] if unknown else []),
            *([f"left out: {', '.join(forgotten)}"] if forgotten else []),
        ]
        raise UnknownPartyError(
            f"the secret of round '{agreement.round_id}' is for all parties that are enrolled "
            f"({', '.join(enrolled)}), and only for them; {'; '.join(found)}. Name them all: "
            f"--for {','.join(enrolled)}."
        )


def _maker(agreement: Agreement, home: Path, name: str | None) -> str:
    """Return which party makes the secret."""
    enrolled = [each.name for each in agreement.enrolled]
    here = [name] if name is not None else [each for each in names(home) if each in enrolled]
    if len(here) == 1 and here[0] in enrolled:
        return here[0]
    raise IdentityError(
        f"a secret is made by one of the parties of round '{agreement.round_id}' "
        f"({', '.join(enrolled)}), and the home folder '{home}' has keys of "
        f"{', '.join(names(home)) or 'nobody'}. Say whose with --as; the analyst makes none."
    )


def join(desk: PartySession, secret: Path) -> str:
    """Open the consortium secret, hold it against the commitment, and keep it.

    A secret goes with the very agreement that was signed. Were it taken under another text,
    whoever wrote the parties' keys could have it sealed for a key of their own first, and then
    put the right keys back and seal it for their owners again: the maker's signature would stand.
    """
    with alone(desk):
        parties = {each.name: each for each in desk.agreement.enrolled}
        expected = Expected(
            kind="secret",
            round_id=desk.agreement.round_id,
            agreement=desk.agreement.digest().hex(),
            recipient=desk.name,
        )
        with opened_bundle(desk, secret, signer=parties, expected=expected) as bundle:
            found = ConsortiumSecret(_key_of(bundle, desk))
            maker, digest = bundle.manifest.sender, bundle.digest
        desk.round.join(found)
        desk.transcript.append("joined", {"secret_from": maker, "bundle": digest})
        return maker


def _key_of(bundle: Bundle, desk: PartySession) -> bytes:
    """Return the part's 32 bytes."""
    key = bundle.parts[_PART].read_bytes()
    if len(key) != KEY_BYTES:
        raise CommitmentError(
            f"what '{bundle.manifest.sender}' sent to party '{desk.name}' as the consortium secret "
            f"has {len(key)} bytes, not {KEY_BYTES}. Ask for the file that 'cobasis secret new' "
            "makes."
        )
    return key
