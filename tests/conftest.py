"""What saves minutes: which tests share one process.

A file's tests go to one process, so that what they share is made once; two whole rounds, made by
typing the tutorials, are made once for all tests of the walk, which begin.
"""

import gc
import os
import tempfile
from functools import cache
from pathlib import Path

import pytest
import typer.testing
from xdist.scheduler import LoadScopeScheduling

gc.disable()  # while all is imported: it would look for garbage for a third of that time
typer.testing._get_command = cache(typer.testing._get_command)  # anew it takes 11 ms a line typed


def fsync(_):
    """Nobody pulls the plug on a test: who dies is a process, whose bytes the system keeps."""


os.fsync = fsync
HERE = Path(__file__).parent
HOSPITALS = "test_hospitals.py"
"""Of the walk's tests those that make rounds of their own."""

SHARED = Path("/dev/shm")  # noqa: S108 -- a folder of its own is made in it


@pytest.fixture(scope="module")
def in_memory():
    """A folder in memory, where kills and failing calls are the same as on a disk, and quicker.

    On a disk where no memory can be had as one. It is gone with the module.
    """
    usable = SHARED.is_dir() and os.access(SHARED, os.W_OK)
    with tempfile.TemporaryDirectory(dir=SHARED if usable else None) as folder:
        yield Path(folder)


class ByFile(LoadScopeScheduling):
    """Gives a process one file after the other, and the walk's files as one."""

    def _split_scope(self, nodeid):
        path = Path(nodeid.partition("::")[0])
        return str(path.parent if path.parent.name == "walk" and path.name != HOSPITALS else path)


def pytest_xdist_make_scheduler(config, log):
    return ByFile(config, log)


def pytest_runtest_setup(item):
    for path in (each.args[0] for each in item.iter_markers("data")):
        if not (Path(os.environ.get("COBASIS_DATA", "nowhere")) / path).exists():
            pytest.skip(f"COBASIS_DATA names no folder with {path}")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.path.is_relative_to(HERE / "walk"))  # the longest first
    gc.freeze()
    gc.enable()
