"""Passes over uploads that lie in files: a copy where that is quicker, room for trees, a cluster.

On a Dask cluster (extra ``dask``) workers read opened uploads by their paths, so all of them see
one folder. What goes to a worker is a function, a block's number, and paths and changes of basis
of that block alone; what comes back is a sum.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from cobasis.disk.tensors import read_tables, write_tables
from cobasis.disk.whole import make_folder, remove_tree, require_room
from cobasis.errors import OptionError
from cobasis.linalg.threads import one_blas_thread
from cobasis.models import FAMILIES, ModelName, needing
from cobasis.models.out_of_core import ROW_BYTES
from cobasis.models.passes import Block, LabelledRows, Pass, Result, Work
from cobasis.progress import Report

_LOOK_SECONDS = 2.0  # how often it is looked whether workers are still there

_ANSWER_SECONDS = 10


@contextmanager
def passes_for(
    model: ModelName, *, folder: Path, cluster: str | None, report: Report
) -> Iterator[Pass]:
    """Give passes on a cluster, or here with a folder for what is deleted at the end."""
    if cluster is None:
        yield FilePasses(report, folder=folder)
        return
    if not FAMILIES[model].additive:
        others = ", ".join(name for name, row in FAMILIES.items() if row.additive)
        raise OptionError(
            f"model='{model}' is not trained on a cluster, since its fit is no sum over blocks. "
            f"Train without --cluster, or choose one of {others}."
        )
    with needing("distributed", extra="dask", what="--cluster"):
        distributed = import_module("distributed")
    try:
        client = distributed.Client(cluster, timeout=_ANSWER_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise OptionError(
            f"no cluster answers at '{cluster}': {error}. Give the scheduler's address, such as "
            "tcp://10.0.0.5:8786, and see that it runs."
        ) from error
    with client:
        yield ClusterPasses(report, client=client)


@dataclass(frozen=True)
class FilePasses(Pass):
    """Passes of this process over rows of files, with a folder to keep what it makes of them.

    Many blocks are copied before they are trained on: each pass over uploads opens every file for
    every block, multiplies and shuffles. Measured on 2 million rows of 50 components in 12 blocks,
    one thread, seconds: of 4 parties a pass takes 2.7 without a copy and .4 with one, which takes
    7.0 once; of 20,000 parties 109, .8 and 106. Every family makes four passes or more.
    """

    folder: Path = field(kw_only=True)

    @contextmanager
    def copied(self, rows: LabelledRows) -> Iterator[LabelledRows]:
        if rows.n_blocks == 1:
            with super().copied(rows) as held:
                yield held
            return
        with self._room("rows", rows.n_rows * (rows.n_columns + 1) * 8) as folder:
            copy = Copy(rows, Path(folder))
            for _ in self(copy.write, rows, step="copying aligned rows"):
                pass
            yield copy

    def room(self, rows: LabelledRows) -> AbstractContextManager[str | None]:
        if rows.n_blocks == 1:
            return super().room(rows)
        return self._room("trees", rows.n_rows * (2 * rows.n_columns + ROW_BYTES))

    @contextmanager
    def _room(self, name: str, n_bytes: int) -> Iterator[str]:
        """Give a new folder on a disk with so much room, and delete it at the end.

        The room is asked for: xgboost ends the whole process when a disk fills up while it writes.
        """
        folder = self.folder / name
        remove_tree(folder)
        make_folder(folder)
        try:
            require_room(folder, n_bytes, what="training")
            yield str(folder)
        finally:
            remove_tree(self.folder)


class Copy(LabelledRows):
    """Aligned rows in files of a block each, as long as one training lasts."""

    def __init__(self, source: LabelledRows, folder: Path) -> None:
        self.source, self.folder = source, folder
        self.n_rows, self.n_columns = source.n_rows, source.n_columns
        self.n_blocks = source.n_blocks

    def write(self, rows: LabelledRows, index: int) -> None:
        write_tables(self._file(index), rows.block(index)._asdict(), metadata={})

    def block(self, index: int) -> Block:
        return Block(**read_tables(self._file(index))[0])

    def sample(self, n_rows: int) -> Block:
        return self.source.sample(n_rows)

    def _file(self, index: int) -> Path:
        return self.folder / f"block-{index:05d}.safetensors"


@dataclass(frozen=True)
class ClusterPasses(Pass):
    client: Any = field(kw_only=True)  # distributed.Client

    def __call__(self, work: Work[Result], rows: LabelledRows, *, step: str) -> Iterator[Result]:
        """Have blocks worked on, a few ahead; another worker takes over what one has lost."""
        indices, n_blocks = iter(range(rows.n_blocks)), rows.n_blocks
        ahead = max(2, 2 * sum(self.client.nthreads().values()))

        def sent(how_many: int) -> list[Any]:
            return [
                self.client.submit(_quietly, work, rows.only([index]), index, pure=False)
                for index in islice(indices, how_many)
            ]

        waiting = deque(sent(ahead))
        try:
            for done in range(1, n_blocks + 1):
                result = self._result(waiting.popleft())  # nobody holds it now: its worker lets go
                waiting.extend(sent(1))
                self.report(step, done, n_blocks)
                yield result
        finally:  # also when something is raised: nobody waits for what is left
            self.client.cancel(list(waiting))

    def copied(self, rows: LabelledRows) -> AbstractContextManager[LabelledRows]:
        """Leave rows where they are: each worker makes its own blocks."""
        return nullcontext(rows)

    def _result(self, future: Any) -> Any:  # noqa: ANN401 -- distributed.Future and what it gives
        """Wait for one result, as long as there are workers."""
        from distributed import KilledWorker  # noqa: PLC0415 -- an extra

        while True:
            try:
                return future.result(timeout=_LOOK_SECONDS)
            except TimeoutError:
                if self.client.nthreads():
                    continue
                why = "has no workers left"
            except KilledWorker as error:
                why = f"lost its workers one after the other ({error})"
            raise OptionError(
                f"the cluster {why}. See their log (often their memory was too small), start some, "
                "and train again."
            )


def _quietly(work: Work[Result], rows: LabelledRows, index: int) -> Result:
    with one_blas_thread():
        return work(rows, index)
