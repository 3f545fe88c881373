"""How rows and labels get their noise, where the agreement has a ``[dp]`` section. Party side only.

The noise follows from the party's key and from all that is released: agreement, basis, rows in
their order, labels. So the same release made again is the same numbers, and not a second one,
while any other release of the party draws noise of its own.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Literal, NoReturn, Self

import numpy as np

from cobasis.errors import AgreementError, FileChangedError
from cobasis.linalg.arrays import Blocks, Hidden, Matrix
from cobasis.privacy.clipping import clip_rows
from cobasis.privacy.mechanism import noised, randomised
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.dp_terms import DPTerms
from cobasis.protocol.messages import Labels
from cobasis.protocol.secrets import PartyKey, SecretBasis

_PREFIX = b"cobasis/dp/1\0"
_CHUNK = 256
"""Rows that share one stream of noise; who asks for others draws it once more."""


class LabelledRows(Blocks):
    """A party's rows on the agreed scale, and their labels."""

    @abstractmethod
    def labels(self) -> Labels | None:
        """Return labels as they travel, in the order of the latest pass over the rows."""


class Noising(Hidden):
    """The mechanism of one release: clip, project, add noise; and labels, where agreed."""

    def __init__(
        self,
        terms: DPTerms,
        *,
        basis: SecretBasis,
        key: PartyKey,
        n_classes: int,
        digests: tuple[bytes, bytes, bytes, bytes],
        use: Literal["dp", "rehearsal"] = "dp",
    ) -> None:
        self._terms, self._basis, self._key, self._n_classes = terms, basis, key, n_classes
        self._digests, self._use = digests, use
        self.release = hashlib.sha256(_PREFIX + b"".join(digests)).hexdigest()

    def rehearsed(self) -> Self:
        """Return the mechanism with noise of another stream, for the same rows and labels."""
        return type(self)(
            self._terms,
            basis=self._basis,
            key=self._key,
            n_classes=self._n_classes,
            digests=self._digests,
            use="rehearsal",
        )

    def projected(self, first: int, blocks: Iterator[Matrix]) -> tuple[list[Matrix], bytes]:
        """Return a part's rows as they are released, and what `confirm` needs of the part."""
        done, marks, terms = [], [], self._terms
        for block in blocks:
            marks.append(_marks(first, iter([block])))
            inside = clip_rows(block, radius=terms.radius, centre=terms.centre or None)
            values = self._basis.project(inside)
            normal = self._normal(first, first + len(block), n_columns=values.shape[1])
            done.append(noised(values, normal, calibration=terms.calibration))
            first += len(block)
        return done, b"".join(marks)

    def confirm(self, parts: Iterable[bytes], *, party: str) -> None:
        """Refuse rows that are not those that the noise was drawn for."""
        if _together(parts) != self._digests[2]:
            _refuse_other(party)

    def labels(self, labels: Labels, *, party: str) -> Labels:
        """Return labels as they are released."""
        if _of_labels(labels) != self._digests[3]:
            _refuse_other(party)
        terms = self._terms
        if terms.label_epsilon is None:
            return labels
        return randomised(
            labels.astype(np.int64),
            self._key.stream(f"{self._use}/labels/{self.release}"),
            epsilon=terms.label_epsilon / terms.rows_per_person,
            n_classes=self._n_classes,
        )

    def _normal(self, first: int, stop: int, *, n_columns: int) -> Matrix:
        """Return the standard noise of rows `first` to `stop`, however they are cut into parts."""
        chunks = range(first // _CHUNK, -(-stop // _CHUNK))
        drawn = [
            self._key.stream(f"{self._use}/rows/{self.release}/{chunk}").tailed_normal(
                (_CHUNK, n_columns)
            )
            for chunk in chunks
        ]
        start = first - chunks.start * _CHUNK
        return np.vstack(drawn)[start : start + stop - first]


def noise_for(
    rows: LabelledRows,
    terms: DPTerms,
    *,
    agreement: Agreement,
    basis: SecretBasis,
    key: PartyKey,
    party: str,
) -> Noising:
    """Return the mechanism for rows, and for their labels as a pass over the rows finds them."""
    _refuse(terms, rows.shape[0], basis, party)
    digests = (
        agreement.digest(),
        basis.digest(),
        _together(rows.over(_marks, step="binding the noise to the rows")),
        _of_labels(rows.labels()),
    )
    return Noising(terms, basis=basis, key=key, n_classes=len(agreement.classes), digests=digests)


def _marks(_: int, blocks: Iterator[Matrix]) -> bytes:
    """Return the digests of a part's rows, one behind the other."""
    found = []
    for block in blocks:
        table = np.ascontiguousarray(block + 0.0, dtype="<f8")  # -0.0 + 0.0 is 0.0
        data, width = table.tobytes(), table.shape[1] * table.itemsize
        found += [
            hashlib.sha256(data[start : start + width]).digest()
            for start in range(0, len(data), width)
        ]
    return b"".join(found)


def _together(parts: Iterable[bytes]) -> bytes:
    """Return one digest of all parts, however the rows were cut into them."""
    digest = hashlib.sha256()
    for each in parts:
        digest.update(each)
    return digest.digest()


def _of_labels(labels: Labels | None) -> bytes:
    """Return the digest of labels, as numbers of eight bytes."""
    given = b"" if labels is None else np.ascontiguousarray(labels).tobytes()
    return hashlib.sha256(given).digest()


def _refuse(terms: DPTerms, n_rows: int, basis: SecretBasis, party: str) -> None:
    """Raise AgreementError for what the guarantee does not cover."""
    if basis.oblique:
        raise AgreementError(
            f"the basis of party '{party}' is not orthonormal, so it may lengthen a row, and the "
            "noise of [dp] would be too small. Leave basis= and span conditions out."
        )
    if n_rows > terms.most_rows:
        raise AgreementError(
            f"party '{party}' would upload {n_rows:,} rows, and the delta of [dp] was agreed on "
            f"for at most most_rows={terms.most_rows:,}. Upload fewer, or agree on a larger "
            "most_rows with a smaller delta."
        )


def _refuse_other(party: str) -> NoReturn:
    raise FileChangedError(
        f"the rows or labels of party '{party}' are not those that its noise was drawn for: they "
        "changed, or came in another order, while they were in use. Nothing was released. Take a "
        "snapshot of the table as a file, then start again."
    )
