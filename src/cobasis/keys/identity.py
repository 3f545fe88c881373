"""Identities: a key that signs and one that unseals, used and not looked at, and kept encrypted.

A home folder keeps a file for each, under a passphrase, for its owner only. The public half is
``cobasis.protocol.enrolment``; a secret half never leaves this package.
"""

import stat
import time
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Self

import pyrage
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cobasis.bundle.seal import decrypt, encrypt
from cobasis.disk.whole import WholeFile, make_folder, opened
from cobasis.errors import DiskError, IdentityError, PassphraseError, SealError, UnknownPartyError
from cobasis.linalg.arrays import Hidden
from cobasis.protocol.enrolment import PublicIdentity, Role, Succession, is_identity_name, verify
from cobasis.strict_json import canonical_json, json_object

FORMAT = "cobasis/key/1"
MAX_KEY_FILE = 2**16
_SUFFIX = ".key"
_OWN = b"cobasis/own/1\0"
_SIGNATURE_BYTES = 64


class Identity(Hidden):
    """The secret keys of one party, or of the analyst; made by `new`, or read from a file.

    Behind newer ones stand those `before`: they sign and open in rounds that enrol them, and what
    was sealed for them opens here, too.
    """

    __slots__ = ("_age", "_signing", "before", "public")

    def __init__(
        self,
        name: str,
        *,
        signing: Ed25519PrivateKey,
        age: "pyrage.x25519.Identity",
        role: Role = "party",
        before: "tuple[Identity, ...]" = (),
    ) -> None:
        self._signing, self._age = signing, age
        self.before = before  # newest first
        self.public = PublicIdentity(  # the half that everybody may see
            name=name,
            role=role,
            signing_key=signing.public_key().public_bytes_raw().hex(),
            recipient=str(age.to_public()),
        )

    @classmethod
    def new(cls, name: str, *, role: Role = "party", before: "tuple[Identity, ...]" = ()) -> Self:
        signing, age = Ed25519PrivateKey.generate(), pyrage.x25519.Identity.generate()
        return cls(name, signing=signing, age=age, role=role, before=before)

    @property
    def succession(self) -> Succession:
        message = Succession.message(self.public)
        signed = {each.public.signing_key: each.sign(message).hex() for each in self.before}
        return Succession(name=self.public.name, signatures=signed)

    def sign(self, message: bytes) -> bytes:
        return self._signing.sign(message)

    def unseal(self, source: BinaryIO, target: BinaryIO) -> None:
        decrypt(source, target, identities=[x._age for x in (self, *self.before)])  # noqa: SLF001

    def seal_for_self(self, data: bytes) -> bytes:
        # The public half is enough to seal for somebody. Without the signature, whoever may write
        # to the disk could put a record of their own making where a secret was kept.
        target, signed = BytesIO(), self.sign(_OWN + data) + data
        encrypt(BytesIO(signed), target, recipients={self.public.name: self.public.recipient})
        return target.getvalue()

    def unseal_own(self, sealed: bytes) -> bytes:
        target = BytesIO()
        self.unseal(BytesIO(sealed), target)
        plain = target.getvalue()
        signature, data = plain[:_SIGNATURE_BYTES], plain[_SIGNATURE_BYTES:]
        own = (each.public for each in (self, *self.before))
        if not any(verify(each, _OWN + data, signature=signature) for each in own):
            raise SealError(
                f"a record of '{self.public.name}' is sealed for them, and was not made by them: "
                "somebody else put it there. Restore it from a copy, and look who may write there."
            )
        return data

    def encrypted(self, passphrase: str) -> bytes:
        """Return the identity under a passphrase, as the ``age`` tool encrypts with one."""
        if not passphrase:
            raise PassphraseError(
                "a key is not kept under an empty passphrase. Choose one of several words."
            )
        who: Any = {"format": FORMAT, "name": self.public.name, "role": self.public.role}
        fields = {**who, **self._halves()}
        if self.before:
            fields["before"] = [each._halves() for each in self.before]  # noqa: SLF001 -- likewise
        return bytes(pyrage.passphrase.encrypt(canonical_json(fields), passphrase))

    def _halves(self) -> dict[str, str]:
        return {"signing_key": self._signing.private_bytes_raw().hex(), "age_key": str(self._age)}

    @classmethod
    def _of(cls, fields: Mapping[str, Any], halves: Mapping[str, str]) -> Self:
        signing = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(halves["signing_key"]))
        age = pyrage.x25519.Identity.from_str(halves["age_key"])
        return cls(fields["name"], role=fields["role"], signing=signing, age=age)

    @classmethod
    def decrypted(cls, data: bytes, *, passphrase: str, what: str, tries: int = 4) -> Self:
        try:
            fields = json_object(bytes(pyrage.passphrase.decrypt(data, passphrase)))
            if fields.pop("format") == FORMAT:
                found = cls._of(fields, fields)
                found.before = tuple(cls._of(fields, each) for each in fields.get("before", ()))
                return found
        except pyrage.DecryptError as error:
            if str(error) == "Decryption failed":
                raise PassphraseError(
                    f"{what} is not opened by this passphrase. Check the keyboard's layout and "
                    "capitals; if it is lost, make a new key, and have it enrolled."
                ) from None
            if "Excessive work" in str(error):
                if tries > 1:  # age measures each time what is too much, perhaps in a busy moment
                    time.sleep(0.5)
                    return cls.decrypted(data, passphrase=passphrase, what=what, tries=tries - 1)
                raise IdentityError(
                    f"{what} takes more work to open than this machine, slow or busy, does at "
                    "once: type the same command again when the machine has less to do."
                ) from None
        except (ValueError, KeyError, TypeError, AttributeError, pyrage.IdentityError):
            pass  # what follows says so, without anything of the text
        raise IdentityError(
            f"{what} is damaged, or no key that cobasis keeps. Restore it from a copy, or make a "
            "new key and have it enrolled."
        )


