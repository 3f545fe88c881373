"""Passes over uploads that lie in files: a copy where that is quicker, room for trees, a cluster.

On a Dask cluster (extra ``dask``) workers read opened uploads by their paths, so all of them see
one folder. What goes to a worker is a function, a block's number, and paths and changes of basis
of that block alone; what comes back is a sum. Trees are built by xgboost's own collective, one
task on each worker, each with files of its own: xgboost's Dask interface would hold all rows in
memory, and needs pandas and pyarrow.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cobasis.disk.tensors import read_tables, write_tables
from cobasis.disk.whole import make_folder, remove_tree, require_room, scratch_folder
from cobasis.errors import CobasisError, OptionError
from cobasis.linalg.threads import available_threads, one_blas_thread
from cobasis.models import FAMILIES, ModelName, needing
from cobasis.models.out_of_core import ROW_BYTES
from cobasis.models.passes import Block, LabelledRows, Pass, Result, Share, Threads, Work
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
    if not FAMILIES[model].on_cluster:
        others = ", ".join(name for name, row in FAMILIES.items() if row.on_cluster)
        raise OptionError(
            f"model='{model}' is not trained on a cluster, since its fit is no sum over blocks. "
            f"Train without --cluster, or choose one of {others}."
        )
    distributed = _extra("distributed")
    try:
        client = distributed.Client(cluster, timeout=_ANSWER_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise OptionError(
            f"no cluster answers at '{cluster}': {error}. Give the scheduler's address, such as "
            "tcp://10.0.0.5:8786, and see that it runs."
        ) from error
    with client:
        yield ClusterPasses(client, report)


def _extra(package: str) -> Any:  # noqa: ANN401 -- a module
    with needing(package, extra="dask", what="--cluster"):
        return import_module(package)


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
        if rows.n_blocks == 1:
            with super().copied(rows) as held:
                yield held
            return
        with self._room(self.folder / "rows", rows.n_rows * (rows.n_columns + 1) * 8) as folder:
            copy = Copy(rows, folder)
            for _ in self(copy.write, rows, step="copying aligned rows"):
                pass
            yield copy

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


class Copy:
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

    def only(self, blocks: Sequence[int]) -> LabelledRows:  # noqa: ARG002 -- files are paths
        return self

    def _file(self, index: int) -> Path:
        return self.folder / f"block-{index:05d}.safetensors"


class ClusterPasses:
    def __init__(self, client: Any, report: Report) -> None:  # noqa: ANN401 -- distributed.Client
        self.client = client
        self.report = report

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

    def together(self, work: Callable[[LabelledRows, Share], Result], rows: LabelledRows) -> Result:
        """Have all workers that get a block boost together."""
        tracker_of = _extra("xgboost.tracker").RabitTracker
        begun = self._require_workers()
        workers = sorted(begun)[: rows.n_blocks]
        shares = [range(place, rows.n_blocks, len(workers)) for place in range(len(workers))]
        host = urlsplit(self.client.scheduler.address).hostname  # workers find it, and us, there
        way = _extra("distributed.utils").get_ip(host)
        tracker = tracker_of(n_workers=len(workers), host_ip=way)
        tracker.start()
        futures = [
            self.client.submit(
                _share,
                work,
                rows.only(blocks),
                blocks,
                tracker={**tracker.worker_args(), "dmlc_task_id": f"{place:05d}"},
                workers=[worker],
                allow_other_workers=False,
                retries=0,
                pure=False,
            )
            for place, (worker, blocks) in enumerate(zip(workers, shares, strict=True))
        ]
        try:
            found: Result = self._together(futures, {each: begun[each] for each in workers})
        finally:
            self.client.cancel(futures)
            with suppress(ValueError):  # xgboost's: what broke its connections is raised above
                tracker.free()
        return found

    def _workers(self) -> dict[str, str]:
        """Return each worker's own folder by its address: one that is started anew has another."""
        found = self.client.scheduler_info(n_workers=-1)["workers"]
        return {address: each["local_directory"] for address, each in found.items()}

    def _require_workers(self) -> dict[str, str]:
        found = self._workers()
        if not found:
            raise OptionError(
                "the cluster has no workers left. See their log (often their memory was too "
                "small), start some, and train again."
            )
        return found

    def _result(self, future: Any) -> Any:  # noqa: ANN401 -- distributed.Future and what it gives
        """Wait for one result, as long as there are workers."""
        from distributed import KilledWorker  # noqa: PLC0415 -- an extra

        while True:
            try:
                return future.result(timeout=_LOOK_SECONDS)
            except TimeoutError:
                self._require_workers()
            except KilledWorker as error:
                raise OptionError(
                    f"the cluster lost its workers one after the other ({error}). See their log "
                    "(often their memory was too small), and train again."
                ) from error

    def _together(self, futures: Sequence[Any], begun: Mapping[str, str]) -> Any:  # noqa: ANN401 -- what work gives
        """Wait for all workers; of their errors raise the one that made the others fail."""
        from distributed import wait  # noqa: PLC0415 -- an extra

        waiting = list(futures)
        while waiting:
            with self.client.as_current(), suppress(TimeoutError):
                wait(waiting, timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED")  # type: ignore[no-untyped-call]  # distributed has few types
            waiting = [each for each in futures if each.status == "pending"]
            errors = [each.exception() for each in futures if each.status == "error"]
            for error in errors:
                if isinstance(error, CobasisError):
                    raise error
            found = self._workers() if waiting or errors else begun
            lost = sorted(each for each, folder in begun.items() if found.get(each) != folder)
            if lost:  # its share is nobody else's, so boosting would never end
                raise OptionError(
                    f"the cluster lost {len(lost)} of {len(begun)} workers while trees were "
                    f"boosted (first {lost[0]}). See its log (often its memory was too small), and "
                    "train again."
                )
        for error in errors:
            raise error
        return futures[0].result()


def _quietly(work: Work[Result], rows: LabelledRows, index: int) -> Result:
    with one_blas_thread():
        return work(rows, index)


def _share(
    work: Callable[[LabelledRows, Share], Result],
    rows: LabelledRows,
    blocks: Sequence[int],
    *,
    tracker: dict[str, Any],
) -> Result:
    from distributed import get_worker  # noqa: PLC0415 -- an extra
    from xgboost.collective import CommunicatorContext  # noqa: PLC0415 -- an extra

    threads = int(get_worker().state.nthreads)
    with CommunicatorContext(**tracker), scratch_folder() as folder:
        return work(rows, Share(blocks, str(folder), threads))
