"""An identity on disk: one file, under a passphrase, readable by its owner only."""

import stat
from pathlib import Path

from cobasis.bundle.files import WholeFile, opened
from cobasis.errors import DiskError, IdentityError
from cobasis.keys.identity import Identity

MAX_KEY_FILE = 2**16
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def save_identity(identity: Identity, path: Path, *, passphrase: str) -> None:
    """Write an identity into a new file.

    Parameters
    ----------
    identity : Identity
        To be kept.
    path : Path
        Where it will stand; nothing may be there.
    passphrase : str
        Whoever knows it, and has the file, has the identity.

    Raises
    ------
    IdentityError
        Something stands there already.
    PassphraseError
        The passphrase is empty.
    DiskError
        The disk is full, or may not be written to.

    Notes
    -----
    **Who sees what.** The file has mode 0600 and is encrypted: an age file with a passphrase.

    **Cost.** One to two seconds, on purpose.
    """
    _refuse_existing(path)
    data = identity.encrypted(passphrase)
    with WholeFile(path, n_bytes=len(data)) as file:
        file.write(data, offset=0)
        _refuse_existing(path)


def _refuse_existing(path: Path) -> None:
    """Raise IdentityError when there is a file: a key that is written over is lost for good."""
    if path.exists() or path.is_symlink():
        msg = (
            f"'{path}' exists, and a key is never written over: everything that was sealed for it "
            "would be lost. Use the key that is there, or choose another name."
        )
        raise IdentityError(msg)


def load_identity(path: Path, *, passphrase: str) -> Identity:
    """Read an identity from its file.

    Parameters
    ----------
    path : Path
        What `save_identity` wrote.
    passphrase : str
        The one it was written with.

    Returns
    -------
    Identity
        The same.

    Raises
    ------
    PassphraseError
        The passphrase is another one.
    IdentityError
        The file is missing, damaged, too large, or others may read it.

    Notes
    -----
    **Who sees what.** No message holds the passphrase or a key.

    **Cost.** One to two seconds, on purpose.
    """
    try:
        with opened(path) as (file, stamp):
            mode = stat.S_IMODE(path.stat().st_mode)
            data = file.read(MAX_KEY_FILE + 1) if stamp.size <= MAX_KEY_FILE else b""
    except DiskError as error:
        reason = (
            str(error.__cause__.strerror) if isinstance(error.__cause__, OSError) else "no file"
        )
        msg = (
            f"there is no key to be read at '{path}': {reason}. Make one with 'cobasis key new', "
            "or say which name or home folder is meant."
        )
        raise IdentityError(msg) from None
    if mode & _OTHERS:
        msg = (
            f"the key file '{path}' has mode {mode:04o}: others than its owner may read or change "
            f"it. If nobody did, run: chmod 600 '{path}'. If in doubt, make a new key."
        )
        raise IdentityError(msg)
    return Identity.decrypted(data, passphrase=passphrase, what=f"the key file '{path}'")
