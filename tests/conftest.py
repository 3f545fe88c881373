"""What saves minutes: where coverage is counted, and which tests share one process.

Coverage is counted where the packages that it gates are imported and tested. A file's tests go to
one process, so that what they share is made once; two whole rounds, made by typing the tutorials,
are made once for all tests of the walk, which begin.
"""

import gc
import importlib
import os
import pkgutil
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
COUNTED = ("algorithms", "linalg", "protocol", "regressions", "analyst_side", "vault")
COUNTED += ("bundle/test_receipts.py", "findings/test_fitted.py", "findings/test_tried.py")
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


def count(config, *, on):
    """Let coverage count from here on, or not; say whether it can, in a process that tests."""
    counter = getattr(config.pluginmanager.getplugin("_cov"), "cov_controller", None)
    if counter is None or config.pluginmanager.hasplugin("dsession"):
        return False
    if counter.started != on:
        (counter.resume if on else counter.pause)()
    return True


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Import what is counted, and then the rest uncounted, which takes half of the time."""
    if count(session.config, on=True):
        for name in ("linalg", "algorithms", "protocol"):
            package = importlib.import_module(f"cobasis.{name}")
            for module in pkgutil.iter_modules(package.__path__, f"cobasis.{name}."):
                importlib.import_module(module.name)
    count(session.config, on=False)
    return (yield)


def pytest_runtest_setup(item):
    for path in (each.args[0] for each in item.iter_markers("data")):
        if not (Path(os.environ.get("COBASIS_DATA", "nowhere")) / path).exists():
            pytest.skip(f"COBASIS_DATA names no folder with {path}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    count(item.config, on=any(item.path.is_relative_to(HERE / each) for each in COUNTED))
    return (yield)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.path.is_relative_to(HERE / "walk"))  # the longest first
    gc.freeze()
    gc.enable()
