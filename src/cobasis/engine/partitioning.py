"""Uploads times changes of basis, written once, so that training reads every row in one frame.

Partition j takes from each party the j-th of equal stripes of its rows. A party's rows are in
an order that only it knows, so a stripe is a random sample of them, and a partition one of
everybody's: no second pass has to shuffle. Inside a partition rows are shuffled as well.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np

from cobasis.algorithms.base import Alignment
from cobasis.bundle.payload import Payload
from cobasis.disk.files import refuse_changed
from cobasis.disk.tensors import write_tables
from cobasis.disk.whole import make_folder
from cobasis.engine.partition_plan import Plan, planned
from cobasis.engine.partitions import (
    MANIFEST,
    AlignedRows,
    Labels,
    Partition,
    Rows,
    digest_of,
    open_aligned,
    read_partition,
    write_manifest,
)
from cobasis.errors import NotFiniteError, PartitionError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.pool import in_order
from cobasis.linalg.threads import one_blas_thread
from cobasis.progress import Report, silent

PARTITION_BYTES = 64 * 2**20
"""Large enough for quick reads, small enough that several are in memory at once."""

_ROWS_AT_ONCE = 32_768


def write_aligned(
    uploads: Mapping[str, Payload],
    alignment: Alignment,
    *,
    to: str | Path,
    dtype: str | None = None,
    partition_bytes: int = PARTITION_BYTES,
    report: Report = silent,
) -> AlignedRows:
    """Write all parties' aligned rows, eq. (7), as partitions on disk."""
    folder = Path(to)
    with one_blas_thread():
        plan = planned(uploads, alignment, dtype=dtype, partition_bytes=partition_bytes)
        if (folder / MANIFEST).exists():
            whole = open_aligned(folder)
            _refuse_other(whole.run, plan.run, folder)
            return whole
        make_folder(folder)
        written, counts = [], Counter[int]()
        for index in range(plan.n_partitions):
            file = folder / f"part-{index:05d}.safetensors"
            found = _finished(file, plan) if file.exists() else None
            if found is None:
                found = _write(file, plan, _gathered(uploads, alignment, plan, index))
            written.append(found[0])
            counts.update(found[1])
            report("aligning rows", index + 1, plan.n_partitions)
    aligned = AlignedRows(
        path=folder,
        run=plan.run,
        parties=plan.sizes,
        n_components=plan.n_components,
        dtype=plan.dtype,
        label_dtype=plan.label_dtype,
        class_counts=dict(sorted(counts.items())),
        simulated=plan.simulated,
        partitions=tuple(written),
    )
    write_manifest(aligned)
    return aligned


def _gathered(
    uploads: Mapping[str, Payload], alignment: Alignment, plan: Plan, index: int
) -> dict[str, Rows | Labels]:
    """Read, align and shuffle what goes into one partition."""
    stripes = [each for each in plan.stripes(index) if each[1] < each[2]]
    n_rows = sum(stop - start for _, start, stop in stripes)
    rows: Rows = np.empty((n_rows, plan.n_components), dtype=plan.dtype)
    labels = None if plan.label_dtype is None else np.empty(n_rows, dtype=plan.label_dtype)
    places = np.random.default_rng([index, n_rows]).permutation(n_rows)

    def blocks() -> Iterator[tuple[Payload, Matrix, int, int]]:
        for name, start, stop in stripes:
            each, change = uploads[name], alignment.changes_of_basis[name]
            refuse_changed(each.stamp, plan.stamps[name], what=f"the upload of party '{name}'")
            for first in range(start, stop, _ROWS_AT_ONCE):
                yield each, change, first, min(first + _ROWS_AT_ONCE, stop)

    def aligned(block: tuple[Payload, Matrix, int, int]) -> tuple[str, Rows, Labels | None]:
        each, change, first, last = block
        product = each.row_block(first, last).astype(np.float64, copy=False) @ change
        kept = cast("Rows", product.astype(plan.dtype, copy=False))
        return each.party, kept, each.label_block(first, last)

    done = 0
    for name, block, told in in_order(aligned, blocks()):
        if not np.isfinite(block).all() or not (told is None or np.isfinite(told).all()):
            raise NotFiniteError(
                f"the rows or labels of party '{name}' are not all finite in {plan.dtype}, so no "
                "model can be trained on them. Have the upload made again, or leave the party out."
            )
        here = places[done : done + len(block)]
        rows[here] = block
        if labels is not None:
            labels[here] = told
        done += len(block)
    return {"rows": rows} if labels is None else {"rows": rows, "labels": labels}


Described: TypeAlias = tuple[Partition, dict[int, int]]
"""A partition, and how many rows of each class it has."""


def _write(file: Path, plan: Plan, tensors: dict[str, Rows | Labels]) -> Described:
    """Write one partition, whole or not at all, with the digest of what is to be in it."""
    sha256 = digest_of(tensors)
    write_tables(file, tensors, metadata={"run": plan.run, "sha256": sha256})
    return _described(file, plan, tensors, sha256)


def _finished(file: Path, plan: Plan) -> Described | None:
    """Describe a partition that is there; None if it is not what was written."""
    tensors, header = read_partition(file)
    _refuse_other(header.metadata.get("run", ""), plan.run, file.parent)
    sha256 = digest_of(tensors)
    if header.metadata.get("sha256") != sha256:
        return None
    return _described(file, plan, tensors, sha256)


def _described(
    file: Path, plan: Plan, tensors: Mapping[str, Rows | Labels], sha256: str
) -> Described:
    """Describe a partition, and count its classes."""
    counts: dict[int, int] = {}
    if plan.label_dtype == "int64":
        classes, rows = np.unique(tensors["labels"], return_counts=True)
        counts = dict(zip(classes.tolist(), rows.tolist(), strict=True))
    return Partition(name=file.name, n_rows=len(tensors["rows"]), sha256=sha256), counts


def _refuse_other(found: str, wanted: str, folder: Path) -> None:
    """Refuse partitions that were made from something else."""
    if found != wanted:
        raise PartitionError(
            f"{folder} holds aligned rows of other uploads or of another alignment, and they are "
            "not overwritten. Give another folder, or delete this one."
        )
