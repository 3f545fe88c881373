"""An identity: one key that signs and one that unseals, to be used and not looked at."""

from io import BytesIO
from typing import BinaryIO, Self

import pyrage
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cobasis.bundle.seal import decrypt, encrypt
from cobasis.errors import IdentityError, PassphraseError, SealError
from cobasis.linalg.arrays import Hidden
from cobasis.protocol.enrolment import PublicIdentity, Role, verify
from cobasis.strict_json import canonical_json, json_object

FORMAT = "cobasis/key/1"
_OWN = b"cobasis/own/1\0"
_SIGNATURE_BYTES = 64


class Identity(Hidden):
    """The secret keys of one party, or of the analyst.

    Made by `new`, or read by `cobasis.keys.at_rest.load_identity`.
    """

    __slots__ = ("_age", "_public", "_signing")

    def __init__(
        self,
        name: str,
        *,
        signing: Ed25519PrivateKey,
        age: "pyrage.x25519.Identity",
        role: Role = "party",
    ) -> None:
        self._signing = signing
        self._age = age
        self._public = PublicIdentity(
            name=name,
            role=role,
            signing_key=signing.public_key().public_bytes_raw().hex(),
            recipient=str(age.to_public()),
        )

    @classmethod
    def new(cls, name: str, *, role: Role = "party") -> Self:
        """Draw both keys from the system."""
        signing, age = Ed25519PrivateKey.generate(), pyrage.x25519.Identity.generate()
        return cls(name, signing=signing, age=age, role=role)

    @property
    def public(self) -> PublicIdentity:
        """The half that everybody may see."""
        return self._public

    @property
    def recipient(self) -> str:
        """To what files for it are sealed, ``age1...``."""
        return self._public.recipient

    def sign(self, message: bytes) -> bytes:
        """Return the Ed25519 signature of a message, 64 bytes."""
        return self._signing.sign(message)

    def unseal(self, source: BinaryIO, target: BinaryIO) -> None:
        """Decrypt a stream that was sealed for this identity."""
        decrypt(source, target, identity=self._age, what="what was sealed")

    def seal_for_self(self, data: bytes) -> bytes:
        """Return bytes that only this identity opens, and that only it can have made.

        The public half is enough to seal for somebody. Without the signature, whoever may
        write to the disk could put a record of their own making where a secret was kept.
        """
        target = BytesIO()
        encrypt(BytesIO(self.sign(_OWN + data) + data), target, recipients=[self.recipient])
        return target.getvalue()

    def unseal_own(self, sealed: bytes) -> bytes:
        """Return what `seal_for_self` was given."""
        target = BytesIO()
        self.unseal(BytesIO(sealed), target)
        plain = target.getvalue()
        signature, data = plain[:_SIGNATURE_BYTES], plain[_SIGNATURE_BYTES:]
        if not verify(self._public, _OWN + data, signature=signature):
            raise SealError(
                f"a record of '{self._public.name}' is sealed for them, and was not made by them: "
                "somebody else put it there. Restore it from a copy, and look who may write there."
            )
        return data

    def encrypted(self, passphrase: str) -> bytes:
        """Return the identity under a passphrase, as the ``age`` tool encrypts with one."""
        if not passphrase:
            raise PassphraseError(
                "a key is not kept under an empty passphrase. Choose one of several words."
            )
        fields = {
            "format": FORMAT,
            "name": self._public.name,
            "role": self._public.role,
            "signing_key": self._signing.private_bytes_raw().hex(),
            "age_key": str(self._age),
        }
        return bytes(pyrage.passphrase.encrypt(canonical_json(fields), passphrase))

    @classmethod
    def decrypted(cls, data: bytes, *, passphrase: str, what: str) -> Self:
        """Read what `encrypted` returned."""
        try:
            fields = json_object(pyrage.passphrase.decrypt(data, passphrase))
            if fields.pop("format") == FORMAT:
                return cls(
                    fields["name"],
                    role=fields["role"],
                    signing=Ed25519PrivateKey.from_private_bytes(
                        bytes.fromhex(fields["signing_key"])
                    ),
                    age=pyrage.x25519.Identity.from_str(fields["age_key"]),
                )
        except pyrage.DecryptError as error:
            if str(error) == "Decryption failed":
                raise PassphraseError(
                    f"{what} is not opened by this passphrase. Check the keyboard's layout and "
                    "capitals. A passphrase that is lost cannot be recovered: make a new key, and "
                    "have it enrolled."
                ) from None
        except (ValueError, KeyError, TypeError, AttributeError, pyrage.IdentityError):
            pass  # what follows says so, without anything of the text
        raise IdentityError(
            f"{what} is damaged, or no key that cobasis keeps. Restore it from a copy, or make a "
            "new key and have it enrolled."
        )
