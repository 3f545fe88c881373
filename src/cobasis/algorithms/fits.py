"""A target, a party's fit to it, and the two ways to fit: Procrustes and least squares."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from cobasis.algorithms import Scale
from cobasis.algorithms.images import Images, check_image, factored
from cobasis.errors import DimensionError, NotFiniteError, OptionError, UndeterminedFitError
from cobasis.linalg.arrays import Matrix, orthonormality_defect
from cobasis.linalg.polar import PolarFactor, polar

FitKind = Literal["rotation", "whitened rotation", "least squares"]
"""What makes a change of basis the right one; ``certificate.fit_error`` checks it."""

DETERMINED = 1e-8
"""Below this ratio of singular values the polar factor is arbitrary (rounding decides)."""

ROWS_A_COMPONENT = 2
"""How many rows a component tell a turn; as many as columns would be badly conditioned."""

WORTH = 3  # with less than so many times those rows, the product of all rows costs no more
_ROUNDING = 1e-12  # by how much of its length a turned image's product may differ from the target's

_NEARLY = 1e-7
"""A solution further than this from orthogonal is no turn. Of what a nearer one lacks one step
towards its polar factor leaves the square: rounding."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """What every anchor image is aligned to."""

    rows: Matrix = field(repr=False)  # Z
    shaped_by: tuple[str, ...]  # the parties whose trace Z carries, for as long as it is used
    iterations: int = 0
    converged: bool = True

    @cached_property
    def turned(self) -> "TurnedTarget":
        return TurnedTarget(self.rows)


@dataclass(frozen=True, kw_only=True)
class Fit:
    change_of_basis: Matrix = field(repr=False)  # G_i
    # smallest over largest singular value of what was inverted: 1 best, 0 arbitrary; of least
    # squares an estimate, where it is above 1e-5
    determination: float


def with_scale(rows: Matrix, *, gain: float, scale: Scale) -> Matrix:
    """Give a target its one global scalar, so that methods differ in shape and not in size."""
    # The gain is what the anchor makes of a unit vector, measured or given; l such columns have
    # the norm gain sqrt(l). Under an isometric anchor and orthonormal bases it is exactly one.
    if scale == "paper":
        return rows
    if scale != "measured":
        if not (isinstance(scale, (int, float)) and 0 < scale < np.inf):
            raise OptionError(
                f"scale={scale!r} is no scale. Give 'measured', 'paper' or a positive number."
            )
        gain = float(scale)
    return rows * float(gain * np.sqrt(rows.shape[1]) / np.linalg.norm(rows))


class TurnedTarget:
    r"""Finds the :math:`A_i = Z O_i` among images, and their :math:`G_i = O_i'`.

    Parties with one span under an isometric anchor send such images. Any few rows determine
    the turn, and one product of all rows with a vector tells whether there was no more to it:
    half to a fifth of the time of ``A_i' Z`` and its polar factor.
    """

    def __init__(self, rows: Matrix) -> None:
        self._rows, self._few = rows, rows[: ROWS_A_COMPONENT * rows.shape[1]]
        self._lengths = np.linalg.norm(self._few, axis=1)
        # It must miss no difference, and need not be secret; a fixed seed gives the same answers.
        self._vector = np.random.default_rng(0).standard_normal(rows.shape[1])

    @cached_property
    def _image(self) -> Matrix:
        return self._rows @ self._vector

    @cached_property
    def _inverse(self) -> Matrix | None:
        """What finds the turn from a few rows; None where they determine none."""
        if orthonormality_defect(self._rows) <= _ROUNDING:
            with suppress(np.linalg.LinAlgError):
                lower = np.linalg.cholesky(self._few.T @ self._few)
                return np.asarray(cho_solve((lower, True), self._few.T))
        return None

    def rotations(self, images: Images) -> dict[str, Matrix]:
        """Return the G_i of those images of a batch that are Z turned, if its last may be one."""
        found: dict[str, Matrix] = {}
        count, last = len(self._few), list(images.values())[-1]
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is not found
            # A turn leaves a row its length, so that other images cost no more than this.
            off = np.abs(np.linalg.norm(last[:count], axis=1) - self._lengths)
            if not np.all(off <= _NEARLY * self._lengths.max()) or self._inverse is None:
                return found
            turns = np.stack([self._inverse @ image[:count] for image in images.values()])
            excess = turns.transpose(0, 2, 1) @ turns - np.eye(turns.shape[-1])
            near = np.abs(excess).max(axis=(1, 2)) <= _NEARLY
            turns -= turns @ excess / 2
            allowed = _ROUNDING * np.linalg.norm(self._image)
            for (party, image), turn, each in zip(images.items(), turns, near, strict=True):
                seen = image @ (turn.T @ self._vector) if each else np.inf
                if np.linalg.norm(seen - self._image) <= allowed:
                    found[party] = turn.T
        return found


class Rotates:
    fit_kind: ClassVar[FitKind] = "rotation"

    def fits(self, images: Images, target: Target) -> Mapping[str, Fit]:
        """Rotate images onto the target by polar factors: ODC paper, Algorithm 4 and eq. (71)."""
        rows = target.rows
        width, components = next(iter(images.values())).shape[1], rows.shape[1]
        if width > components:
            for party, image in images.items():
                check_image(party, image)
                if orthonormality_defect(image) > DETERMINED:
                    raise DimensionError(
                        f"party '{party}' has {width} components, the target {components}: a "
                        "rotation cannot shorten a basis under this anchor. Take the party with "
                        "the most components as reference, or anchor='isometric'."
                    )
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
                # An image without full rank shows here; the checks that say what is wrong with it
                # cost as much as the fit, and are made only now.
                if values[-1] <= DETERMINED * max(values[0], energy):
                    _refuse_undetermined(party, others[party], rows, values)
                found[party] = Fit(
                    change_of_basis=turn, determination=float(values[-1] / values[0])
                )
        return {party: found[party] for party in images}


def turned_onto(images: Images, rows: Matrix) -> PolarFactor:
    """Return the polar factors of ``A_i' Z`` for images of one shape.

    An image that is not finite, or too large to square, is refused by name.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        products = np.stack([image.T @ rows for image in images.values()])
    try:
        return polar(products)
    except NotFiniteError:
        for party, image in images.items():
            check_image(party, image)
        raise


