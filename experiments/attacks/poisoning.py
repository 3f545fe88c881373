"""A party that sends something else than it should: what is spoiled, and by how much.

Each class takes a release as its party made it and returns the one it sends instead. What a
round makes of it, and whether the certificate notices, is shown in the tests.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cobasis.errors import OptionError, ShapeError
from cobasis.linalg.arrays import as_matrix
from cobasis.privacy.attacks.release import Release
from experiments.attacks.anchor_image import image_of


@dataclass(frozen=True, kw_only=True)
class AnotherAnchor:
    """The image of an anchor that is not the consortium's: a wrong seed, or no anchor at all."""

    rng: np.random.Generator

    def spoil(self, release: Release) -> Release:
        """Replace the anchor image by unrelated directions of the same size."""
        image = image_of(release)
        drawn = np.linalg.qr(self.rng.normal(size=image.shape))[0]
        size = np.linalg.norm(image) / np.linalg.norm(drawn)
        return replace(release, anchor_image=drawn * size)


@dataclass(frozen=True, kw_only=True)
class OtherScale:
    """Rows many times larger or smaller than everybody else's."""

    factor: float
    with_image: bool = False

    def spoil(self, release: Release) -> Release:
        """Multiply the rows, and the image where asked."""
        rows = as_matrix(release.rows, name="the release's rows") * self.factor
        image = image_of(release) * self.factor if self.with_image else release.anchor_image
        return replace(release, rows=rows, anchor_image=image)


@dataclass(frozen=True, kw_only=True)
class WrongLabels:
    """Labels changed to another class."""

    share: float
    rng: np.random.Generator

    def spoil(self, release: Release) -> Release:
        """Give some rows the next class, in the order of the classes; the last gets the first."""
        if not 0 <= self.share <= 1:
            raise OptionError(
                f"share={self.share} is no share of the rows. Give a number from 0 to 1."
            )
        labels: npt.NDArray[Any] = np.asarray([] if release.labels is None else release.labels)
        classes, places = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ShapeError(
                f"the release has labels of {len(classes)} classes, and 2 are needed. Give more."
            )
        count = round(self.share * len(labels))
        changed = self.rng.choice(len(labels), size=count, replace=False)
        wrong = labels.copy()
        wrong[changed] = classes[(places[changed] + 1) % len(classes)]
        return replace(release, labels=wrong)


@dataclass(frozen=True, kw_only=True)
class TurnedRows:
    """Rows turned by a rotation that the anchor image is not turned by."""

    rng: np.random.Generator

    def spoil(self, release: Release) -> Release:
        """Turn the rows: lengths, distances and image stay, so each part looks as it should."""
        rows = as_matrix(release.rows, name="the release's rows")
        turn = np.linalg.qr(self.rng.normal(size=(rows.shape[1], rows.shape[1])))[0]
        return replace(release, rows=rows @ turn)
