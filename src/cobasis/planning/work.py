"""Operations that an alignment takes by the ODC paper's count (Table 2 and eqs. 36-80).

The paper counts what its own baselines' *full* decompositions take. What our streamed code does
is in :mod:`cobasis.planning.own`, with how long that takes.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Size:
    """The size of one alignment."""

    n_anchor_rows: int  # a
    n_components: int  # l
    n_parties: int  # c

    @property
    def letters(self) -> tuple[int, int, int]:
        """The same as ``(a, l, c)``, for formulas."""
        return self.n_anchor_rows, self.n_components, self.n_parties


def product(*, rows: float, inner: float, columns: float) -> float:
    """Return the operations of a matrix product (Table 2)."""
    return 2 * rows * inner * columns


def qr(*, rows: float, columns: float) -> float:
    """Return the operations of a Householder QR factorisation, without forming Q (Table 2)."""
    return 2 * rows * columns**2 - 2 / 3 * columns**3


def svd(*, rows: float, columns: float) -> float:
    """Return the operations of a thin singular value decomposition (Table 2, eqs. 36 and 53)."""
    small, large = sorted((rows, columns))
    return 4 * large * small**2 + 8 * small**3


def triangular_inverse(order: float) -> float:
    """Return the operations of inverting a triangle (Table 2, eq. 54)."""
    return order**3 / 3


def imakura(size: Size) -> float:
    """Return the operations of Imakura-DC by the paper's count (eqs. 36-39)."""
    a, l, c = size.letters  # noqa: E741 -- the paper's letter
    target = svd(rows=a, columns=c * l) + product(rows=a, inner=l, columns=l)
    each = svd(rows=a, columns=l) + product(rows=l, inner=a, columns=l)
    return target + c * each


def kawakami(size: Size) -> float:
    """Return the operations of Kawakami-DC by the paper's count (eqs. 51-57)."""
    a, l, c = size.letters  # noqa: E741 -- the paper's letter
    each = qr(rows=a, columns=l) + triangular_inverse(l) + l**3
    return svd(rows=a, columns=c * l) + c * each


def odc(size: Size) -> float:
    """Return the operations of ODC by the paper's count (eqs. 79 and 80).

    Examples
    --------
    >>> f"{odc(Size(n_anchor_rows=1000, n_components=50, n_parties=50)):.2e}"
    '3.50e+08'
    """
    a, l, c = size.letters  # noqa: E741 -- the paper's letter
    cross = product(rows=l, inner=a, columns=l)
    small = product(rows=l, inner=l, columns=l)
    return c * (cross + small + svd(rows=l, columns=l) + small)