def _refuse_undetermined(party: str, image: Matrix, target: Matrix, values: Matrix) -> None:
    """Raise the error that explains a doubtful fit, if it is more than doubtful."""
    check_image(party, image)
    # Where all singular values are small together, an image is square to the target: what is left
    # of it is rounding of the product, and its ratios say nothing.
    scale = float(np.linalg.norm(image) * np.linalg.norm(target))
    lost = int(np.count_nonzero(values <= max(DETERMINED * values[0], 1e-12 * scale)))
    if lost:
        raise UndeterminedFitError(
            f"party '{party}' has {lost} of {len(values)} directions undetermined: nothing in the "
            "target corresponds to them, so its rotation would be arbitrary. Check that all "
            "parties use the same features and anchor, lower n_components, or use "
            "basis='consensus'; where they hold different columns, an anchor of public rows.",
            (party,),
        )


class Solves:
    """An aligner whose fits are least squares: the G that minimise ``||A_i G - Z||``."""

    fit_kind: ClassVar[FitKind] = "least squares"

    def fits(self, images: Images, target: Target) -> Mapping[str, Fit]:
        """Fit images to the target by least squares."""
        fits = dict[str, Fit]()
        for party, image in images.items():
            orthonormal, triangle, determination = factored(party, image)
            change = solve_triangular(triangle, orthonormal.T @ target.rows)
            fits[party] = Fit(change_of_basis=change, determination=determination)
        return fits
