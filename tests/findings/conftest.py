"""The rounds by commands that the rows of the trials are told on."""

from cli.conftest import cobasis, made, sealed, terminal
from party_side.conftest import make, returns, uploaded, whole_round

__all__ = ["cobasis", "made", "make", "returns", "sealed", "terminal", "uploaded", "whole_round"]
