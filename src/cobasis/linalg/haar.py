"""A Haar-distributed isometry that is applied without being formed: Stewart's construction.

G. W. Stewart, "The efficient generation of random orthogonal matrices", SIAM J. Numer. Anal.
17 (1980). One reflection per column, each on one row less than the one before: with fewer,
or with full-length vectors, the result is still an isometry and still lets concordance and
accuracy tests pass, but it lies close to the identity and shows what it was applied to.
"""

from collections.abc import Iterator

import numpy as np

from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.linalg.rng import KeyStream

_BLOCK = 64


class HaarIsometry(Hidden):
    r"""A tall isometry A with ``A' A = I``, the first columns of a Haar orthogonal matrix.

    :math:`A = D_1 H_1 D_2 H_2 \cdots D_m H_m [I; 0]`, where :math:`H_k` reflects rows
    k..a only, mapping a Gaussian vector g onto the k-th axis, and :math:`D_k` multiplies
    the same rows by minus the sign of g's first entry.
    """

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
                gaussian[0] += sign * np.linalg.norm(gaussian)
                vectors[k:, k] = gaussian / np.linalg.norm(gaussian)
            # the compact WY form: H_start ... H_(stop-1) = I - V T V', T^-1 = striu(V' V) + I / 2
            triangle = np.triu(vectors.T @ vectors, k=1) + 0.5 * np.eye(size)
            self._blocks.append((start, vectors, triangle))
        self._row_signs = np.cumprod(-signs)[:, np.newaxis]

    def __repr__(self) -> str:
        """Show the shape and hide the reflections."""
        return f"<HaarIsometry {self.shape[0]}x{self.shape[1]}, hidden>"

    def _reflect(
        self, work: Matrix, blocks: Iterator[tuple[int, Matrix, Matrix]], *, transposed: bool
    ) -> None:
        """Apply the given blocks of reflections to `work`, in place and in their order."""
        for start, vectors, triangle in blocks:
            part = work[start:]
            system = triangle.T if transposed else triangle
            part -= vectors @ np.linalg.solve(system, vectors.T @ part)

    def apply(self, columns: Matrix) -> Matrix:
        """Return ``A @ columns``, of shape (a, l), for `columns` of shape (m, l)."""
        n_rows, n_columns = self.shape
        work = np.zeros((n_rows, columns.shape[1]))
        work[:n_columns] = self._row_signs * columns
        self._reflect(work, reversed(self._blocks), transposed=False)
        return work

    def apply_transposed(self, rows: Matrix) -> Matrix:
        """Return ``A' @ rows``, of shape (m, l), for `rows` of shape (a, l)."""
        work = rows.copy()
        self._reflect(work, iter(self._blocks), transposed=True)
        return self._row_signs * work[: self.shape[1]]
