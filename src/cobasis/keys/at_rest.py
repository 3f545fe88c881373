"""The home folder and its identities: a file each, under a passphrase, for its owner only."""

import os
import stat
from pathlib import Path

from cobasis.disk.whole import WholeFile, make_folder, opened
from cobasis.errors import DiskError, IdentityError, UnknownPartyError
from cobasis.keys.identity import Identity
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import PublicIdentity, is_identity_name
from cobasis.protocol.signatures import signers

VARIABLE = "COBASIS_HOME"
_SUFFIX = ".key"


def home(path: Path | None = None) -> Path:
    """Return the home folder; it is made, for its owner only, when it is not there."""
    folder = path or Path(os.environ.get(VARIABLE) or Path.home() / ".cobasis")
    make_folder(folder)
    return folder


def key_path(home: Path, name: str) -> Path:
    """Return where somebody's key file stands in a home folder; its folder is made."""
    if not is_identity_name(name):
        raise IdentityError(
            f"{name[:100]!r} is no identity's name. Names have 1 to 100 letters, digits, '.', '_' "
            "and '-', and do not begin with a '.'."
        )
    folder = home / "keys"
    make_folder(folder)
    return folder / f"{name}{_SUFFIX}"


def names(home: Path) -> tuple[str, ...]:
    """Return whose keys are in a home folder, sorted."""
    return tuple(sorted(path.stem for path in (home / "keys").glob(f"*{_SUFFIX}")))


def enrolled_here(agreement: Agreement, *, home: Path, name: str | None) -> PublicIdentity:
    """Return who of a round this home is: who was named, or the only one whose key is in it."""
    enrolled = signers(agreement)
    if name is not None and name in enrolled:
        return enrolled[name]
    here = [each for each in names(home) if each in enrolled]
    if name is None and len(here) == 1:
        return enrolled[here[0]]
    if name is None and here:
        raise IdentityError(
            f"the home folder '{home}' has keys of {', '.join(here)}, and each takes part in round "
            f"'{agreement.round_id}'. Say who you are: --as {' or --as '.join(here)}."
        )
    who = f"nobody with a key in the home folder '{home}' takes part"
    who = who if name is None else f"'{name}' takes no part"
    listed = ", ".join(enrolled) or "nobody yet"
    raise UnknownPartyError(
        f"{who} in round '{agreement.round_id}' (enrolled: {listed}). Give the right "
        "folder with --home and the name with --as, or enrol the key in a new agreement."
    )


MAX_KEY_FILE = 2**16
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def save_identity(identity: Identity, path: Path, *, passphrase: str) -> None:
    """Write an identity into a new file."""
    _refuse_existing(path)
    data = identity.encrypted(passphrase)
    with WholeFile(path, n_bytes=len(data)) as file:
        file.write(data, offset=0)
        _refuse_existing(path)


def _refuse_existing(path: Path) -> None:
    """Raise IdentityError when there is a file: a key that is written over is lost for good."""
    if path.exists() or path.is_symlink():
        raise IdentityError(
            f"'{path}' exists, and a key is never written over: everything that was sealed for it "
            "would be lost. Use the key that is there, or choose another name."
        )


def load_identity(path: Path, *, passphrase: str) -> Identity:
    """Read an identity from its file."""
    try:
        with opened(path) as (file, stamp):
            mode = stat.S_IMODE(path.stat().st_mode)
            data = file.read(MAX_KEY_FILE + 1) if stamp.size <= MAX_KEY_FILE else b""
    except DiskError as error:
        reason = (
            str(error.__cause__.strerror) if isinstance(error.__cause__, OSError) else "no file"
        )
        raise IdentityError(
            f"there is no key to be read at '{path}': {reason}. Make one with 'cobasis key new', "
            "or say which name or home folder is meant."
        ) from None
    if mode & _OTHERS:
        raise IdentityError(
            f"the key file '{path}' has mode {mode:04o}: others than its owner may read or change "
            f"it. If nobody did, run: chmod 600 '{path}'. If in doubt, make a new key."
        )
    return Identity.decrypted(data, passphrase=passphrase, what=f"the key file '{path}'")
