"""The rounds by commands that the rows of the trials are told on."""

from cli.conftest import cobasis, made, sealed, terminal

__all__ = ["cobasis", "made", "sealed", "terminal"]
