"""The warm interpreter, what it builds for kills and failing calls, and what the tests print."""

import sys
import tempfile
from pathlib import Path

import pytest

from under_fault.warm import Warm


@pytest.fixture(scope="session")
def warm():
    made = Warm()
    yield made
    made.close()


@pytest.fixture(scope="session")
def stages(warm):
    """Folders just before each command, in memory; they are copied, and never worked in."""
    shared = Path("/dev/shm")  # noqa: S108 -- a folder of its own is made in it
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        warm.ask("build", folder=folder)
        yield Path(folder)


@pytest.fixture
def tell(capsys):
    """Print a figure that the documentation quotes, also where all goes well."""

    def telling(text):
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return telling
