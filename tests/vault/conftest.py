import pytest

from vault.vaults import open_vault


@pytest.fixture
def again(tmp_path):
    """Opens the vault once more, as a next command does."""
    return lambda: open_vault(tmp_path / "north")


@pytest.fixture
def vault(again):
    return again()
