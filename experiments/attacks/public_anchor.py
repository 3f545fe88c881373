"""Finding out which public rows the anchor is made of."""

import numpy as np

from cobasis.linalg.arrays import Matrix
from cobasis.privacy.attacks import Release
from cobasis.privacy.attacks.scores import Places, nearest
from experiments.attacks import image_of

_ROUNDS = 60


def anchor_rows(release: Release, *, pool: Matrix, first: Matrix) -> Places:
    """Say which row of a public collection each anchor row is, from a first guess of the basis.

    Matches give a basis, a basis gives better matches. The basis is kept to the leading
    directions of the public rows, turned: one right match in ten is then enough to begin with.
    """
    image = image_of(release)
    leading: Matrix = np.linalg.svd(pool, full_matrices=False)[2][: image.shape[1]].T
    found = nearest(image, among=pool @ first)
    for _ in range(_ROUNDS):
        before = found
        left, _, right = np.linalg.svd((pool[found] @ leading).T @ image)
        found = nearest(image, among=pool @ (leading @ (left @ right)))
        if np.array_equal(found, before):
            break
    return found
