"""Who is who in a real round: the public half of an identity, and what it proves.

Plain values only: the private half lives in ``cobasis.keys``, which nothing here can import.
"""

import hashlib
import json
import re
from typing import TYPE_CHECKING, Annotated, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cobasis.errors import AgreementError

FORMAT = "cobasis/identity/1"

_NAME = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$"

IdentityName = Annotated[str, Field(pattern=_NAME)]


class _Fields(BaseModel):
    """The fields, each checked by itself; `PublicIdentity` says what they mean."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    name: IdentityName
    signing_key: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    recipient: Annotated[str, Field(pattern="^age1[02-9ac-hj-np-z]{58}$")]


class PublicIdentity(_Fields):
    """What a party or the analyst shows of its identity: enough to check and to seal for it.

    Attributes
    ----------
    name : str
        Its name in the agreement: letters, digits, ``.``, ``_`` and ``-``, no leading dot.
    signing_key : str
        The raw Ed25519 public key, 64 hexadecimal digits.
    recipient : str
        The age X25519 recipient, ``age1...``, to which files for it are sealed.

    Raises
    ------
    AgreementError
        A field is missing, unknown or of another form.

    Notes
    -----
    **Who sees what.** Public: it stands in the agreement. Whoever enrols it has to compare the
    fingerprint over another channel, since a key that was exchanged on its way is its thief's.

    **Cost.** None.
    """

    if not TYPE_CHECKING:

        def __init__(self, **fields: object) -> None:
            """Check each field."""
            try:
                super().__init__(**fields)
            except ValidationError as error:
                raise AgreementError(_sentence(error)) from None

    def text(self) -> str:
        """Return the text of the ``.pub`` file: canonical JSON and a line feed."""
        fields = {"format": FORMAT, **self.model_dump()}
        return json.dumps(fields, sort_keys=True, separators=(",", ":")) + "\n"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what `text` wrote.

        Parameters
        ----------
        text : str
            A ``.pub`` file's text.

        Returns
        -------
        PublicIdentity
            The identity.

        Raises
        ------
        AgreementError
            The text is no public identity.

        Notes
        -----
        **Who sees what.** Public.

        **Cost.** None.
        """
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict) or fields.pop("format", None) != FORMAT:
            msg = (
                f"this is no public identity: a '{FORMAT}' file is one line of JSON with name, "
                "signing_key and recipient. Ask its owner for what 'cobasis key show' prints."
            )
            raise AgreementError(msg)
        return cls(**fields)

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits in groups of four, to be read out over the telephone."""
        digits = hashlib.sha256(self.text().encode()).hexdigest()[:16]
        return " ".join(digits[at : at + 4] for at in range(0, 16, 4))


def is_identity_name(name: str) -> bool:
    """Tell whether text can be an identity's name, and so a file's: no slash, no leading dot."""
    return re.fullmatch(_NAME[1:-1], name) is not None


def verify(identity: PublicIdentity, message: bytes, *, signature: bytes) -> bool:
    """Tell whether an identity signed a message.

    Parameters
    ----------
    identity : PublicIdentity
        Who is said to have signed.
    message : bytes
        What.
    signature : bytes
        64 bytes, Ed25519.

    Returns
    -------
    bool
        True if the signature is the identity's over exactly this message.

    Notes
    -----
    **Who sees what.** Anybody can check.

    **Cost.** A tenth of a millisecond.
    """
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(identity.signing_key))
        key.verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _sentence(error: ValidationError) -> str:
    """Return pydantic's findings as one sentence of ours."""
    findings = [
        f"{'.'.join(str(part) for part in found['loc']) or 'identity'}: {found['msg']}"
        for found in error.errors(include_input=False, include_url=False)
    ]
    return (
        f"the public identity has {len(findings)} field(s) that cannot stand: "
        f"{'; '.join(findings)}. Ask its owner for what 'cobasis key show' prints."
    )
