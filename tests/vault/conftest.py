"""A vault in a folder of its own, and the same one opened again."""

import pytest

from vault.vaults import open_vault


@pytest.fixture
def again(tmp_path):
    """Opens the vault once more, as a next command does."""
    return lambda: open_vault(tmp_path / "north")


@pytest.fixture
def vault(again):
    return again()
