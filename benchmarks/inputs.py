"""Anchor images to time and check on, by party name, made from one seed; and at which sizes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cobasis import Agreement, ConsortiumSecret, numeric_features
from cobasis.protocol.messages import Upload

Matrix = npt.NDArray[np.float64]
Images = dict[str, Matrix]

SEED = 20240302
N_FEATURES = 200  # m, unless many components are asked for; alignment never sees it


def names(n_parties: int) -> list[str]:
    return [f"party-{i:06d}" for i in range(n_parties)]


def unrelated(*, a: int, l: int, c: int) -> Images:
    """Make the papers' timing input: every A_i uniform on [0, 1), of nothing in common."""
    rng = np.random.default_rng(SEED)
    return {name: rng.random((a, l)) for name in names(c)}


def different(anchor: str) -> Callable[..., Images]:
    """Make parties whose spans overlap: cosines between two from .96 down to .04."""

    def made(*, a: int, l: int, c: int) -> Images:
        rng = np.random.default_rng(SEED)
        m = min(a, max(N_FEATURES, 2 * l))  # above l, and at most a, for an isometric anchor
        rows = rng.random((a, m)) if anchor == "uniform" else orthonormal(a, m, rng=rng)
        common = orthonormal(m, l, rng=rng)
        strength = np.geomspace(5.0, 0.2, l)
        images: Images = {}
        for name in names(c):
            own = common * strength + rng.standard_normal(common.shape) / np.sqrt(m)
            images[name] = rows @ (np.linalg.qr(own)[0] @ orthonormal(l, l, rng=rng))
        return images

    return made


def shared(*, a: int, l: int, c: int) -> Images:
    """Make parties of one span under an isometric anchor: each A_i' A_j is orthogonal."""
    rng = np.random.default_rng(SEED)
    common = orthonormal(a, l, rng=rng)
    return {name: common @ orthonormal(l, l, rng=rng) for name in names(c)}


def separated(*, a: int, l: int, c: int, noise: float) -> Images:
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


def orthonormal(rows: int, columns: int, *, rng: np.random.Generator) -> Matrix:
    factor, triangle = np.linalg.qr(rng.standard_normal((rows, columns)))
    return factor * np.sign(np.diag(triangle))


def agreed(parties: Iterable[str], features: Iterable[str], **options: Any) -> Agreement:
    secret = ConsortiumSecret(bytes(32), simulated=True)
    return Agreement(
        round_id="bench",
        parties=tuple(parties),
        features=numeric_features(features),
        commitment=secret.commitment("bench"),
        **options,
    )


def announced(party: str, *, rows: Any, labels: Any, image: Any, digest: bytes) -> Upload:
    sent = {"rows": rows, "labels": labels, "anchor_image": image, "simulated": True}
    return Upload(party=party, agreement_digest=digest, anchor_tag=bytes(32), **sent)


PAPERS, SHARED = "unrelated", "shared, isometric anchor"
INPUTS: Mapping[str, Callable[..., Images]] = {
    PAPERS: unrelated,
    "different, uniform anchor": different("uniform"),
    "different, isometric anchor": different("isometric"),
    SHARED: shared,
}
"""Every input of the sweeps, by what it is called in the tables."""


class Shape(NamedTuple):
    """The size of one alignment: anchor rows, components and parties."""

    a: int = 1000
    l: int = 50
    c: int = 50


WHOLE: Mapping[str, range] = {
    "l": range(50, 951, 50),
    "a": range(1000, 20_001, 1000),
    "c": range(50, 1001, 50),
}
"""The three sweeps of the ODC paper's Table 5."""

SHORT: Mapping[str, tuple[int, ...]] = {"l": (50, 100, 400), "a": (1000, 5000), "c": (50, 250)}
PUBLISHED: Mapping[str, tuple[int, ...]] = {  # where the slow published forms are tried
    "l": (50, 250, 500, 750, 950),
    "a": (1000, 5000, 10_000, 15_000, 20_000),
    "c": (50, 250, 500, 750, 1000),
}


def swept(levels: Mapping[str, Iterable[int]]) -> dict[Shape, str]:
    """Return the sizes of some sweeps, each once, and the letter that is swept there."""
    found: dict[Shape, str] = {}
    for free, values in levels.items():
        for value in values:
            found.setdefault(Shape(**{free: value}), free)
    return found


def where(found: Mapping[str, Any]) -> str:
    return "a={a}, l={l}, c={c}".format(**found)
