"""Anchor images as they come in: read party by party, and checked before they are used."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

import numpy as np

from cobasis.algorithms.factors import by_reflections, named
from cobasis.algorithms.views import Lazy, View
from cobasis.errors import FileChangedError, ShapeError
from cobasis.linalg.arrays import Matrix, as_table
from cobasis.linalg.cholesky import triangle_of
from cobasis.progress import AGAIN, Report, silent

Images = Mapping[str, Matrix]
"""The A_i by party name. May be lazy: what it returns is read once a pass and then let go."""

LEAST_BATCH, BATCH_BYTES = 2**22, 2**23
"""What is read before it is worked on, unless that is fewer than eight images: a sixteenth of all,
so that threads can share, within these limits. Larger ones keep threads apart for longer."""

LARGEST_BATCH = 2**25
"""The most that is read before it is worked on, but for a single larger image."""

_SHARES = 8
"""Large images are at most this part of all when read together, so that threads can share."""


class Steady(View[Matrix]):
    """Images that may not change between two readings."""

    def __init__(self, images: Images) -> None:
        super().__init__(images)
        self._images = images
        self._seen: dict[str, int] = {}

    def __getitem__(self, party: str) -> Matrix:
        """Read one image; FileChangedError if it is not what it was."""
        image = np.asarray(self._images[party])
        mark = hash((image.shape, image.dtype.str, image.tobytes()))
        if self._seen.setdefault(party, mark) != mark:
            raise FileChangedError(
                f"the anchor image of party '{party}' is not the same as when it was first read "
                "in this run, so target and fits would belong to different images. Let nothing "
                "write to the uploads while they are aligned, and run again."
            )
        return image


class Reported(Lazy[Matrix]):
    """Images that are read from what refuses to change, and report every reading."""

    def __init__(
        self,
        names: Collection[str],
        *,
        read: Callable[[str], Matrix],
        step: str,
        report: Report = silent,
        done: int = 0,
    ) -> None:
        super().__init__(names, read=read)
        self._step, self._report, self._done = step, report, done
        report(step, done, len(names))

    def __getitem__(self, party: str) -> Matrix:
        """Read one image, and say so."""
        image = super().__getitem__(party)
        before, done = divmod(self._done, len(self))
        self._done += 1
        again = f"{AGAIN}{before + 1}" if before else ""
        self._report(f"{self._step}{again}", done + 1, len(self))
        return image


def batches(
    images: Images, parties: Iterable[str] | None = None, *, n_rows: int | None = None
) -> Iterator[dict[str, Matrix]]:
    """Read images party by party and hand them on a few megabytes at a time."""
    few = max(1, min(8, len(images) // _SHARES))
    batch: dict[str, Matrix] = {}
    size = 0
    for party in images if parties is None else parties:
        table = _as_image(party, images[party], n_rows=n_rows)
        n_rows = table.shape[0]
        first = next(iter(batch.values()), table)
        usual = batch_bytes(first.nbytes * len(images))
        limit = usual if len(batch) >= few else LARGEST_BATCH
        if size + table.nbytes > limit or first.shape != table.shape:
            if batch:
                yield batch
            batch, size = {}, 0
        batch[party] = table
        size += table.nbytes
    if batch:
        yield batch


def batch_bytes(n_bytes: int) -> int:
    """Return how much of so many bytes of images is read before it is worked on."""
    return min(max(n_bytes // 16, LEAST_BATCH), BATCH_BYTES)


def check_images(images: Images) -> Images:
    """Check all anchor images against each other."""
    require_some(images)
    checked: dict[str, Matrix] = {}
    n_rows: int | None = None
    for name, image in images.items():
        checked[name] = check_image(name, image, n_rows=n_rows)
        n_rows = checked[name].shape[0]
    return MappingProxyType(checked)


def require_some(images: Images) -> None:
    """Raise ShapeError where there is nothing to align."""
    if not images:
        raise ShapeError(
            "there is no anchor image, so there is nothing to align. Collect uploads first."
        )


def check_image(party: str, image: Matrix, *, n_rows: int | None) -> Matrix:
    """Check one anchor image: finite, of full column rank, well enough conditioned."""
    table = _as_image(party, image, n_rows=n_rows)
    if triangle_of(table) is None:
        by_reflections(party, table)
    return table


def _as_image(party: str, image: Matrix, *, n_rows: int | None) -> Matrix:
    """Check type and shape of one image, and nothing that takes a pass over it."""
    table = as_table(image, name=named(party))
    rows, columns = table.shape
    expected = rows if n_rows is None else n_rows
    if rows != expected or rows < columns:
        raise ShapeError(
            f"the anchor image of party '{party}' has shape {table.shape}; the round's anchor has "
            f"{expected} rows, and an image needs at least as many rows as columns. "
            "Send A F_i itself: anchor rows down, components across."
        )
    return table
