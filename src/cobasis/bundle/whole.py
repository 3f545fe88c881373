"""A whole file written, copied or moved, and a file or folder removed, in one call each."""

import shutil
from collections.abc import Callable
from io import FileIO
from pathlib import Path

from cobasis.bundle.files import WholeFile, opened, sync_folder
from cobasis.errors import DiskError

_PIECE = 2**20


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, or leave what stood there before.

    Parameters
    ----------
    path : Path
        Where it will stand; replaced if it is there.
    data : bytes
        All that it holds.

    Raises
    ------
    DiskError, AnotherRunError
        As `cobasis.bundle.files.WholeFile`.

    Notes
    -----
    **Who sees what.** Its owner only: it has mode 0600.

    **Cost.** One write; it waits until the file and its name are on the disk.
    """
    with WholeFile(path, n_bytes=len(data)) as file:
        file.write(data, offset=0)


def copy_whole(
    source: Path, target: Path, *, on_copied: Callable[[], object] = lambda: None
) -> None:
    """Copy a file, so that all of the copy is on the disk, or what stood there before.

    Parameters
    ----------
    source : Path
        A file.
    target : Path
        Where the copy will stand; replaced if it is there.
    on_copied : callable
        Is called when all is copied, before the copy has its name.

    Raises
    ------
    DiskError, AnotherRunError
        The source cannot be read, or as `cobasis.bundle.files.WholeFile`.

    Notes
    -----
    A source that is written to meanwhile is copied as it was read: whoever has its digest compares.

    **Who sees what.** The copy's owner only: it has mode 0600.

    **Cost.** Its bytes once, a megabyte of memory.
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
        msg = f"'{path}' cannot be read: {error.strerror}. Check the disk it is on."
        raise DiskError(msg) from error


def move_whole(source: Path, target: Path) -> None:
    """Give a file another name on the same disk, and wait until the name is there.

    Parameters
    ----------
    source : Path
        A file.
    target : Path
        Where it will stand; replaced if it is there.

    Raises
    ------
    DiskError
        It cannot be moved; unless only the wait failed, it stands where it stood.

    Notes
    -----
    **Who sees what.** Whoever saw it before.

    **Cost.** None; no byte is copied.
    """
    try:
        source.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        msg = (
            f"'{source}' cannot be moved to '{target}': {error.strerror}. Free some space, or "
            "correct the rights, then start again."
        )
        raise DiskError(msg) from error


def remove_tree(path: Path) -> None:
    """Delete a file or a folder, if it is there, and wait until its name is gone.

    Parameters
    ----------
    path : Path
        A file, or a folder with all that is in it.

    Raises
    ------
    DiskError
        It cannot be deleted; some of it may be gone.

    Notes
    -----
    **Who sees what.** Files are unlinked, not overwritten.

    **Cost.** One call per file.
    """
    try:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        if path.parent.is_dir():
            sync_folder(path.parent)
    except OSError as error:
        msg = (
            f"'{path}' cannot be deleted: {error.strerror or error}. It may hold private numbers; "
            "delete it yourself, then start again."
        )
        raise DiskError(msg) from error
