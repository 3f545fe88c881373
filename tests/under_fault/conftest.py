"""A folder in memory: a kill and a failing call are the same there, and thousands are quicker."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

SHARED = Path("/dev/shm")  # noqa: S108 -- a folder of its own is made in it


@pytest.fixture(scope="module")
def in_memory():
    """A folder that is gone with the module; on a disk where no memory can be had as one."""
    usable = SHARED.is_dir() and os.access(SHARED, os.W_OK)
    with tempfile.TemporaryDirectory(dir=SHARED if usable else None) as folder:
        yield Path(folder)


@pytest.fixture
def tell(capsys):
    """Print a figure that the documentation quotes, also where all goes well."""

    def telling(text):
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return telling
