"""How badly two anchor images match, and how badly unrelated ones would."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Self

import numpy as np

from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS, AnchorKind
from cobasis.algorithms.images import Images
from cobasis.linalg.arrays import Matrix

_DRAWS = 5

_ROUNDING = 1e-12
"""Below this a residual is rounding: the images match."""


def centred_if(centred: bool, image: Matrix) -> Matrix:  # noqa: FBT001
    """Return the image, without its column means where that is asked."""
    return image - image.mean(axis=0) if centred else image


def pair_residual(first: Matrix, second: Matrix) -> float:
    """Return ``1 - ||A_i' A_j||_* / (||A_i||_F ||A_j||_F)``: 0 where a rotation matches them."""
    return SideBySide.of([second]).residuals(first)[0]


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """Some anchor images as one table, so that one product compares another with all of them.

    Attributes
    ----------
    table : ndarray of shape (n_anchor_rows, sum of widths)
        The images.
    widths : tuple of int
        How many columns each has.
    lengths : ndarray of shape (n_images,)
        Their Frobenius norms.
    """

    table: Matrix
    widths: tuple[int, ...]
    lengths: Matrix

    @classmethod
    def of(cls, images: Iterable[Matrix]) -> Self:
        """Copy images into one table."""
        given = list(images)
        return cls(
            table=np.hstack(given),
            widths=tuple(each.shape[1] for each in given),
            lengths=np.array([np.linalg.norm(each) for each in given]),
        )

    def images(self) -> list[Matrix]:
        """Return the images, as parts of the table."""
        return np.hsplit(self.table, np.cumsum(self.widths)[:-1])

    def after(self, number: int) -> Self:
        """Return what stands behind an image, uncopied."""
        start = sum(self.widths[: number + 1])
        widths, lengths = self.widths[number + 1 :], self.lengths[number + 1 :]
        return replace(self, table=self.table[:, start:], widths=widths, lengths=lengths)

    def residuals(self, image: Matrix) -> list[float]:
        """Return the `pair_residual` of an image with each of these."""
        found = np.hsplit(image.T @ self.table, np.cumsum(self.widths)[:-1])
        products = np.zeros((len(found), image.shape[1], max(self.widths)))
        for product, part in zip(products, found, strict=True):
            product[:, : part.shape[1]] = part  # columns of zeros change no value
        nuclear = np.linalg.svd(products, compute_uv=False).sum(axis=1)
        residuals = 1.0 - nuclear / (np.linalg.norm(image) * self.lengths)
        return [float(each) if each > _ROUNDING else 0.0 for each in residuals]


def unrelated_residual(
    images: Images,
    *,
    n_components: int,
    anchor: AnchorKind,
    n_features: int,
    rng: np.random.Generator,
) -> float:
    """Return the mean residual of bases that have nothing to do with each other."""
    n_rows = next(iter(images.values())).shape[0]
    if anchor in FROM_PUBLIC_ROWS:
        drawn = [image[rng.permutation(n_rows)] for image in list(images.values())[:_DRAWS]]
        drawn = drawn if len(drawn) > 1 else [*drawn, *(d[rng.permutation(n_rows)] for d in drawn)]
    else:
        drawn = _unrelated_images(anchor, n_rows, n_features, n_components, rng)
    return float(np.mean([pair_residual(one, two) for one, two in combinations(drawn, 2)]))


def _unrelated_images(
    anchor: AnchorKind, n_rows: int, n_features: int, size: int, rng: np.random.Generator
) -> list[Matrix]:
    """Draw images of Haar bases under one anchor, through a basis of all of them together.

    With ``[F_1 ... F_k] = Q R`` the images are blocks of ``(A Q) R``: A Q is an isometry for
    an isometric anchor, which no residual notices, and i.i.d. Gaussian for a Gaussian one
    (and, to within its fourth moment, for a centred uniform one).
    """
    bases = [np.linalg.qr(rng.normal(size=(n_features, size)))[0] for _ in range(_DRAWS)]
    blocks = np.linalg.qr(np.hstack(bases))[1]
    mixed = blocks if anchor == "isometric" else rng.normal(size=(n_rows, len(blocks))) @ blocks
    return list(np.hsplit(mixed, _DRAWS))
