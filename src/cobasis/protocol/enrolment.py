"""Who is who in a real round: the public half of an identity, and what it proves.

Plain values only: the private half lives in ``cobasis.keys``, which nothing here can import.
"""

import hashlib
import re
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cobasis.errors import AgreementError
from cobasis.strict_json import canonical_json, json_object

FORMAT = "cobasis/identity/1"

_NAME = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$"

IdentityName = Annotated[str, Field(pattern=_NAME)]
Role = Literal["party", "analyst", "approver"]


def field_findings(error: ValidationError, *, whole: str) -> str:
    """Say of the first fields why they cannot stand, without what they hold."""
    found = error.errors(include_input=False, include_url=False)
    told = [
        f"{'.'.join(map(str, each['loc'])) or whole}: {each['msg'].removeprefix('Value error, ')}"
        for each in found[:5]
    ]
    return f"{len(found)} field(s) that cannot stand: {'; '.join(told)}"


class Strict(BaseModel):
    """Fields of exactly their types, never more of them, and never changed."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class OneLine(Strict):
    """A few fields that travel as a small file of their own: one line of canonical JSON."""

    form: ClassVar[str]
    what: ClassVar[str]  # in words
    ask: ClassVar[str]  # where to get a good one

    if not TYPE_CHECKING:

        def __init__(self, **fields: object) -> None:
            """Check each field."""
            try:
                super().__init__(**fields)
            except ValidationError as error:
                findings = field_findings(error, whole=self.what)
                raise AgreementError(f"the {self.what} has {findings}. {self.ask}") from None

    def text(self) -> str:
        """Return the file's text: canonical JSON and a line feed."""
        fields = {"format": self.form, **self.model_dump()}
        return canonical_json(fields).decode() + "\n"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what `text` wrote."""
        try:
            fields = json_object(text.encode())
        except ValueError:
            fields = {}
        # `cls(**fields)` would take a name like self for something else than a field
        if fields.pop("format", None) != cls.form or set(fields) - set(cls.model_fields):
            raise AgreementError(
                f"this is no {cls.what}: a '{cls.form}' file is one line of JSON with "
                f"{', '.join(cls.model_fields)}. {cls.ask}"
            )
        return cls(**fields)


class PublicIdentity(OneLine):
    """What a party or the analyst shows of its identity: enough to check and to seal for it."""

    form = FORMAT
    what = "public identity"
    ask = "Ask its owner for the .pub file that 'cobasis key new' writes."

    name: IdentityName
    role: Role  # its fingerprint is of that, too
    signing_key: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    recipient: Annotated[str, Field(pattern="^age1[02-9ac-hj-np-z]{58}$")]

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits in groups of four, to be read out over the telephone."""
        digits = hashlib.sha256(self.text().encode()).hexdigest()[:16]
        return " ".join(digits[at : at + 4] for at in range(0, 16, 4))


_CONSONANTS, _VOWELS = "bdfghjklmnprstvz", "aiou"


def words_of(digest: bytes) -> str:
    """Return a digest's first sixteen bytes as eight words to be read out, as proquints are.

    Wilkerson, arXiv:0901.4016: each word is sixteen bits.
    """
    pairs = (int.from_bytes(digest[at : at + 2], "big") for at in range(0, 16, 2))
    words = []
    for bits in pairs:
        heads = (_CONSONANTS[bits >> 12], _VOWELS[bits >> 10 & 3], _CONSONANTS[bits >> 6 & 15])
        words.append("".join((*heads, _VOWELS[bits >> 4 & 3], _CONSONANTS[bits & 15])))
    return " ".join(words)


def is_identity_name(name: str) -> bool:
    """Tell whether text can be an identity's name, and so a file's: no slash, no leading dot."""
    return re.fullmatch(_NAME[1:-1], name) is not None


def verify(identity: PublicIdentity, message: bytes, *, signature: bytes) -> bool:
    """Tell whether an identity signed a message."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(identity.signing_key))
        key.verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
