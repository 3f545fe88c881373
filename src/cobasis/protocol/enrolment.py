"""Who is who in a real round: the public half of an identity, what it proves, and who approves.

Plain values only: the private half lives in ``cobasis.keys``, which nothing here can import.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from mnemonic import Mnemonic
from pydantic import Field

from cobasis.errors import AgreementError
from cobasis.strict_json import Strict, Worded, canonical_json, json_object

if TYPE_CHECKING:
    from cobasis.protocol.agreement import Agreement

_NAME = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$"

IdentityName = Annotated[str, Field(pattern=_NAME)]
Text = Annotated[str, Field(max_length=10_000)]
Signed = Annotated[str, Field(pattern="^[0-9a-f]{128}$")]
Role = Literal["party", "analyst", "approver"]
_Key = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class OneLine(Worded):
    """A few fields that travel as a small file of their own: one line of canonical JSON."""

    form: ClassVar[str]

    def text(self) -> str:
        fields = {"format": self.form, **self.model_dump()}
        return canonical_json(fields).decode() + "\n"

    @classmethod
    def from_text(cls, text: str) -> Self:
        try:
            fields = json_object(text.encode())
        except ValueError:
            fields = {}
        form, fields = fields.pop("format", None), cls._known(fields)
        if form != cls.form or set(fields) - set(cls.model_fields):
            raise AgreementError(
                f"this is no {cls.what}: a '{cls.form}' file is one line of JSON with "
                f"{', '.join(cls.model_fields)}. {cls.ask}"
            )
        return cls(**fields)


class PublicIdentity(OneLine):
    """What a party or the analyst shows of its identity: enough to check and to seal for it."""

    form = "cobasis/identity/1"
    what = "public identity"
    ask = "Ask its owner for the .pub file that 'cobasis key new' writes."

    name: IdentityName
    role: Role  # covered by the fingerprint, too
    signing_key: _Key
    recipient: Annotated[str, Field(pattern="^age1[02-9ac-hj-np-z]{58}$")]

    @property
    def fingerprint(self) -> str:
        """Eight words, to be read out over the telephone."""
        return words_of(hashlib.sha256(self.text().encode()).digest())


class SignedLine(OneLine):
    signature: Signed

    def message(self) -> bytes:
        return f"{self.form}\0".encode() + canonical_json(self.model_dump(exclude={"signature"}))

    def is_by(self, who: PublicIdentity) -> bool:
        return verify(who, self.message(), signature=bytes.fromhex(self.signature))


class Succession(OneLine):
    """A statement, signed by somebody's earlier keys, that this key takes their place."""

    form = "cobasis/succession/1"
    what = "succession of a key"
    ask = "Ask its owner for the .succession file that 'cobasis key new' writes."

    name: IdentityName
    signatures: dict[_Key, Signed]  # by the key that signed

    @classmethod
    def message(cls, new: PublicIdentity) -> bytes:
        return f"{cls.form}\0{new.text()}".encode()

    def vouches(self, known: PublicIdentity, new: PublicIdentity) -> bool:
        signature = bytes.fromhex(self.signatures.get(known.signing_key, ""))
        same = (known.name, known.role) == (new.name, new.role)
        return same and verify(known, self.message(new), signature=signature)


@lru_cache(maxsize=10_000)  # more than take part: each costs 20 ms
def words_of(digest: bytes) -> str:
    """Return a SHA-256 as eight words to be read out: 88 bits of its scrypt, in BIP-39's words.

    A file with the words of a given one takes 2^88 tries, and two files with the same words, which
    only an author or an analyst can use, 2^44 of 20 ms and 8 MiB each: 10,000 processor years.
    """
    slow = hashlib.scrypt(digest, salt=b"cobasis/words/1", n=2**13, r=8, p=1, dklen=32)
    return " ".join(Mnemonic("english").to_mnemonic(slow).split()[:8])


def is_identity_name(name: str) -> bool:
    """Tell whether text can be an identity's name, and so a file's: no slash, no leading dot."""
    return re.fullmatch(_NAME[1:-1], name) is not None


def verify(identity: PublicIdentity, message: bytes, *, signature: bytes) -> bool:
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(identity.signing_key))
        key.verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


class Record(Strict):
    """What officers file of a round, in words: the ``[record]`` table; empty is not stated.

    Purpose, columns, recipients and retention are the agreement's own fields.
    """

    controllers: Text = ""
    contacts: Text = ""
    processor: Text = ""
    legal_basis: Text = ""
    people: Text = ""
    users: Text = ""
    transfers: Text = ""
    security: Text = ""


class Approver(PublicIdentity):
    """Whose approval a party's files need: an officer's key, beside the party's name."""

    party: IdentityName

    @property
    def public(self) -> PublicIdentity:
        """The officer's .pub file, whose fingerprint is compared."""
        return PublicIdentity(**self.model_dump(exclude={"party"}))

    @property
    def fingerprint(self) -> str:
        return self.public.fingerprint


def officers_of(agreement: "Agreement", party: str) -> dict[str, Approver]:
    """Return who approves a party's files, by name; nobody where it needs no approval."""
    return {each.name: each for each in agreement.approvers if each.party == party}


def enrolment_problems(agreement: "Agreement") -> Iterator[str]:
    names = tuple(each.name for each in agreement.enrolled)
    if names and names != agreement.parties:
        yield f"enrolled are {', '.join(names)}, the parties are {', '.join(agreement.parties)}"
    roles = {"party": agreement.enrolled, "approver": agreement.approvers}
    roles["analyst"] = () if agreement.analyst is None else (agreement.analyst,)
    for wanted, found in roles.items():
        for each in found:
            if each.role != wanted:
                yield f"the key of {wanted} '{each.name}' was made for role '{each.role}'"
    for officer in agreement.approvers:
        if officer.party not in agreement.parties:
            yield f"approver '{officer.name}' is of '{officer.party}', which is no party"
    everybody = [each for found in roles.values() for each in found]
    for field in ("name", "signing_key", "recipient"):
        owners = Counter(getattr(each, field) for each in everybody)
        shared = [each.name for each in everybody if owners[getattr(each, field)] > 1]
        if shared:
            yield f"{', '.join(shared)} have one and the same {field}"
