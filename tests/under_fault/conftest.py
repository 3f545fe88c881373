"""What the tests under fault print."""

import sys

import pytest


@pytest.fixture
def tell(capsys):
    """Print a figure that the documentation quotes, also where all goes well."""

    def telling(text):
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return telling
