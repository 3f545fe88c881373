"""How a party's rows become its upload, wherever these lie and wherever it goes. Party side only.

Rows come in blocks, a table in memory as one; the upload goes to an `Upload` in memory,
or a file. Rows go to random places, and one small write per row would take minutes. So the upload
is cut into bins: the first pass writes each part's rows to their bins, in the table's order; the
second reads bin after bin, orders it and writes it back.

Where the agreement has a ``[dp]`` section, rows and labels get noise. It follows from the party's
key and from all that is released: agreement, basis, rows in their order, labels. So the same
release made again is the same numbers, and not a second one, while any other release of the party
draws noise of its own.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np

from cobasis.errors import FileChangedError
from cobasis.linalg.arrays import Blocks, Hidden, Matrix, Places, WholeTable
from cobasis.linalg.threads import in_order, one_blas_thread
from cobasis.privacy.mechanism import noised, randomised
from cobasis.privacy.sensitivity import clip_rows
from cobasis.progress import Report
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.dp_terms import DPTerms
from cobasis.protocol.messages import Labels, Upload
from cobasis.protocol.secrets import PartyKey, SecretBasis

BIN_BYTES = 2**24

_PREFIX = b"cobasis/dp/1\0"
_CHUNK = 256
"""Rows that share one stream of noise; whoever needs part of a chunk draws all of it."""


class LabelledRows(Blocks):
    @abstractmethod
    def labels(self) -> Labels | None:
        """Return labels as they travel, in the order of the rows."""

    def people(self) -> Sequence[str] | None:
        """Return each row's identifier, where a block holds columns of the same people."""
        return None


class RowsInMemory(WholeTable, LabelledRows):
    def __init__(
        self, table: Matrix, labels: Labels | None = None, *, people: Sequence[str] | None = None
    ) -> None:
        super().__init__(table)
        self._labels, self._people = labels, people

    def people(self) -> Sequence[str] | None:
        return self._people

    def labels(self) -> Labels | None:
        return self._labels


Slices = Any
"""An array, or what takes and gives slices as one does, by several threads at a time."""

Begin = Callable[[Upload], AbstractContextManager[Mapping[str, Slices]]]
"""Opens an upload's `rows` and `labels`; the `Upload` given has their sizes and no numbers. When
the block ends without an error, the upload is whole."""


class InMemory:
    upload: Upload

    def __call__(self, about: Upload) -> AbstractContextManager[Mapping[str, Slices]]:
        tables: dict[str, Any] = {"rows": np.empty(about.rows.shape)}
        if about.labels is not None:
            tables["labels"] = np.empty(about.labels.shape, about.labels.dtype)
        self.upload = replace(about, **tables)
        return nullcontext(tables)


