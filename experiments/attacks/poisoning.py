"""A party that sends something else than it should: what is spoiled, and by how much."""

from dataclasses import replace

import numpy as np

from cobasis.privacy.attacks import Release
from experiments.attacks import image_of


def another_anchor(release: Release, *, rng: np.random.Generator) -> Release:
    """Replace the anchor image by unrelated directions: a wrong seed, or no anchor at all."""
    image = image_of(release)
    drawn = np.linalg.qr(rng.normal(size=image.shape))[0]
    size = np.linalg.norm(image) / np.linalg.norm(drawn)
    return replace(release, anchor_image=drawn * size)


def other_scale(release: Release, *, factor: float, with_image: bool = False) -> Release:
    """Multiply the rows, and the image where asked."""
    image = image_of(release) * (factor if with_image else 1.0)
    return replace(release, rows=release.rows * factor, anchor_image=image)


def wrong_labels(release: Release) -> Release:
    """Give each row the next class, in the order of the classes; the last gets the first."""
    classes, places = np.unique(np.asarray(release.labels), return_inverse=True)
    return replace(release, labels=classes[(places + 1) % len(classes)])


def turned_rows(release: Release, *, rng: np.random.Generator) -> Release:
    """Turn rows but not the image: lengths, distances and image stay as they should be."""
    width = release.rows.shape[1]
    turn = np.linalg.qr(rng.normal(size=(width, width)))[0]
    return replace(release, rows=release.rows @ turn)
