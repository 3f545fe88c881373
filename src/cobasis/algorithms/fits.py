"""The two fits of the family, a batch of parties at a time: Procrustes and least squares."""

import numpy as np

from cobasis.algorithms.base import Fit, Target
from cobasis.algorithms.images import Images, check_image, least_squares
from cobasis.errors import DimensionError, NotFiniteError, UndeterminedFitError
from cobasis.linalg.arrays import Matrix, orthonormality_defect
from cobasis.linalg.polar import PolarFactor, polar

DETERMINED = 1e-8
"""Below this ratio of singular values the polar factor is arbitrary (rounding decides)."""

SMALL = 100**3
"""Multiplications that OpenBLAS still counts as a small product."""


def procrustes_fits(images: Images, target: Target) -> dict[str, Fit]:
    r"""Find the orthogonal G closest to the target: the polar factors of :math:`A_i' Z`.

    An image that is not finite, or not of full rank, shows in ``A_i' Z``; the checks that
    say which of the two it was cost as much as the fit and are made only then.

    ODC paper, Algorithm 4 and eq. (71).
    """
    width, components = next(iter(images.values())).shape[1], target.rows.shape[1]
    if width > components:
        for party, table in images.items():
            _refuse_oblique(party, table, components)
    turns = target.turned.rotations(images)
    found = {party: Fit(change_of_basis=turn, determination=1.0) for party, turn in turns.items()}
    others = {party: image for party, image in images.items() if party not in found}
    if others:
        found |= _by_products(others, target)
    return {party: found[party] for party in images}


def _by_products(images: Images, target: Target) -> dict[str, Fit]:
    """Fit images of any spans, or refuse those whose directions Z does not determine."""
    factor = turned_onto(images, target.rows)
    largest, smallest = factor.singular_values[:, 0], factor.singular_values[:, -1]
    doubtful = smallest <= DETERMINED * np.maximum(largest, target.column_energy)
    for index in np.flatnonzero(doubtful):
        values = factor.singular_values[index]
        party, image = list(images.items())[index]
        _refuse_undetermined(party, image, target.rows, values)
    determination = smallest / largest
    return {
        party: Fit(change_of_basis=rotation, determination=float(determined))
        for party, rotation, determined in zip(images, factor.rotation, determination, strict=True)
    }


def turned_onto(images: Images, rows: Matrix) -> PolarFactor:
    """Return the polar factors of ``A_i' Z`` for images of one shape.

    An image that is not finite, or too large to square, is refused by name.
    """
    try:
        return polar(_products(images, rows))
    except NotFiniteError:
        for party, image in images.items():
            check_image(party, image, n_rows=None)
        raise


def _products(images: Images, rows: Matrix) -> Matrix:
    """Return the ``A_i' Z``, by blocks of rows where that is what BLAS multiplies fastest.

    OpenBLAS copies neither factor of a small product, and faster with the left one turned:
    up to l = 100 that takes half to nine tenths of the time of one product a party. All blocks
    of an image are one call: between calls threads wait for the interpreter's lock.
    """
    tables, (n_rows, components) = list(images.values()), rows.shape
    width = tables[0].shape[1]
    parts = _parts(n_rows, SMALL // (components * width), least=max(components, width))
    size = n_rows // parts
    whole = parts * size
    left = rows[:whole].reshape(parts, size, components).transpose(0, 2, 1)
    turned = np.empty((len(tables), components, width))
    for index, image in enumerate(tables):
        blocks = image[:whole].reshape(parts, size, width)
        np.add.reduce(left @ blocks, axis=0, out=turned[index])
        if whole < n_rows:
            turned[index] += rows[whole:].T @ image[whole:]
    return np.ascontiguousarray(turned.transpose(0, 2, 1))


def _parts(n_rows: int, most: int, *, least: int) -> int:
    """Return into how many parts of at most `most` rows to cut, without a rest if that goes.

    One where parts would have fewer than `least`.
    """
    if most < least:
        return 1
    few = -(-n_rows // most)
    return next((parts for parts in range(few, 2 * few) if n_rows % parts == 0), few)


def _refuse_oblique(party: str, image: Matrix, components: int) -> None:
    """Raise DimensionError for an image that is wider than the target and not orthonormal."""
    check_image(party, image, n_rows=None)
    if orthonormality_defect(image) > DETERMINED:
        raise DimensionError(
            f"party '{party}' has {image.shape[1]} components, the target {components}: a "
            "rotation cannot shorten a basis under this anchor. Take the party with the most "
            "components as reference, or anchor='isometric'."
        )


def _refuse_undetermined(party: str, image: Matrix, target: Matrix, values: Matrix) -> None:
    """Raise the error that explains a doubtful fit, if it is more than doubtful."""
    check_image(party, image, n_rows=None)
    scale = float(np.linalg.norm(image) * np.linalg.norm(target))
    lost = int(np.count_nonzero(values <= max(DETERMINED * values[0], 1e-12 * scale)))
    if lost:
        raise UndeterminedFitError(
            (
                f"{lost} of the {len(values)} directions of party '{party}' are undetermined: "
                "nothing in the target corresponds to them, so its rotation would be arbitrary. "
                "Check that all parties use the same features and anchor, lower n_components, or "
                "use basis='consensus'."
            ),
            (party,),
        )


def least_squares_fits(images: Images, target: Matrix) -> dict[str, Fit]:
    """Find the G that minimise ``||A_i G - Z||``."""
    fits: dict[str, Fit] = {}
    for party, image in images.items():
        change, determination = least_squares(party, image, target=target)
        fits[party] = Fit(change_of_basis=change, determination=determination)
    return fits
