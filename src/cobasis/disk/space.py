"""Room on a disk, asked for before something that cannot end well without it."""

import shutil
from pathlib import Path

from cobasis.errors import DiskError

MEGABYTE = 10**6


def require_room(folder: Path, n_bytes: int, *, what: str) -> None:
    """Raise DiskError where a folder's disk has less room than something will take."""
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        raise DiskError(
            f"{what} writes about {n_bytes / MEGABYTE:,.0f} MB to '{folder}', whose disk has "
            f"{free / MEGABYTE:,.0f} MB left. Make room there, or choose a folder on another disk: "
            "work=, or TMPDIR in the environment."
        )
