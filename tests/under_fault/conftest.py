"""The warm interpreter, started once, and what the tests print."""

import sys

import pytest

from under_fault.warm import Warm


@pytest.fixture(scope="session")
def warm():
    made = Warm()
    yield made
    made.close()


@pytest.fixture
def tell(capsys):
    """Print a figure that the documentation quotes, also where all goes well."""

    def telling(text):
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return telling
