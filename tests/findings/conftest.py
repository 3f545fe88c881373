"""The rounds by commands that the rows of the trials are told on."""

from cli.conftest import cobasis, made, ran, sealed, sent, terminal
from party_side.conftest import make, returns, uploaded, whole_round

__all__ = [
    "cobasis",
    "made",
    "make",
    "ran",
    "returns",
    "sealed",
    "sent",
    "terminal",
    "uploaded",
    "whole_round",
]
