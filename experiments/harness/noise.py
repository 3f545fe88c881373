"""Noise on what is released: the papers' way, which guarantees nothing, and the honest one.

The papers take "normalised within the range r = 1" for a distance of 1 between any two rows.
Pixels in [0, 1] are up to ``sqrt(m)`` apart, and a basis that rows have shaped lets one record
move all of them, so their epsilon is a label of a noise level and no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cobasis.privacy.gaussian import noise_scale
from cobasis.privacy.sensitivity import clip_rows, sensitivity_of
from experiments.harness.models import Table
from experiments.harness.systems import Dealt, generator
from experiments.harness.uploads import Uploads

PAPERS_NOISE = "papers' noise, no guarantee"
PAPERS_RANGE, PAPERS_DELTA = 1.0, 1e-3
IMAGES_STREAM, PIXELS_STREAM = 3, 4  # what the generators of noise are told apart by
Singles = npt.NDArray[np.float32]


def papers_scale(epsilon: float) -> float:
    """Return the papers' sigma: the right formula with D = r = 1, the wrong sensitivity."""
    return noise_scale(epsilon=epsilon, delta=PAPERS_DELTA, sensitivity=PAPERS_RANGE)


def on_pixels(pixels: Singles | Table, *, noise: float, rng: np.random.Generator) -> None:
    """Add noise to raw rows in place: what the papers' face table calls DP."""
    for number in range(len(pixels)):  # row by row: 3,000 faces take 0.6 GB already
        pixels[number] += np.float32(noise) * rng.standard_normal(pixels.shape[1], np.float32)


@dataclass(frozen=True, kw_only=True)
class Ball:
    """Where rows are kept, from public rows alone."""

    centre: Table
    radius: float  # their median distance from it

    @classmethod
    def of(cls, public_rows: Table) -> "Ball":
        """Choose the ball that half of the public rows fit into."""
        centre = public_rows.mean(axis=0)
        distances = np.linalg.norm(public_rows - centre, axis=1)
        return cls(centre=centre, radius=float(np.median(distances)))

    def clipped(self, rows: Table) -> Table:
        """Return rows about the centre, none longer than the radius."""
        return clip_rows(rows, radius=self.radius, centre=self.centre) - self.centre

    def noise(self, *, epsilon: float, delta: float) -> float:
        """Return the honest sigma: one record replaced by another, on a fixed basis."""
        moved = sensitivity_of(radius=self.radius)
        return noise_scale(epsilon=epsilon, delta=delta, sensitivity=moved)

    def dealt(self, dealt: Dealt) -> Dealt:
        """Return all rows clipped; test rows too, as a party would clip what it predicts."""
        parties = {name: (self.clipped(rows), y) for name, (rows, y) in dealt.parties.items()}
        return replace(dealt, parties=parties, test_rows=self.clipped(dealt.test_rows))


def on_images(sent: Uploads, *, noise: float) -> Uploads:
    """Put noise on the anchor's images in place of the rows (seed 001, section 5)."""
    rng = generator(sent.dealt.repeat, IMAGES_STREAM)
    images = sent.images.items()
    noisy = {name: each + noise * rng.standard_normal(each.shape) for name, each in images}
    return replace(sent, images=noisy)


def stretch(changes: Mapping[str, Table]) -> float:
    """Return how unequal alignment makes noise: strongest over weakest direction, the worst G_i."""
    return float(max(np.linalg.cond(change) for change in changes.values()))
