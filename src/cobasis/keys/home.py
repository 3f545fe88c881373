"""Where one person's keys and vaults lie."""

import os
from pathlib import Path

from cobasis.errors import DiskError, IdentityError
from cobasis.protocol.enrolment import is_identity_name

VARIABLE = "COBASIS_HOME"
_SUFFIX = ".key"


def home(path: Path | None = None) -> Path:
    """Return the home folder; it is made, for its owner only, when it is not there.

    Parameters
    ----------
    path : Path, optional
        The folder; by default what the environment variable ``COBASIS_HOME`` names, else
        ``~/.cobasis``.

    Returns
    -------
    Path
        A folder; it has mode 0700 when it was made here.

    Raises
    ------
    DiskError
        It cannot be made, or is no folder.

    Notes
    -----
    **Who sees what.** Its owner only. The mode of a folder that was there is left as it is.

    **Cost.** None.
    """
    folder = path or Path(os.environ.get(VARIABLE) or Path.home() / ".cobasis")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        msg = (
            f"the home folder '{folder}' cannot be made: {error.strerror}. Choose another with "
            f"{VARIABLE}, or correct the rights."
        )
        raise DiskError(msg) from error
    return folder


def key_path(home: Path, name: str) -> Path:
    """Return where somebody's key file stands in a home folder; its folder is made.

    Parameters
    ----------
    home : Path
        The home folder.
    name : str
        Whose key.

    Returns
    -------
    Path
        ``keys/<name>.key``.

    Raises
    ------
    IdentityError
        The name could not be an identity's; ``../`` for instance.
    DiskError
        The folder cannot be made.

    Notes
    -----
    **Who sees what.** The folder has mode 0700.

    **Cost.** None.
    """
    if not is_identity_name(name):
        msg = (
            f"{name[:100]!r} is no identity's name. Names have 1 to 100 letters, digits, '.', '_' "
            "and '-', and do not begin with a '.'."
        )
        raise IdentityError(msg)
    folder = home / "keys"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        msg = f"'{folder}' cannot be made: {error.strerror}. Correct the rights to '{home}'."
        raise DiskError(msg) from error
    return folder / f"{name}{_SUFFIX}"


def names(home: Path) -> tuple[str, ...]:
    """Return whose keys are in a home folder, sorted."""
    return tuple(sorted(path.stem for path in (home / "keys").glob(f"*{_SUFFIX}")))
