"""The two fits of the family, a batch of parties at a time: Procrustes and least squares."""

import numpy as np

from cobasis.algorithms.base import Fit, Target
from cobasis.algorithms.images import Images, check_image, least_squares
from cobasis.algorithms.one_span import ROWS_A_COMPONENT, WORTH
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
    rows = target.rows
    width, components = next(iter(images.values())).shape[1], rows.shape[1]
    if width > components:
        for party, table in images.items():
            _refuse_oblique(party, table, components)
    found: dict[str, Fit] = {}
    if width == components and len(rows) >= WORTH * ROWS_A_COMPONENT * components:
        for party, turn in target.turned.rotations(images).items():
            found[party] = Fit(change_of_basis=turn, determination=1.0)
    others = {party: image for party, image in images.items() if party not in found}
    if others:
        factor = turned_onto(others, rows)
        energy = float(np.vdot(rows, rows)) / components  # of a column of Z, in the mean
        for party, turn, values in zip(
            others, factor.rotation, factor.singular_values, strict=True
        ):
            if values[-1] <= DETERMINED * max(values[0], energy):
                _refuse_undetermined(party, others[party], rows, values)
            found[party] = Fit(change_of_basis=turn, determination=float(values[-1] / values[0]))
    return {party: found[party] for party in images}


def turned_onto(images: Images, rows: Matrix) -> PolarFactor:
    """Return the polar factors of ``A_i' Z`` for images of one shape.

    An image that is not finite, or too large to square, is refused by name.

    The products go by blocks of rows where that is what BLAS multiplies fastest. OpenBLAS
    copies neither factor of a small product, and faster with the left one turned: up to l = 100
    that takes half to nine tenths of the time of one product a party. All blocks of an image
    are one call: between calls threads wait for the interpreter's lock.
    """
    tables, (n_rows, components) = list(images.values()), rows.shape
    width = tables[0].shape[1]
    parts, most = 1, SMALL // (components * width)
    if most >= max(components, width):  # of fewer rows the sum of parts would cost too much
        few = -(-n_rows // most)
        parts = next((n for n in range(few, 2 * few) if n_rows % n == 0), few)  # without a rest
    size = n_rows // parts
    whole = parts * size
    left = rows[:whole].reshape(parts, size, components).transpose(0, 2, 1)
    turned = np.empty((len(tables), components, width))
    for index, image in enumerate(tables):
        blocks = image[:whole].reshape(parts, size, width)
        np.add.reduce(left @ blocks, axis=0, out=turned[index])
        if whole < n_rows:
            turned[index] += rows[whole:].T @ image[whole:]
    try:
        return polar(np.ascontiguousarray(turned.transpose(0, 2, 1)))
    except NotFiniteError:
        for party, image in images.items():
            check_image(party, image, n_rows=None)
        raise


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
