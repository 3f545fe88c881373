"""Bytes that travel, operations and memory, as the ODC paper counts them.

Of work and memory the paper gives leading terms; each function says what it counts for the rest.
All methods hold every anchor image and take *full* decompositions, because the paper's procedures
do. Our streamed code does less of both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

BYTES_PER_NUMBER = 8  # float64


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What travels in a round, in the paper's terms."""

    n_parties: int  # c
    n_rows: float  # of one party, as mean over parties
    n_anchor_rows: int  # a
    n_features: int  # m
    n_components: int  # l
    n_parameters: int  # N
    bits: int = 64  # q
    # gamma: c where each party is sent one, 0 where a shared secret makes it
    anchor_copies: float = 0


def upload_bytes(exchange: Traffic) -> float:
    """Return what one party sends (eq. 10)."""
    numbers = (exchange.n_rows + exchange.n_anchor_rows) * exchange.n_components
    return numbers * exchange.bits / 8


def return_bytes(exchange: Traffic) -> float:
    """Return what one party is sent (eq. 11)."""
    return (exchange.n_components**2 + exchange.n_parameters) * exchange.bits / 8


def anchor_bytes(exchange: Traffic) -> float:
    """Return what all copies of the anchor take (eqs. 12 and 13)."""
    one = exchange.n_anchor_rows * exchange.n_features * exchange.bits / 8
    return exchange.anchor_copies * one


def round_bytes(exchange: Traffic) -> float:
    """Return what one whole round takes (eq. 14; eq. 17 is that it is linear in the bits)."""
    each = upload_bytes(exchange) + return_bytes(exchange)
    return exchange.n_parties * each + anchor_bytes(exchange)


def federated_bytes(exchange: Traffic, *, rounds: float, participation: float = 1) -> float:
    """Return what federated learning takes (eq. 15)."""
    model = exchange.n_parameters * exchange.bits / 8
    return 2 * rounds * participation * exchange.n_parties * model


def break_even_rounds(exchange: Traffic, *, participation: float = 1) -> float:
    """Return after how many federated rounds one of ours has taken less (eq. 16)."""
    return round_bytes(exchange) / federated_bytes(exchange, rounds=1, participation=participation)


def transfer_seconds(
    n_bytes: float, *, bits_per_second: float, trips: float, delay: float
) -> float:
    """Return how long bytes are on their way (eq. 18)."""
    return 8 * n_bytes / bits_per_second + trips * delay


class Size(NamedTuple):
    """The size of one alignment."""

    n_anchor_rows: int  # a
    n_components: int  # l
    n_parties: int  # c


def _product(*, rows: float, inner: float, columns: float) -> float:
    """Count a matrix product (Table 2)."""
    return 2 * rows * inner * columns


def _svd(*, rows: float, columns: float) -> float:
    """Count a thin singular value decomposition (Table 2, eqs. 36 and 53)."""
    small, large = sorted((rows, columns))
    return 4 * large * small**2 + 8 * small**3


def _imakura_operations(size: Size) -> float:
    """Count one decomposition of all images, and one and a product for each (eqs. 36-39)."""
    a, l, c = size  # noqa: E741 -- the paper's letter
    target = _svd(rows=a, columns=c * l) + _product(rows=a, inner=l, columns=l)
    return target + c * (_svd(rows=a, columns=l) + _product(rows=l, inner=a, columns=l))


def _kawakami_operations(size: Size) -> float:
    """Count one decomposition, and for each image a QR factorisation and two solves (eqs. 51-57).

    The factorisation does not form Q; inverting a triangle takes l^3 / 3 (Table 2, eq. 54).
    """
    a, l, c = size  # noqa: E741 -- the paper's letter
    qr = 2 * a * l**2 - 2 / 3 * l**3
    return _svd(rows=a, columns=c * l) + c * (qr + l**3 / 3 + l**3)


def _odc_operations(size: Size) -> float:
    """Count two small products, a cross product and a small decomposition each (eqs. 79, 80)."""
    a, l, c = size  # noqa: E741 -- the paper's letter
    small = _product(rows=l, inner=l, columns=l)
    return c * (_product(rows=l, inner=a, columns=l) + _svd(rows=l, columns=l) + 2 * small)


def _imakura_numbers(size: Size) -> int:
    """Count images, target and factors, and the smaller side's square as workspace (eqs. 41-46)."""
    a, l, c = size  # noqa: E741 -- the paper's letter
    workspace = min(a, c * l) ** 2
    return a * c * l + max(a * l + workspace, 2 * a * l + l**2, a * l + c * l**2)


def _kawakami_numbers(size: Size) -> int:
    """Count images, all changes of basis twice, and the same workspace (eqs. 59-66)."""
    a, l, c = size  # noqa: E741 -- the paper's letter
    workspace = min(a, c * l) ** 2
    return a * c * l + max(a * l, c * l**2 + workspace, 2 * c * l**2)


def _odc_numbers(size: Size) -> int:
    """Count images, changes of basis and four small matrices (eqs. 82-84)."""
    a, l, c = size  # noqa: E741 -- the paper's letter
    return a * c * l + c * l**2 + 4 * l**2


OPERATIONS: Mapping[str, Callable[[Size], float]] = {
    "imakura": _imakura_operations,
    "kawakami": _kawakami_operations,
    "odc": _odc_operations,
}
NUMBERS: Mapping[str, Callable[[Size], int]] = {
    "imakura": _imakura_numbers,
    "kawakami": _kawakami_numbers,
    "odc": _odc_numbers,
}
"""What each method holds at its peak."""
