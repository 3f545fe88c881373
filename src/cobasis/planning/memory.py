"""Numbers that an alignment holds at its peak by the ODC paper's count (eqs. 41-66 and 82-84).

The paper gives leading terms and leaves the rest to O(...). Each function here says what it
counts for the rest. Multiply by 8 for bytes. All three hold every anchor image, because the
paper's procedures do; what our streamed code holds is in :mod:`cobasis.planning.own`.
"""

from cobasis.planning.work import Size

BYTES_PER_NUMBER = 8
"""float64."""


def imakura(size: Size) -> int:
    """Return how many numbers Imakura-DC holds at its peak (eqs. 41-46)."""
    a, l, c = size.letters  # noqa: E741 -- the paper's letter
    images, workspace = a * c * l, min(a, c * l) ** 2
    return images + max(a * l + workspace, 2 * a * l + l**2, a * l + c * l**2)


def kawakami(size: Size) -> int:
    """Return how many numbers Kawakami-DC holds at its peak (eqs. 59-66)."""
    a, l, c = size.letters  # noqa: E741 -- the paper's letter
    images, workspace = a * c * l, min(a, c * l) ** 2
    return images + max(a * l, c * l**2 + workspace, 2 * c * l**2)


def odc(size: Size) -> int:
    """Return how many numbers ODC holds at its peak (eqs. 82-84).

    Examples
    --------
    >>> size = Size(n_anchor_rows=1000, n_components=50, n_parties=50)
    >>> f"{odc(size) * BYTES_PER_NUMBER / 1e6:.1f} MB"
    '21.1 MB'
    """
    a, l, c = size.letters  # noqa: E741 -- the paper's letter
    return a * c * l + c * l**2 + 4 * l**2
