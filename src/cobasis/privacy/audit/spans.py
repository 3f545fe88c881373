"""Bases that a party can make by itself, to compare the upload's own with."""

import numpy as np

from cobasis.algorithms import BasisName
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.linalg.leading import leading_directions
from cobasis.linalg.rng import KeyStream, haar_columns
from cobasis.privacy.audit.subject import Subject


class Spans(Hidden):
    """Leading directions by kind, found once, of which every number can be taken."""

    def __init__(self, subject: Subject, *, own: BasisName, largest: int, key: bytes) -> None:
        self._subject, self._own, self._largest, self._key = subject, own, largest, key
        self._found: dict[str, Matrix] = {}

    def basis(self, kind: BasisName, size: int) -> Matrix | None:
        """Return a basis of a kind, without a rotation: no figure depends on one."""
        own = self._subject.basis
        if kind == self._own and size == own.shape[1]:
            return own
        if kind not in self._found:
            self._found[kind] = self._directions(kind)
        found = self._found[kind]
        return found[:, :size] if size <= found.shape[1] else None

    def _directions(self, kind: BasisName) -> Matrix:
        """Return as many directions of a kind as there are, strongest first."""
        subject = self._subject
        n_features, most = subject.basis.shape[0], self._largest
        if kind == "haar":
            stream = KeyStream(self._key, "audit/haar")
            return haar_columns(stream, n_rows=n_features, n_columns=most)
        if "consensus" in kind:
            inside = subject.rows @ subject.basis
            return subject.basis @ leading_directions(inside, n_wanted=inside.shape[1]).directions
        rows = subject.public_rows if kind == "public" else subject.rows
        if rows is None:
            return np.empty((n_features, 0))
        return leading_directions(rows, n_wanted=most, centred=kind == "pca").directions
