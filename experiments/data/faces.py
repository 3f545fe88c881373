"""Faces, for evaluation only: pictures of people never go into the project, its docs or tests.

CelebA's licence is for non-commercial research and forbids passing pictures on. Decoded pictures
stay in memory: no cache of them lies in a working copy, where it could be committed by mistake.
"""

import io
import zipfile
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from experiments.data.sources import read_verified, source, table
from experiments.harness.models import Labels

CELEBA = source("celeba_subset/celeba_aligned_128_webp.zip")
CELEBA_LABELS = source("celeba_subset/labels.csv")
OLIVETTI = source("olivetti/olivetti_faces.npz")

Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Faces:
    pixels: Pixels  # one picture a row
    people: Labels  # who it is, as a number
    male: Labels | None = None  # celebA's attribute, 0 or 1; Olivetti has none

    def scaled(self, chosen: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        """Return some pictures in [0, 1]; single precision, since 4,000 take 0.8 GB so."""
        found: npt.NDArray[np.float32] = self.pixels[chosen].astype(np.float32)
        found /= np.float32(255)
        return found


@cache
def celeba() -> Faces:
    """Return the CelebA subset: 4,361 pictures of 128 x 128 x 3, decoded once a process."""
    rows = table(CELEBA_LABELS)
    return Faces(
        pixels=_decoded([row["image"] for row in rows]),
        people=np.array([int(row["identity"]) for row in rows]),
        male=np.array([int(row["Male"]) for row in rows]),
    )


@cache
def small_faces() -> tuple[npt.NDArray[np.float64], Labels]:
    """Return means over squares of 16 pixels, 32 x 32 x 3, and who is a man."""
    people = celeba()
    squares = people.pixels.reshape(-1, 32, 4, 32, 4, 3)
    assert people.male is not None
    return squares.mean(axis=(2, 4)).reshape(len(squares), -1), people.male


def olivetti() -> Faces:
    """Return the Olivetti faces: 400 grey pictures of 64 x 64, ten of each of 40 people."""
    with np.load(io.BytesIO(read_verified(OLIVETTI)), allow_pickle=False) as kept:
        images, people = kept["images"], kept["subject"]
    return Faces(pixels=images.reshape(len(images), -1), people=people.astype(np.int64))


def _decoded(names: list[str]) -> Pixels:
    from PIL import Image  # noqa: PLC0415 -- only where pictures are unpacked

    with zipfile.ZipFile(io.BytesIO(read_verified(CELEBA))) as pack:
        pictures = [
            np.asarray(Image.open(io.BytesIO(pack.read(name))).convert("RGB"), dtype=np.uint8)
            for name in names
        ]
    return np.stack(pictures).reshape(len(pictures), -1)


@dataclass(frozen=True, kw_only=True)
class Pairs:
    first: npt.NDArray[np.intp]  # rows of the pictures
    second: npt.NDArray[np.intp]
    same: npt.NDArray[np.bool_]  # whether they show one person


def pairs_of(people: Labels, *, rng: np.random.Generator, n_each: int) -> Pairs:
    """Draw as many pairs of one person as of two, without a repetition."""
    first, second = np.triu_indices(len(people), k=1)
    same = people[first] == people[second]
    kinds = [rng.permutation(np.flatnonzero(same == kind)) for kind in (True, False)]
    count = min(n_each, *map(len, kinds))
    chosen = np.concatenate([kind[:count] for kind in kinds])
    return Pairs(first=first[chosen], second=second[chosen], same=same[chosen])