@dataclass(frozen=True, kw_only=True, repr=False)
class Noising(Hidden):
    """The mechanism of one release: clip, project, add noise; and labels, where agreed."""

    terms: DPTerms
    basis: SecretBasis
    key: PartyKey
    n_classes: int
    digests: tuple[bytes, bytes, bytes, bytes]  # agreement, basis, rows in order, labels
    use: Literal["dp", "rehearsal"] = "dp"

    @property
    def release(self) -> str:
        """What is released, as the label of its noise."""
        # one noise under two releases would cancel in their difference, and two noises of one
        # release would average out
        return hashlib.sha256(_PREFIX + b"".join(self.digests)).hexdigest()

    def projected(self, first: int, blocks: Iterator[Matrix]) -> tuple[list[Matrix], bytes]:
        """Return a part's rows as they are released, and the marks that noise is bound to."""
        done, marks, terms = [], [], self.terms
        for block in blocks:
            marks.append(_marks(first, iter([block])))
            inside = clip_rows(block, radius=terms.radius, centre=terms.centre or None)
            values = self.basis.project(inside)
            normal = self._normal(first, first + len(block), n_columns=values.shape[1])
            done.append(noised(values, normal, calibration=terms.calibration))
            first += len(block)
        return done, b"".join(marks)

    def labels(self, labels: Labels) -> Labels:
        terms = self.terms
        if terms.label_epsilon is None:
            return labels
        return randomised(
            labels.astype(np.int64),
            self.key.stream(f"{self.use}/labels/{self.release}"),
            epsilon=terms.label_epsilon / terms.rows_per_person,
            n_classes=self.n_classes,
        )

    def _normal(self, first: int, stop: int, *, n_columns: int) -> Matrix:
        """Return the standard noise of rows `first` to `stop`, however they are cut into parts."""
        chunks = range(first // _CHUNK, -(-stop // _CHUNK))
        label = f"{self.use}/rows/{self.release}"
        streams = [self.key.stream(f"{label}/{chunk}") for chunk in chunks]
        drawn = np.vstack([each.tailed_normal((_CHUNK, n_columns)) for each in streams])
        start = first - chunks.start * _CHUNK
        return drawn[start : start + stop - first]


@dataclass(frozen=True, kw_only=True, repr=False)
class Projection(Hidden):
    """What is settled before a row is projected: the basis, and where each row will stand."""

    rows: LabelledRows
    about: Upload  # whose rows and labels take no memory: they say how many there will be
    basis: SecretBasis  # F_i
    order: Places  # the upload's first row is the party's row order[0], and so on
    noising: Noising | None = None  # what hides each person, where the agreement has a [dp] section

    def rehearsed(self) -> Self:
        """Return the same with other noise, to be looked at and never released."""
        noising = self.noising and replace(self.noising, use="rehearsal")
        return replace(self, noising=noising)

    def write(self, to: Begin, *, report: Report) -> None:
        """Project all rows and write the upload; refuse rows that noise was not drawn for."""
        n_rows, size = len(self.order), max(1, BIN_BYTES // (8 * self.basis.shape[1]))
        with one_blas_thread(), to(self.about) as tables:
            rows, places, marks = tables["rows"], np.empty_like(self.order), hashlib.sha256()
            for start in range(0, n_rows, size):
                found = np.sort(self.order[start : start + size])
                places[found] = np.arange(start, start + len(found))
            put = partial(self._put, to=rows, places=places, size=size)
            for each in self.rows.over(put, step="projecting rows"):
                marks.update(each)
            told, noising = self.rows.labels(), self.noising
            if noising and (marks.digest(), _of_labels(told)) != noising.digests[2:]:
                raise FileChangedError(
                    f"the rows or labels of party '{self.about.party}' are not those that its "
                    "noise was drawn for: they changed, or came in another order, while they were "
                    "in use. Nothing was released. Take a snapshot of the table as a file, then "
                    "start again."
                )
            settle = partial(self._settle, rows=rows, size=size)
            for done in in_order(settle, range(0, n_rows, size)):
                report("putting rows in order", done, n_rows)
            if told is not None:
                told = noising.labels(told) if noising else told
                tables["labels"][0 : len(told)] = told[self.order]

    def _put(
        self, first: int, blocks: Iterator[Matrix], *, to: Slices, places: Places, size: int
    ) -> bytes:
        """Write a part's rows into their bins, in the table's order; return noise's marks."""
        if self.noising is None:
            projected, marks = list(map(self.basis.project, blocks)), b""
        else:
            projected, marks = self.noising.projected(first, blocks)
        rows = np.vstack(projected)
        here = places[first : first + len(rows)]
        turn = np.argsort(here // size, kind="stable")
        rows, here = rows[turn], here[turn]
        edges = [0, *(np.flatnonzero(np.diff(here // size)) + 1), len(turn)]
        for start, end in pairwise(edges):
            place = int(here[start])
            to[place : place + end - start] = rows[start:end]
        return marks

    def _settle(self, start: int, *, rows: Slices, size: int) -> int:
        """Return where the bin ends, once its rows stand in their order."""
        stop = min(start + size, len(self.order))
        found = rows[start:stop]
        settled = np.empty_like(found)
        settled[np.argsort(self.order[start:stop])] = found
        rows[start:stop] = settled
        return stop


def noise_for(
    rows: LabelledRows, terms: DPTerms, *, agreement: Agreement, key: PartyKey, basis: SecretBasis
) -> Noising:
    """Return the mechanism for rows, and for their labels as a pass over the rows finds them."""
    marks = hashlib.sha256()
    for each in rows.over(_marks, step="binding the noise to the rows"):
        marks.update(each)
    digests = (agreement.digest(), basis.digest(), marks.digest(), _of_labels(rows.labels()))
    n_classes = len(agreement.classes)
    return Noising(terms=terms, basis=basis, key=key, n_classes=n_classes, digests=digests)


def _marks(_: int, blocks: Iterator[Matrix]) -> bytes:
    """Return the digests of a part's rows, one behind the other, however the rows are cut."""
    tables = (np.ascontiguousarray(x + 0.0, dtype="<f8") for x in blocks)  # -0.0 + 0.0 is 0.0
    return b"".join(hashlib.sha256(row).digest() for table in tables for row in table)


def _of_labels(labels: Labels | None) -> bytes:
    given = b"" if labels is None else np.ascontiguousarray(labels).tobytes()
    return hashlib.sha256(given).digest()
