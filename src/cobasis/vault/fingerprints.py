"""How a vault knows a row again without keeping it: eight keyed bytes per row."""

import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cobasis.linalg.arrays import Blocks, Matrix
from cobasis.linalg.rng import require_key

Fingerprints = npt.NDArray[np.uint64]
"""Of a table's rows; a row that occurs twice has two."""

FEW = 10
"""So few rows that came or went stand out between two uploads, and are told apart one by one."""

_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class Changes:
    """How a table differs from the one that was uploaded last."""

    same: int
    added: int
    gone: int  # a row with one corrected cell is gone and added

    @property
    def few(self) -> bool:
        """Whether 1 to 10 rows came, or 1 to 10 went: who they are shows between the uploads."""
        return 0 < self.added <= FEW or 0 < self.gone <= FEW


def fingerprints(rows: Blocks, key: bytes) -> Fingerprints:
    """Return the keyed fingerprints of encoded rows, in the order of the table.

    Rows are known again as long as the agreement encodes them alike: another scale, feature or
    vocabulary makes other numbers, hence other rows.
    """
    secret = require_key(key, name="the key of row fingerprints")

    def marked(_: int, blocks: Iterator[Matrix]) -> bytes:
        return b"".join(_of_block(block, secret) for block in blocks)

    found = b"".join(rows.over(marked, step="comparing rows with earlier uploads"))
    return np.frombuffer(found, dtype="<u8").astype(np.uint64)


def people(identifiers: Iterable[str], key: bytes) -> Fingerprints:
    """Return the keyed fingerprints of identifiers, in their order."""
    secret = require_key(key, name="the key of people's fingerprints")
    marks = [hmac.digest(secret, each.encode(), "sha256")[:_BYTES] for each in identifiers]
    return np.frombuffer(b"".join(marks), dtype="<u8").astype(np.uint64)


def compare(before: Fingerprints, after: Fingerprints) -> Changes:
    """Count the rows that two tables share, and those that only one has."""
    values, place = np.unique(np.concatenate([before, after]), return_inverse=True)
    one, other = (
        np.bincount(each, minlength=len(values)) for each in np.split(place, [len(before)])
    )
    same = int(np.minimum(one, other).sum())
    return Changes(same=same, added=len(after) - same, gone=len(before) - same)


def _of_block(block: Matrix, key: bytes) -> bytes:
    """Return the fingerprints of a block's rows, one behind the other."""
    table = np.ascontiguousarray(block + 0.0, dtype="<f8")  # -0.0 + 0.0 is 0.0
    width = table.shape[1] * table.itemsize
    data = table.tobytes()
    return b"".join(
        hmac.digest(key, data[start : start + width], "sha256")[:_BYTES]
        for start in range(0, len(data), width)
    )
