"""MNIST and Fashion-MNIST: 70,000 grey images of 28 x 28, both parts merged, in [0, 1]."""

from collections.abc import Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from experiments.data.sources import Source, read_verified, source
from experiments.harness.models import Labels
from experiments.harness.systems import Dealt, generator

FILES = (
    *("train-images-idx3-ubyte.xz", "t10k-images-idx3-ubyte.gz"),
    *("train-labels-idx1-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
)
IMAGES = ("mnist", "fashion-mnist")
SOURCES: Mapping[str, tuple[Source, ...]] = {
    data: tuple(source(f"{data}/{file}") for file in FILES) for data in IMAGES
}


@cache
def images(name: str) -> tuple[npt.NDArray[np.uint8], Labels]:
    """Return pixels of shape (70000, 784) and labels, training and test part merged."""
    train, test, train_labels, test_labels = map(read_verified, SOURCES[name])
    pixels = np.concatenate([_idx(train), _idx(test)]).reshape(-1, 784)
    labels = np.concatenate([_idx(train_labels), _idx(test_labels)]).astype(np.int64)
    return pixels, labels


def _idx(content: bytes) -> npt.NDArray[np.uint8]:
    """Read an idx file: two zero bytes, a type, the number of dimensions, and their sizes."""
    n_dimensions = content[3]
    start = 4 + 4 * n_dimensions
    shape = np.frombuffer(content[4:start], dtype=">u4")
    return np.frombuffer(content[start:], dtype=np.uint8).reshape(shape.astype(int))


def deal_images(name: str, *, repeat: int, n_parties: int, n_rows: int, n_tests: int) -> Dealt:
    """Deal images at random: every party the same number, and a test set."""
    pixels, labels = images(name)
    order = generator(repeat).permutation(len(pixels))[: n_tests + n_parties * n_rows]
    test, rest = order[:n_tests], order[n_tests:]

    held = {f"party-{number:03d}": at for number, at in enumerate(np.split(rest, n_parties))}
    return Dealt.of(lambda at: pixels[at] / 255.0, labels, held=held, test=test, repeat=repeat)
