"""One round on faces: 49,152 features, so bases and anchor images are made block by block.

`cobasis.simulate` keeps the anchor whole at every party, which is 3.9 GB each here. This makes
the same uploads from the same formulas: ``A [V_1 ... V_c]`` is one product per block of anchor
rows, and every span condition turns what it gave, since ``A F_i = (A V_i) E_i``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cobasis import LocalError, draw_anchor
from experiments.data.faces import Faces
from experiments.harness.models import Labels, Table
from experiments.harness.noise import Ball, Singles
from experiments.harness.systems import JUDGES, generator, top_directions
from experiments.harness.uploads import Uploads

BLOCK = 500  # anchor rows at a time: 0.1 GB
PUBLIC = 361  # pictures that the paper's numbers leave over
SHARED = ("public", "haar")  # bases that no private row has shaped


@dataclass(frozen=True, kw_only=True)
class FaceSplit:
    """Pictures of one repeat."""

    train: Singles
    test: Singles
    public: Singles
    train_labels: Labels  # the attribute "Male"
    test_labels: Labels
    n_parties: int  # who share the training pictures, dealt at random

    @property
    def names(self) -> list[str]:
        """The parties' names."""
        return [f"party-{number:03d}" for number in range(self.n_parties)]

    def parties(self) -> Mapping[str, Singles]:
        """Return the pictures of each party."""
        return dict(zip(self.names, np.split(self.train, self.n_parties), strict=True))


def split_faces(
    faces: Faces, *, repeat: int, n_train: int, n_tests: int, n_parties: int
) -> FaceSplit:
    """Draw training and test pictures as the paper does: at random, not by person."""
    order = generator(repeat).permutation(len(faces.pixels))
    ends = np.cumsum([n_tests, n_train, PUBLIC])
    test, train, public = np.split(order, ends)[:3]
    labels = faces.people if faces.male is None else faces.male
    return FaceSplit(
        train=faces.scaled(train),
        test=faces.scaled(test),
        public=faces.scaled(public),
        train_labels=labels[train],
        test_labels=labels[test],
        n_parties=n_parties,
    )


@dataclass(frozen=True, kw_only=True)
class Projected:
    """Everything projected on every span, before any party's own rotation."""

    images: Mapping[str, Table]  # A V, by the name of a party or of a shared basis
    spans: Mapping[str, Singles]
    split: FaceSplit  # what was projected


def project(split: FaceSplit, *, repeat: int, n_components: int, n_anchor_rows: int) -> Projected:
    """Make every party's span and the two shared ones, and a uniform anchor's image of each."""
    n_features = split.train.shape[1]
    spans = {name: _leading(rows, n_components) for name, rows in split.parties().items()}
    spans["public"] = _leading(split.public, n_components)
    drawn = generator(repeat, 5).standard_normal((n_features, n_components))
    spans["haar"] = np.linalg.qr(drawn)[0].astype(np.float32)
    side_by_side = np.hstack(list(spans.values()))
    rng = generator(repeat, 6)
    counts = [min(BLOCK, n_anchor_rows - at) for at in range(0, n_anchor_rows, BLOCK)]
    blocks = [rng.random((n, n_features), dtype=np.float32) @ side_by_side for n in counts]
    images = np.split(np.vstack(blocks), len(spans), axis=1)
    return Projected(
        images={name: image.astype(np.float64) for name, image in zip(spans, images, strict=True)},
        spans=spans,
        split=split,
    )


def _leading(rows: Singles, count: int) -> Singles:
    return top_directions(rows.astype(np.float64), count).astype(np.float32)


def under(
    condition: str, projected: Projected, *, repeat: int, ball: Ball | None = None
) -> Uploads:
    """Turn what was projected into uploads under a condition, or a shared basis by its name."""
    split, rng = projected.split, generator(repeat, 7)
    sources = {name: name for name in split.names}
    if condition in SHARED:
        sources = dict.fromkeys(sources, condition)
    elif condition.startswith("samespan"):
        sources = dict.fromkeys(sources, split.names[0])
    size = next(iter(projected.images.values())).shape[1]
    turns = {name: _turn(condition, rng, size) for name in split.names}
    parties = split.parties()

    def seen(rows: Singles, name: str) -> Table:
        kept = rows
        if ball is not None:  # 100 rows at a time, in double precision
            parts = np.array_split(rows, -(-len(rows) // 100))
            clipped = [ball.clipped(part.astype(np.float64)) for part in parts]
            kept = np.vstack([part.astype(np.float32) for part in clipped])
        found: Table = (kept @ projected.spans[sources[name]]).astype(np.float64) @ turns[name]
        return found

    return Uploads(
        images={name: projected.images[sources[name]] @ turns[name] for name in split.names},
        rows={name: seen(parties[name], name) for name in split.names},
        tests={name: seen(split.test, name) for name in split.names[:JUDGES]},
        labels=split.train_labels,
        test_labels=split.test_labels,
    )


def _turn(condition: str, rng: np.random.Generator, size: int) -> Table:
    """Draw E_i: Haar, or with entries from U[0, 1] where a condition is not orthonormal."""
    if condition in {"samespan", "diffspan"}:
        return rng.random((size, size))
    factor, triangle = np.linalg.qr(rng.standard_normal((size, size)))
    turn: Table = factor * np.where(np.diag(triangle) < 0, -1.0, 1.0)
    return turn


def isometric_is_refused(*, n_anchor_rows: int, n_features: int) -> bool:
    """Tell whether the default anchor cannot be drawn in this shape: it needs a >= m."""
    try:
        draw_anchor("isometric", key=bytes(32), n_rows=n_anchor_rows, n_features=n_features)
    except LocalError:
        return True
    return False
