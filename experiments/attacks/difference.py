"""Comparing two uploads: who came and who left a hospital, and who was in both of two."""

import numpy as np

from cobasis.linalg.arrays import Matrix
from cobasis.linalg.polar import polar
from cobasis.privacy.attacks import Release
from cobasis.privacy.attacks.scores import Places, nearest
from experiments.attacks import basis_behind, image_of


def same_person(rows: Matrix, others: Matrix) -> tuple[Places, Matrix]:
    """Find each person's nearest row in another aligned upload, and how far it is."""
    places = nearest(rows, among=others)
    distances: Matrix = np.linalg.norm(rows - others[places], axis=1)
    return places, distances


def came(release: Release, before: Release) -> Matrix:
    """Score each row of an upload for having nobody like it in an earlier one."""
    return same_person(_aligned(release, before), before.rows)[1]


def left(release: Release, before: Release) -> Matrix:
    """Score each row of an earlier upload for having nobody like it in the later one."""
    return same_person(before.rows, _aligned(release, before))[1]


def outside(release: Release, before: Release, *, anchor: Matrix) -> Matrix:
    """Return the direction in which the later span leaves the earlier one, the anchor known."""
    first, second = (np.linalg.qr(basis_behind(each, anchor))[0] for each in (before, release))
    direction: Matrix = np.linalg.svd(second - first @ (first.T @ second))[0][:, 0]
    return direction


def _aligned(release: Release, before: Release) -> Matrix:
    """Return the later rows in the earlier frame."""
    earlier = image_of(before)
    change: Matrix = polar(image_of(release, anchor=earlier).T @ earlier).rotation
    return release.rows @ change