def key_path(home: Path, name: str) -> Path:
    """Return where somebody's key file stands in a home folder; its folder is made."""
    if not is_identity_name(name):
        raise IdentityError(
            f"{name[:100]!r} is no identity's name. Names have 1 to 100 letters, digits, '.', '_' "
            "and '-', none with an accent, and do not begin with a '.'."
        )
    folder = home / "keys"
    make_folder(folder)
    return folder / f"{name}{_SUFFIX}"


def names(home: Path) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (home / "keys").glob(f"*{_SUFFIX}")))


def enrolled_here(
    enrolled: Mapping[str, PublicIdentity], *, where: str, home: Path, name: str | None
) -> PublicIdentity:
    """Return who of some people this home is: who was named, or the only one with a key in it."""
    if name is not None and name in enrolled:
        return enrolled[name]
    here = [each for each in names(home) if each in enrolled]
    if name is None and len(here) == 1:
        return enrolled[here[0]]
    if name is None and here:
        raise IdentityError(
            f"the home folder '{home}' has keys of {', '.join(here)}, and each takes part in "
            f"{where}. Say who you are: --as {' or --as '.join(here)}."
        )
    nobody = f"nobody with a key in the home folder '{home}' takes part"
    who, listed = f"'{name}' takes no part" if name else nobody, ", ".join(enrolled) or "nobody yet"
    raise UnknownPartyError(
        f"{who} in {where} (enrolled: {listed}). Give the --home and --as of one of these. A party "
        "that is not among them is enrolled by its .pub file, in an agreement that nobody signed."
    )


def enrolled_key(identity: Identity, enrolled: PublicIdentity) -> Identity:
    for each in (identity, *identity.before):
        if each.public == enrolled:
            return each
    raise IdentityError(
        f"the key of '{enrolled.name}' in the home folder ({identity.public.fingerprint}) is "
        f"not the one that is enrolled ({enrolled.fingerprint}). Use that, or have this one's "
        ".pub file enrolled in its place, in an agreement that nobody signed."
    )


def save_identity(identity: Identity, path: Path, *, passphrase: str) -> None:
    """Write an identity into a file: a new one, or that of the key before, which it keeps."""
    data = identity.encrypted(passphrase)
    with WholeFile(path, n_bytes=len(data)) as file:
        file.write(data)
        if not identity.before and (path.exists() or path.is_symlink()):
            raise IdentityError(
                f"'{path}' exists, and a key is never written over: everything that was sealed for "
                "it would be lost. Use the key that is there, or choose another name."
            )


def load_identity(path: Path, *, passphrase: str) -> Identity:
    try:
        with opened(path) as (file, stamp):
            mode = stat.S_IMODE(path.stat().st_mode)
            data = file.read(MAX_KEY_FILE + 1) if stamp.size <= MAX_KEY_FILE else b""
    except DiskError as error:
        reason = getattr(error.__cause__, "strerror", None) or "no file"
        raise IdentityError(
            f"there is no key to be read at '{path}': {reason}. Make one with 'cobasis key new', "
            "or say which name or home folder is meant."
        ) from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise IdentityError(
            f"the key file '{path}' has mode {mode:04o}: others than its owner may read or change "
            f"it. If nobody did, run: chmod 600 '{path}'. If in doubt, make a new key."
        )
    return Identity.decrypted(data, passphrase=passphrase, what=f"the key file '{path}'")
