"""Anchor images as they come in: checked before anything is fitted to them."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from cobasis.errors import AnchorImageError, ConditionError, ShapeError
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.linalg.spans import numerical_rank

Images = Mapping[str, Matrix]

MAX_CONDITION = 1e10
"""Above this an inverse keeps fewer than six digits."""


def check_images(images: Images) -> Images:
    """Check all anchor images against each other.

    Parameters
    ----------
    images : mapping of str to ndarray of shape (n_anchor_rows, n_components)
        The A_i by party name.

    Returns
    -------
    mapping of str to ndarray
        The same, as read-only mapping of float64 tables.

    Raises
    ------
    ShapeError
        No image, or one with another number of rows.
    NotFiniteError, DtypeError, AnchorImageError, ConditionError
        See :func:`check_image`.

    Notes
    -----
    **Who sees what.** Anchor images only.

    **Cost.** One QR factorisation of each image.
    """
    if not images:
        msg = "there is no anchor image, so there is nothing to align. Collect uploads first."
        raise ShapeError(msg)
    checked: dict[str, Matrix] = {}
    n_rows: int | None = None
    for name, image in images.items():
        checked[name] = check_image(name, image, n_rows=n_rows)
        n_rows = checked[name].shape[0]
    return MappingProxyType(checked)


def check_image(party: str, image: Matrix, *, n_rows: int | None) -> Matrix:
    """Check one anchor image: finite, of full column rank, well enough conditioned.

    Parameters
    ----------
    party : str
        For the message.
    image : ndarray of shape (n_anchor_rows, n_components)
        A_i.
    n_rows : int or None
        How many rows the others have; None for the first.

    Returns
    -------
    ndarray of shape (n_anchor_rows, n_components)
        The image as float64.

    Raises
    ------
    NotFiniteError, DtypeError, ShapeError
        It is no finite table of that many rows, at least as many as columns.
    AnchorImageError
        It is zero or rank-deficient.
    ConditionError
        Its condition number is above 1e10.

    Notes
    -----
    **Who sees what.** Anchor images only.

    **Cost.** One QR factorisation.
    """
    table = as_matrix(image, name=f"the anchor image of party '{party}'")
    rows, columns = table.shape
    expected = rows if n_rows is None else n_rows
    if rows != expected or rows < columns:
        msg = (
            f"the anchor image of party '{party}' has shape {table.shape}; the round's anchor has "
            f"{expected} rows, and an image needs at least as many rows as columns. "
            "Send A F_i itself: anchor rows down, components across."
        )
        raise ShapeError(msg)
    _refuse_deficient(party, table)
    return table


def _refuse_deficient(party: str, table: Matrix) -> None:
    """Raise unless the image has full column rank and a usable condition number."""
    columns = table.shape[1]
    if not table.any():
        msg = (
            f"the anchor image of party '{party}' is zero, so it shows no basis at all. "
            "Ask the party to prepare its upload again."
        )
        raise AnchorImageError(msg)
    values = np.linalg.svd(np.linalg.qr(table, mode="r"), compute_uv=False)
    rank = numerical_rank(values, table.shape)
    if rank < columns:
        msg = (
            f"the anchor image of party '{party}' has rank {rank} of {columns} components, so "
            f"{columns - rank} direction(s) of its basis cannot be aligned. Use an anchor with at "
            f"least {columns} independent rows, or n_components={rank} at every party."
        )
        raise AnchorImageError(msg)
    condition = float(values[0] / values[-1])
    if condition > MAX_CONDITION:
        msg = (
            f"the anchor image of party '{party}' has condition number {condition:.1e}, above "
            f"{MAX_CONDITION:.0e}: its inverse would keep no usable digits. Ask the party for an "
            "orthonormal basis."
        )
        raise ConditionError(msg)
