"""A whole file written, copied or moved, and a file or folder removed, in one call each."""

import shutil
from collections.abc import Callable
from io import FileIO
from pathlib import Path

from cobasis.disk.files import WholeFile, opened, sync_folder
from cobasis.errors import DiskError

_PIECE = 2**20


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, or leave what stood there before."""
    with WholeFile(path, n_bytes=len(data)) as file:
        file.write(data, offset=0)


def copy_whole(
    source: Path, target: Path, *, on_copied: Callable[[], object] = lambda: None
) -> None:
    """Copy a file, so that all of the copy is on the disk, or what stood there before.

    A source that is written to meanwhile is copied as it was read: whoever has its digest compares.
    """
    with opened(source) as (file, stamp), WholeFile(target, n_bytes=stamp.size) as whole:
        at = 0
        while piece := _read(file, source):
            whole.write(piece, offset=at)
            at += len(piece)
        whole.shorten(at)
        on_copied()


def _read(file: FileIO, path: Path) -> bytes | None:
    """Read the next piece; a DiskError when that fails."""
    try:
        return file.read(_PIECE)
    except OSError as error:
        raise DiskError(
            f"'{path}' cannot be read: {error.strerror}. Check the disk it is on."
        ) from error


def move_whole(source: Path, target: Path) -> None:
    """Give a file another name on the same disk, and wait until the name is there."""
    try:
        source.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise DiskError(
            f"'{source}' cannot be moved to '{target}': {error.strerror}. Free some space, or "
            "correct the rights, then start again."
        ) from error


def remove_tree(path: Path) -> None:
    """Delete a file or a folder, if it is there, and wait until its name is gone."""
    try:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        if path.parent.is_dir():
            sync_folder(path.parent)
    except OSError as error:
        raise DiskError(
            f"'{path}' cannot be deleted: {error.strerror or error}. It may hold private numbers; "
            "delete it yourself, then start again."
        ) from error
