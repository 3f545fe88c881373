"""Ways to align by orthogonal Procrustes: ours, the loops people write, and the floor."""

from collections.abc import Callable, Mapping
from typing import cast

import numpy as np
from scipy.linalg import orthogonal_procrustes

from benchmarks.inputs import Images, Matrix
from cobasis import ODC, align


def ours(images: Images, *, workers: int = 1) -> dict[str, Matrix]:
    """Align as a user does, all checks included, and read every G_i."""
    found = align(ODC(), images, workers=workers)
    return dict(found.changes_of_basis)


def scipy_loop(images: Images) -> dict[str, Matrix]:
    """Align as most people would write it."""
    first = next(iter(images.values()))
    found = {name: orthogonal_procrustes(image, first)[0] for name, image in images.items()}
    return cast("dict[str, Matrix]", found)


def svd_loop(images: Images) -> dict[str, Matrix]:
    """Align as the papers' Algorithm 4 does: product, decomposition, product."""
    first = next(iter(images.values()))
    found = {}
    for name, image in images.items():
        left, _, right = np.linalg.svd(image.T @ first)
        found[name] = left @ right
    return found


def floor(images: Images) -> Callable[[], Matrix]:
    """Prepare all cross products as one product of the side-by-side images."""
    first = np.ascontiguousarray(next(iter(images.values())).T)
    beside = np.hstack(list(images.values()))
    return lambda: first @ beside


def all_of(images: Images) -> Mapping[str, Callable[[], object]]:
    """Return every contender, prepared for these images."""
    return {
        "ours": lambda: ours(images),
        "scipy loop": lambda: scipy_loop(images),
        "svd loop": lambda: svd_loop(images),
        "floor": floor(images),
    }
