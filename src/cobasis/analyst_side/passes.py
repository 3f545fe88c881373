"""Passes over uploads that lie in files: a copy where that is quicker, and room for trees."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from cobasis.analyst_side.cluster import cluster_at
from cobasis.disk.tensors import read_tables, write_tables
from cobasis.disk.whole import make_folder, remove_tree, require_room
from cobasis.linalg.threads import available_threads
from cobasis.models import ModelName
from cobasis.models.boosting import ROW_BYTES
from cobasis.models.passes import Block, LabelledRows, Pass, Result, Share, Threads
from cobasis.progress import Report


@contextmanager
def passes_for(
    model: ModelName, *, folder: Path, cluster: str | None, report: Report
) -> Iterator[Pass]:
    """Give passes on a cluster, or here with a folder for what is deleted at the end."""
    if cluster is None:
        yield FilePasses(report, folder=folder)
        return
    with cluster_at(cluster, model=model, report=report) as passes:
        yield passes


@dataclass(frozen=True)
class FilePasses(Threads):
    """Passes of this process over rows of files, with a folder to keep what it makes of them.

    Many blocks are copied before they are trained on: each pass over uploads opens every file for
    every block, multiplies and shuffles. Measured on 2 million rows of 50 components in 12 blocks,
    one thread, seconds: of 4 parties a pass takes 2.7 without a copy and .4 with one, which takes
    7.0 once; of 20,000 parties 109, .8 and 106. Every family makes four passes or more.
    """

    folder: Path = field(kw_only=True)

    @contextmanager
    def copied(self, rows: LabelledRows) -> Iterator[LabelledRows]:
        """Hold a single block, and copy several."""
        if rows.n_blocks == 1:
            with super().copied(rows) as held:
                yield held
            return
        with self._room(self.folder / "rows", rows.n_rows * (rows.n_columns + 1) * 8) as folder:
            for _ in self(partial(_copy, folder=folder), rows, step="copying aligned rows"):
                pass
            yield Copy(source=rows, folder=folder)

    def together(self, work: Callable[[LabelledRows, Share], Result], rows: LabelledRows) -> Result:
        """Work alone on everything, with files where there are many blocks."""
        if rows.n_blocks == 1:
            return super().together(work, rows)
        n_bytes = rows.n_rows * (2 * rows.n_columns + ROW_BYTES)
        with self._room(self.folder / "trees", n_bytes) as folder:
            share = Share(range(rows.n_blocks), str(folder), available_threads(), self.report)
            return work(rows, share)

    @contextmanager
    def _room(self, folder: Path, n_bytes: int) -> Iterator[Path]:
        """Give a new folder on a disk with so much room, and delete it at the end.

        The room is asked for: xgboost ends the whole process when a disk fills up while it writes.
        """
        remove_tree(folder)
        make_folder(folder)
        try:
            require_room(folder, n_bytes, what="training")
            yield folder
        finally:
            remove_tree(self.folder)


def _copy(rows: LabelledRows, index: int, *, folder: Path) -> None:
    """Write one block."""
    write_tables(_file(folder, index), rows.block(index)._asdict(), metadata={})


@dataclass(frozen=True, kw_only=True)
class Copy:
    """Aligned rows in files of a block each, as long as one training lasts."""

    source: LabelledRows
    folder: Path

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.source.n_rows

    @property
    def n_columns(self) -> int:
        """How wide they are."""
        return self.source.n_columns

    @property
    def n_blocks(self) -> int:
        """How many files there are."""
        return self.source.n_blocks

    def block(self, index: int) -> Block:
        """Read one block."""
        return Block(**read_tables(_file(self.folder, index))[0])

    def sample(self, n_rows: int) -> Block:
        """Return what was copied from gives."""
        return self.source.sample(n_rows)

    def only(self, blocks: Sequence[int]) -> LabelledRows:  # noqa: ARG002 -- files are paths
        """Return itself."""
        return self


def _file(folder: Path, index: int) -> Path:
    return folder / f"block-{index:05d}.safetensors"
