"""How a vault knows a row again without keeping it: eight keyed bytes per row."""

import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cobasis.linalg.arrays import Matrix
from cobasis.linalg.blocks import Blocks
from cobasis.linalg.rng import require_key

Fingerprints = npt.NDArray[np.uint64]
"""Of a table's rows, sorted; a row that occurs twice has two."""

FEW = 10
"""So few rows that came or went stand out between two uploads, and are told apart one by one."""

_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class Changes:
    """How a table differs from the one that was uploaded last.

    Attributes
    ----------
    same : int
        Rows in both.
    added : int
        Rows that were not in the last upload.
    gone : int
        Rows that only the last upload had. A row with one corrected cell is gone and added.

    Notes
    -----
    **Who sees what.** The party alone: the counts are made from its rows, so they may stand in its
    own report, and in no error, log or bundle.

    **Cost.** None.
    """

    same: int
    added: int
    gone: int

    @property
    def few(self) -> bool:
        """Whether 1 to 10 rows came, or 1 to 10 went: who they are shows between the uploads."""
        return 0 < self.added <= FEW or 0 < self.gone <= FEW


def fingerprints(rows: Blocks, key: bytes) -> Fingerprints:
    """Return the keyed fingerprints of encoded rows, sorted.

    Parameters
    ----------
    rows : Blocks of shape (n_rows, n_features)
        On the agreed scale, without labels and identifiers.
    key : bytes of length 32
        The vault's.

    Returns
    -------
    ndarray of shape (n_rows,), uint64
        The first eight bytes of HMAC-SHA256 over each row's little-endian float64 numbers. Equal
        for equal rows, whatever their order; 0.0 and -0.0 count as one number.

    Raises
    ------
    SecretError
        `key` is no bytes object of length 32.

    Notes
    -----
    **Who sees what.** The party alone. Without the key a fingerprint says nothing; with it,
    somebody who guesses a whole row can tell whether it was uploaded.

    Rows are known again as long as the agreement encodes them alike: another scale, feature or
    vocabulary makes other numbers, hence other rows.

    **Cost.** One pass over the rows, some seconds per million, and 8 bytes per row.

    Examples
    --------
    >>> from cobasis.linalg.blocks import WholeTable
    >>> one = fingerprints(WholeTable(np.array([[1.0, 2.0], [3.0, 4.0]])), bytes(32))
    >>> two = fingerprints(WholeTable(np.array([[3.0, 4.0], [5.0, 6.0]])), bytes(32))
    >>> compare(one, two)
    Changes(same=1, added=1, gone=1)
    """
    secret = require_key(key, name="the key of row fingerprints")

    def marked(_: int, blocks: Iterator[Matrix]) -> bytes:
        return b"".join(_of_block(block, secret) for block in blocks)

    found = b"".join(rows.over(marked, step="comparing rows with earlier uploads"))
    return np.sort(np.frombuffer(found, dtype="<u8").astype(np.uint64))


def people(identifiers: Iterable[str], key: bytes) -> Fingerprints:
    """Return the keyed fingerprints of identifiers, in their order.

    Parameters
    ----------
    identifiers : iterable of str
        One for each row, as the table writes them.
    key : bytes
        32 bytes, other than those of the rows' fingerprints.

    Returns
    -------
    ndarray of shape (n_rows,), uint64
        Eight bytes of HMAC-SHA256 for each.

    Raises
    ------
    ValueError
        The key is not 32 bytes long.

    Notes
    -----
    **Who sees what.** Without the key nobody learns whose rows they are.

    **Cost.** 2 microseconds per row.
    """
    secret = require_key(key, name="the key of people's fingerprints")
    marks = [hmac.digest(secret, each.encode(), "sha256")[:_BYTES] for each in identifiers]
    return np.frombuffer(b"".join(marks), dtype="<u8").astype(np.uint64)


def compare(before: Fingerprints, after: Fingerprints) -> Changes:
    """Count the rows that two tables share, and those that only one has.

    Parameters
    ----------
    before, after : ndarray of uint64, sorted
        From `fingerprints`, under one key.

    Returns
    -------
    Changes
        A row that occurs twice counts twice.

    Notes
    -----
    **Who sees what.** The party alone.

    **Cost.** One sort.
    """
    values = np.unique(np.concatenate([before, after]))
    same = int(np.minimum(_counts(before, values), _counts(after, values)).sum())
    return Changes(same=same, added=len(after) - same, gone=len(before) - same)


def _counts(among: Fingerprints, values: Fingerprints) -> npt.NDArray[np.intp]:
    """Return how often each value occurs in a sorted array."""
    return among.searchsorted(values, side="right") - among.searchsorted(values, side="left")


def _of_block(block: Matrix, key: bytes) -> bytes:
    """Return the fingerprints of a block's rows, one behind the other."""
    table = np.ascontiguousarray(block + 0.0, dtype="<f8")  # -0.0 + 0.0 is 0.0
    width = table.shape[1] * table.itemsize
    data = table.tobytes()
    return b"".join(
        hmac.digest(key, data[start : start + width], "sha256")[:_BYTES]
        for start in range(0, len(data), width)
    )
