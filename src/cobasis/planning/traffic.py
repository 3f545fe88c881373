"""Bytes that travel: Data Collaboration against federated learning (ODC paper, eqs. 10-18)."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """What is exchanged, in the paper's terms."""

    n_parties: int  # c
    n_rows: float  # of one party, as mean over parties
    n_anchor_rows: int  # a
    n_features: int  # m
    n_components: int  # l
    n_parameters: int  # N
    bits: int = 64  # q
    # gamma: c where each party is sent one, 0 where a shared secret makes it
    anchor_copies: float = 0


def upload_bytes(exchange: Exchange) -> float:
    """Return what one party sends (eq. 10)."""
    numbers = (exchange.n_rows + exchange.n_anchor_rows) * exchange.n_components
    return numbers * exchange.bits / 8


def return_bytes(exchange: Exchange) -> float:
    """Return what one party is sent (eq. 11)."""
    return (exchange.n_components**2 + exchange.n_parameters) * exchange.bits / 8


def anchor_bytes(exchange: Exchange) -> float:
    """Return what all copies of the anchor take (eqs. 12 and 13)."""
    one = exchange.n_anchor_rows * exchange.n_features * exchange.bits / 8
    return exchange.anchor_copies * one


def round_bytes(exchange: Exchange) -> float:
    """Return what one whole round takes (eq. 14; eq. 17 is that it is linear in the bits).

    Examples
    --------
    The paper's hundred hospitals, eq. 19:

    >>> paper = Exchange(n_parties=100, n_rows=1000, n_anchor_rows=1000, n_features=784,
    ...     n_components=100, n_parameters=25_000_000, bits=32, anchor_copies=100)
    >>> f"{round_bytes(paper) / 1e9:.4f} GB"
    '10.3976 GB'
    """
    each = upload_bytes(exchange) + return_bytes(exchange)
    return exchange.n_parties * each + anchor_bytes(exchange)


def federated_bytes(exchange: Exchange, *, rounds: float, participation: float = 1) -> float:
    """Return what federated learning takes (eq. 15)."""
    model = exchange.n_parameters * exchange.bits / 8
    return 2 * rounds * participation * exchange.n_parties * model


def break_even_rounds(exchange: Exchange, *, participation: float = 1) -> float:
    """Return after how many federated rounds one of ours has taken less (eq. 16)."""
    return round_bytes(exchange) / federated_bytes(exchange, rounds=1, participation=participation)


def transfer_seconds(
    n_bytes: float, *, bits_per_second: float, trips: float, delay: float
) -> float:
    """Return how long bytes are on their way (eq. 18)."""
    return 8 * n_bytes / bits_per_second + trips * delay
