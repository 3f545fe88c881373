<<<<<<< HEAD
"""What the tests under fault print."""
=======
"""How a test tells a figure."""
>>>>>>> b8b59593 (Test the analyst's promises by command, on one real round that receives, runs and removes)

import sys

import pytest


@pytest.fixture
def tell(capsys):
    """Print a figure that the documentation quotes, also where all goes well."""

    def telling(text):
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return telling
