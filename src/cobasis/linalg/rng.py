"""A key stream that is the same on every machine, and Haar isometries drawn from it.

Secrets, anchors and noise come from here and from nowhere else: ChaCha20, keyed through HKDF.
NumPy's generators are made for simulation: their state can be recovered from their output, and
their streams may change between versions.
"""

import numpy as np
import numpy.typing as npt
import scipy
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cobasis.errors import SecretError
from cobasis.linalg.arrays import Hidden, Matrix, Places

KEY_BYTES = 32
_BLOCK = 64


def require_key(key: object, *, name: str) -> bytes:
    """Return `key` if it is 32 bytes; refuse integers, text and anything shorter."""
    if isinstance(key, bytes) and len(key) == KEY_BYTES:
        return key
    got = f"{len(key)} bytes" if isinstance(key, bytes) else f"a value of type {type(key).__name__}"
    raise SecretError(
        f"{name} is {got}, it has to be {KEY_BYTES} random bytes: a seed that a person can "
        "choose is a seed that the analyst can guess. Take secrets.token_bytes(32)."
    )


class KeyStream(Hidden):
    """Uniform and Gaussian numbers from 32 secret bytes and a label."""

    def __init__(self, key: bytes, label: str) -> None:
        secret = require_key(key, name="the key of a stream")
        derived = HKDF(SHA256(), KEY_BYTES, salt=None, info=b"cobasis/1/" + label.encode())
        cipher = Cipher(ChaCha20(derived.derive(secret), bytes(16)), mode=None)
        self._encryptor = cipher.encryptor()

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return the next `count` little-endian 64-bit words of the stream."""
        drawn = self._encryptor.update(bytes(8 * count))
        return np.frombuffer(drawn, dtype="<u8").astype(np.uint64, copy=False)

    def uniform(self, shape: tuple[int, ...]) -> Matrix:
        """Return numbers from U[0, 1): 53 bits each, exact on every platform."""
        words = self.words(int(np.prod(shape)))
        return (words >> np.uint64(11)).astype(np.float64).reshape(shape) * 2.0**-53

    def normal(self, shape: tuple[int, ...]) -> Matrix:
        """Return numbers from N(0, 1): 52 bits each, through the inverse distribution."""
        # One word a number, and none is rejected: however the stream is cut, it goes on at the
        # same place. The half puts each into the middle of its interval, so that none is infinite.
        words = self.words(int(np.prod(shape)))
        midpoints = ((words >> np.uint64(12)) + 0.5) * 2.0**-52
        return np.asarray(scipy.special.ndtri(midpoints)).reshape(shape)

    def tailed_normal(self, shape: tuple[int, ...]) -> Matrix:
        """Return numbers from N(0, 1) whose tails end beyond 16 instead of beyond 8."""
        # Where noise hides something several times its size, what lies beyond 8.2 still counts.
        # One bit is the sign, 191 are the share: added from the last word to the first, each sum
        # is rounded relative to itself, so that a small share keeps 53 bits of its own.
        size = int(np.prod(shape))
        words = self.words(3 * size).reshape(3, size)
        negative = (words[0] & np.uint64(1)).astype(bool)
        share = (words[2].astype(np.float64) + 0.5) * 2.0**-64
        for word in (words[1], words[0] >> np.uint64(1)):
            share = (word.astype(np.float64) + share) * 2.0**-64
        return np.asarray(np.where(negative, 1.0, -1.0) * scipy.special.ndtri(share)).reshape(shape)

    def permutation(self, count: int) -> Places:
        """Return a random order of ``range(count)``: the order of 64-bit words."""
        return np.argsort(self.words(count), kind="stable")


def haar_columns(stream: KeyStream, *, n_rows: int, n_columns: int) -> Matrix:
    """Draw orthonormal columns from the Haar law."""
    # Q follows the Haar law where R's diagonal is positive, which makes the two unique. LAPACK
    # chooses signs of its own, and its Q as it comes has a trace of the wrong mean.
    factor, triangle = np.linalg.qr(stream.normal((n_rows, n_columns)))
    return np.asarray(factor * np.where(np.diag(triangle) < 0, -1.0, 1.0))


class HaarIsometry(Hidden):
    """The first columns A of a Haar orthogonal matrix, applied without being formed.

    ``A = D_1 H_1 ... D_m H_m [I; 0]``: H_k reflects rows k..a, so that a Gaussian vector g goes to
    the k-th axis, and D_k multiplies the same rows by minus the sign of g's first entry.

    G. W. Stewart, "The efficient generation of random orthogonal matrices", SIAM J. Numer. Anal.
    17 (1980).
    """

    # One reflection per column, each on one row less than the one before, with its signs on the
    # same rows. With fewer, with full-length vectors or without the signs the result is still an
    # isometry, and concordance and accuracy tests pass. But it lies close to the identity, or
    # leans to one side, and shows what it was applied to.

    def __init__(self, stream: KeyStream, *, n_rows: int, n_columns: int) -> None:
        self.shape = (n_rows, n_columns)
        signs = np.empty(n_columns)
        self._blocks: list[tuple[int, Matrix, Matrix]] = []
        for start in range(0, n_columns, _BLOCK):
            size = min(_BLOCK, n_columns - start)
            vectors = np.zeros((n_rows - start, size))
            for k in range(size):
                gaussian = stream.normal((n_rows - start - k,))
                signs[start + k] = sign = -1.0 if gaussian[0] < 0 else 1.0
                # away from g's own first entry, so that nothing is cancelled
                gaussian[0] += sign * np.linalg.norm(gaussian)
                vectors[k:, k] = gaussian / np.linalg.norm(gaussian)
            # Products of whole blocks, and T is solved for and never formed. In compact WY form
            # H_start ... H_(stop-1) = I - V T V', T^-1 = striu(V' V) + I / 2.
            triangle = np.triu(vectors.T @ vectors, k=1) + 0.5 * np.eye(size)
            self._blocks.append((start, vectors, triangle))
        self._row_signs = np.cumprod(-signs)[:, np.newaxis]

    def apply(self, columns: Matrix) -> Matrix:
        """Return ``A @ columns``, of shape (a, l), for `columns` of shape (m, l)."""
        n_rows, n_columns = self.shape
        work = np.zeros((n_rows, columns.shape[1]))
        work[:n_columns] = self._row_signs * columns
        for start, vectors, triangle in reversed(self._blocks):
            work[start:] -= vectors @ np.linalg.solve(triangle, vectors.T @ work[start:])
        return work

    def apply_transposed(self, rows: Matrix) -> Matrix:
        """Return ``A' @ rows``, of shape (m, l), for `rows` of shape (a, l)."""
        work = rows.copy()
        for start, vectors, triangle in self._blocks:
            work[start:] -= vectors @ np.linalg.solve(triangle.T, vectors.T @ work[start:])
        return self._row_signs * work[: self.shape[1]]
