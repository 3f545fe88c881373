"""MNIST and Fashion-MNIST: 70,000 grey images of 28 x 28, both parts merged, in [0, 1]."""

from collections.abc import Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from experiments.data.sources import Source, read_verified
from experiments.harness.models import Labels, Table
from experiments.harness.systems import Dealt

MNIST = "the MNIST files of LeCun, Cortes and Burges, recompressed"
FASHION = "the Fashion-MNIST files of Zalando Research (zalandoresearch/fashion-mnist)"


def _sources(folder: str, origin: str, *digests: str) -> tuple[Source, ...]:
    names = ["train-images-idx3-ubyte.xz", "t10k-images-idx3-ubyte.gz"]
    names += ["train-labels-idx1-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]
    how = {"xz": "xz", "gz": "gzip -9 -n"}
    return tuple(
        Source(
            path=f"{folder}/{name}",
            sha256=digest,
            origin=f"{origin}, {name[:-3]} packed with {how[name[-2:]]}",
        )
        for name, digest in zip(names, digests, strict=True)
    )


SOURCES: Mapping[str, tuple[Source, ...]] = {
    "mnist": _sources(
        "mnist",
        MNIST,
        "8f41e9b4abc124dc3d209e86f7ea714a81f80edea40b565a4781dec7bd67c6e2",
        "1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be",
        "1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203",
        "b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b",
    ),
    "fashion-mnist": _sources(
        "fashion-mnist",
        FASHION,
        "fa573e1bd2da2e8b9754eda018b3d9662a98b99ae084adfc28a4aeb51cf413db",
        "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa",
        "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056",
        "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05",
    ),
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


def deal_images(
    name: str, *, rng: np.random.Generator, n_parties: int, n_rows: int, n_tests: int
) -> Dealt:
    """Deal images at random: every party the same number, and a test set."""
    pixels, labels = images(name)
    order = rng.permutation(len(pixels))[: n_tests + n_parties * n_rows]
    test, rest = order[:n_tests], order[n_tests:]

    def table(chosen: npt.NDArray[np.intp]) -> Table:
        return pixels[chosen] / 255.0

    parties = {
        f"party-{number:03d}": (table(chosen), labels[chosen])
        for number, chosen in enumerate(np.split(rest, n_parties))
    }
    return Dealt(parties=parties, test_rows=table(test), test_labels=labels[test])
