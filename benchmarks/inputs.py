"""Anchor images to time and check on: by party name, made from one seed."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
Images = dict[str, Matrix]

SEED = 20240302
N_FEATURES = 200
"""m, unless many components are asked for; alignment never sees it."""


def names(n_parties: int) -> list[str]:
    """Return as many party names."""
    return [f"party-{i:06d}" for i in range(n_parties)]


def unrelated(*, a: int, l: int, c: int) -> Images:  # noqa: E741 -- the paper's letters
    """Make the papers' timing input: every A_i uniform on [0, 1), of nothing in common."""
    rng = np.random.default_rng(SEED)
    return {name: rng.random((a, l)) for name in names(c)}


def different(anchor: str) -> Callable[..., Images]:
    """Make parties whose spans overlap: cosines between two from .96 down to .04."""

    def made(*, a: int, l: int, c: int) -> Images:  # noqa: E741
        rng = np.random.default_rng(SEED)
        rows = draw_anchor(anchor, a=a, m=n_features(a, l), rng=rng)
        common = orthonormal(rows.shape[1], l, rng=rng)
        strength = np.geomspace(5.0, 0.2, l)
        noise = 1 / np.sqrt(rows.shape[1])
        images: Images = {}
        for name in names(c):
            own = common * strength + noise * rng.standard_normal(common.shape)
            images[name] = rows @ (np.linalg.qr(own)[0] @ orthonormal(l, l, rng=rng))
        return images

    return made


def shared(*, a: int, l: int, c: int) -> Images:  # noqa: E741
    """Make parties of one span under an isometric anchor: each A_i' A_j is orthogonal."""
    rng = np.random.default_rng(SEED)
    common = orthonormal(a, l, rng=rng)
    return {name: common @ orthonormal(l, l, rng=rng) for name in names(c)}


def separated(*, a: int, l: int, c: int, noise: float) -> Images:  # noqa: E741
    """Make parties of one span, each mixed differently, with noise of their own.

    At ``noise = 1`` the noise, stacked, is about as strong as the span, so that
    ``s_l / s_(l+1)`` is near one; with less noise it grows.
    """
    rng = np.random.default_rng(SEED)
    common = orthonormal(a, l, rng=rng)
    level = noise * np.sqrt(c) / (np.sqrt(a) + np.sqrt(c * l))
    images: Images = {}
    for name in names(c):
        mixed = common @ orthonormal(l, l, rng=rng) * np.linspace(1.0, 1.6, l)
        images[name] = mixed @ orthonormal(l, l, rng=rng) + level * rng.standard_normal((a, l))
    return images


def draw_anchor(kind: str, *, a: int, m: int, rng: np.random.Generator) -> Matrix:
    """Return a uniform or an isometric anchor."""
    return rng.random((a, m)) if kind == "uniform" else orthonormal(a, m, rng=rng)


def n_features(a: int, l: int) -> int:  # noqa: E741
    """Return m: above l, so that spans differ; at most a, for an isometric anchor."""
    return min(a, max(N_FEATURES, 2 * l))


def orthonormal(rows: int, columns: int, *, rng: np.random.Generator) -> Matrix:
    """Return Haar orthonormal columns."""
    factor, triangle = np.linalg.qr(rng.standard_normal((rows, columns)))
    return factor * np.sign(np.diag(triangle))


PAPERS, SHARED = "unrelated", "shared, isometric anchor"
INPUTS: Mapping[str, Callable[..., Images]] = {
    PAPERS: unrelated,
    "different, uniform anchor": different("uniform"),
    "different, isometric anchor": different("isometric"),
    SHARED: shared,
}
"""Every input of the sweeps, by what it is called in the tables."""
