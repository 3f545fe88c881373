"""The rounds by commands that the rows of the trials are told on."""

from cli.conftest import cobasis, made, ran, sealed, sent, terminal  # noqa: F401 -- fixtures
from party_side.conftest import make, returns, uploaded, whole_round  # noqa: F401 -- same
