"""Room on a disk, asked for before something that cannot end well without it."""

import shutil
from pathlib import Path

from cobasis.errors import DiskError

MEGABYTE = 10**6


def require_room(folder: Path, n_bytes: int, *, what: str) -> None:
    """Raise DiskError where a folder's disk has less room than something will take.

    Parameters
    ----------
    folder : Path
        On that disk.
    n_bytes : int
        What will be written there, about.
    what : str
        What to call it in the error.

    Raises
    ------
    DiskError
        There is less.

    Notes
    -----
    **Who sees what.** The message holds sizes.

    **Cost.** One question to the file system. Others may fill the disk afterwards.
    """
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        msg = (
            f"{what} writes about {n_bytes / MEGABYTE:,.0f} MB to '{folder}', whose disk has "
            f"{free / MEGABYTE:,.0f} MB left. Make room there, or choose a folder on another disk: "
            "work=, or TMPDIR in the environment."
        )
        raise DiskError(msg)
