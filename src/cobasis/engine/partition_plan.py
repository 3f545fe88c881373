"""Which rows go into which partition: decided before the first row is read."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cobasis.algorithms.base import Alignment
from cobasis.bundle.payload import Payload
from cobasis.disk.files import Stamp
from cobasis.errors import LabelError, OptionError, ShapeError, UnknownPartyError


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What goes where: everything that is known before the first row is read."""

    sizes: dict[str, int]
    stamps: dict[str, Stamp]
    n_components: int
    dtype: str
    label_dtype: str | None
    simulated: bool
    run: str
    n_partitions: int

    def stripes(self, index: int) -> Iterator[tuple[str, int, int]]:
        """Yield party, first row, and the row after the last, of what goes into a partition.

        What does not divide evenly goes to one partition after the other, party after party,
        so that all partitions are equally large.
        """
        whole, first = self.n_partitions, 0
        for name, size in self.sizes.items():
            each, more = divmod(size, whole)
            start, stop = (
                each * bound
                + max(0, min(bound, first + more) - first)
                + max(0, min(bound, first + more - whole))
                for bound in (index, index + 1)
            )
            first = (first + more) % whole
            yield name, start, stop


def planned(
    uploads: Mapping[str, Payload],
    alignment: Alignment,
    *,
    dtype: str | None,
    partition_bytes: int,
) -> Plan:
    """Look at every upload's sizes and change of basis once."""
    _refuse_strangers(uploads, alignment)
    if dtype not in {None, "float32", "float64"}:
        raise OptionError(f"dtype='{dtype}' is not known. Choose 'float32' or 'float64'.")
    if partition_bytes < 1:
        raise OptionError(
            f"partition_bytes={partition_bytes} holds no row. Give the bytes of some rows."
        )
    digest, sizes, stamps, labelled = hashlib.sha256(), {}, {}, {}
    widest, n_components, simulated = np.dtype(np.float32), 0, False
    for name in uploads:
        each, change = uploads[name], alignment.changes_of_basis[name]
        if each.n_components != len(change):
            raise ShapeError(
                f"party '{name}' sent rows of {each.n_components} components, and its change of "
                f"basis is for {len(change)}. Align this upload, not another one."
            )
        sizes[name], stamps[name], n_components = each.n_rows, each.stamp, change.shape[1]
        labelled[name] = str(each.labels_place.dtype) if each.labels_place else None
        widest = np.promote_types(widest, each.dtype)
        simulated = simulated or each.simulated
        digest.update(json.dumps([name, each.stamp.size, each.stamp.modified_ns]).encode())
        digest.update(np.ascontiguousarray(change).tobytes())
    kept = dtype or str(widest)
    label_dtype = _one_kind(labelled)
    row_bytes = n_components * np.dtype(kept).itemsize
    n_partitions = max(1, -(-sum(sizes.values()) * row_bytes // partition_bytes))
    digest.update(json.dumps([kept, n_partitions]).encode())
    return Plan(
        sizes=sizes,
        stamps=stamps,
        n_components=n_components,
        dtype=kept,
        label_dtype=label_dtype,
        simulated=simulated,
        run=digest.hexdigest(),
        n_partitions=n_partitions,
    )


def _refuse_strangers(uploads: Mapping[str, Payload], alignment: Alignment) -> None:
    """Refuse uploads without a fit, and fits without an upload."""
    for have, lack, what in (
        (uploads, alignment.fits, "sent an upload that is not in the alignment"),
        (alignment.fits, uploads, "is aligned, but its upload is not here"),
    ):
        missing = [name for name in have if name not in lack]
        if missing:
            raise UnknownPartyError(
                f"party '{missing[0]}' {what}, as {len(missing)} do. Align exactly the uploads "
                "to train on: add() or remove() the party, or align again."
            )
    if not len(uploads):
        raise UnknownPartyError("there are no uploads, so there are no aligned rows to write.")


def _one_kind(labelled: dict[str, str | None]) -> str | None:
    """Return the labels' dtype, or None if nobody sent any."""
    first, kind = next(iter(labelled.items()))
    for name, each in labelled.items():
        if each != kind:
            raise LabelError(
                f"party '{name}' sent {each or 'no'} labels and party '{first}' {kind or 'none'}. "
                "All send classes (int64), all send numbers (float64), or nobody sends any."
            )
    return kind
