"""A key stream that is the same on every machine: ChaCha20, keyed through HKDF.

Secrets, anchors and noise come from here and from nowhere else. NumPy's generators are
made for simulation: their state can be recovered from their output, and their streams
may change between versions.
"""

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from scipy.special import ndtri

from cobasis.errors import SecretError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.hidden import Hidden

KEY_BYTES = 32


def require_key(key: object, *, name: str) -> bytes:
    """Return `key` if it is 32 bytes; refuse integers, text and anything shorter.

    Parameters
    ----------
    key : bytes of length 32
        From ``secrets.token_bytes(32)``, never typed by hand.
    name : str
        What to call it in the error.

    Returns
    -------
    bytes of length 32
        `key` itself.

    Raises
    ------
    SecretError
        `key` is no bytes object of that length.

    Notes
    -----
    **Who sees what.** The message shows the type and length, never the value.

    **Cost.** None.
    """
    if isinstance(key, bytes) and len(key) == KEY_BYTES:
        return key
    got = f"{len(key)} bytes" if isinstance(key, bytes) else f"a value of type {type(key).__name__}"
    msg = (
        f"{name} is {got}, it has to be {KEY_BYTES} random bytes: a seed that a person can "
        "choose is a seed that the analyst can guess. Take secrets.token_bytes(32)."
    )
    raise SecretError(msg)


class KeyStream(Hidden):
    """Uniform and Gaussian numbers from 32 secret bytes and a label.

    Parameters
    ----------
    key : bytes of length 32
        The secret. Equal keys and labels give equal numbers, on every platform.
    label : str
        What the numbers are for. Streams of different labels are independent.

    Raises
    ------
    SecretError
        `key` is no bytes object of length 32.

    Notes
    -----
    **Who sees what.** Whoever holds the key can draw every number; nobody else can tell
    the stream from noise.

    **Cost.** About 0.1 s of one core for five million Gaussians.

    Examples
    --------
    >>> KeyStream(bytes(32), "example").random_bytes(8).hex()
    'bd31bee6d1f02687'
    """

    def __init__(self, key: bytes, label: str) -> None:
        secret = require_key(key, name="the key of a stream")
        derived = HKDF(SHA256(), KEY_BYTES, salt=None, info=b"cobasis/1/" + label.encode())
        cipher = Cipher(ChaCha20(derived.derive(secret), bytes(16)), mode=None)
        self._encryptor = cipher.encryptor()

    def random_bytes(self, count: int) -> bytes:
        """Return the next `count` bytes of the stream."""
        return self._encryptor.update(bytes(count))

    def _words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return the next `count` little-endian 64-bit words."""
        return np.frombuffer(self.random_bytes(8 * count), dtype="<u8").astype(np.uint64)

    def uniform(self, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Return numbers from U[0, 1): 53 bits each, exact on every platform."""
        words = self._words(int(np.prod(shape)))
        return (words >> np.uint64(11)).astype(np.float64).reshape(shape) * 2.0**-53

    def normal(self, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Return numbers from N(0, 1): 52 bits each, through the inverse distribution."""
        words = self._words(int(np.prod(shape)))
        midpoints = ((words >> np.uint64(12)) + 0.5) * 2.0**-52
        drawn: npt.NDArray[np.float64] = ndtri(midpoints)
        return drawn.reshape(shape)

    def tailed_normal(self, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Return numbers from N(0, 1) whose tails end beyond 16 instead of beyond 8.

        `normal` never draws a number that is farther out than 8.2. Where noise hides something
        that is several times its size, what lies beyond is still worth having.
        """
        size = int(np.prod(shape))
        words = self._words(3 * size).reshape(3, size)
        negative = (words[0] & np.uint64(1)).astype(bool)
        share = (words[2].astype(np.float64) + 0.5) * 2.0**-64
        for word in (words[1], words[0] >> np.uint64(1)):
            share = (word.astype(np.float64) + share) * 2.0**-64
        drawn: npt.NDArray[np.float64] = np.where(negative, 1.0, -1.0) * ndtri(share)
        return drawn.reshape(shape)

    def permutation(self, count: int) -> npt.NDArray[np.intp]:
        """Return a random order of ``range(count)``: the order of 64-bit words.

        Numbers sort ten times as fast as places do, so each word carries its place.
        """
        words, bits = self._words(count), np.uint64(count.bit_length())
        packed = np.sort((words >> bits << bits) | np.arange(count, dtype=np.uint64))
        order = (packed & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.intp)
        alike = np.diff(packed >> bits) == 0  # in the leading bits; the others decide
        tied = np.flatnonzero(np.append(alike, False) | np.append(False, alike))
        order[tied] = order[tied][np.argsort(words[order[tied]], kind="stable")]
        return order


def haar_columns(stream: KeyStream, *, n_rows: int, n_columns: int) -> Matrix:
    """Draw orthonormal columns from the Haar law.

    Parameters
    ----------
    stream : KeyStream
        Where the Gaussians come from.
    n_rows, n_columns : int
        The shape, ``n_columns <= n_rows``.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        QR of a Gaussian matrix with the signs of R's diagonal moved into Q; without that
        the law is LAPACK's, not Haar's.

    Notes
    -----
    **Who sees what.** Whoever holds the stream's key.

    **Cost.** ``2 n_rows n_columns^2`` operations.
    """
    factor: Matrix
    factor, triangle = np.linalg.qr(stream.normal((n_rows, n_columns)))
    signs = np.where(np.diag(triangle) < 0, -1.0, 1.0)
    columns: Matrix = factor * signs
    return columns
