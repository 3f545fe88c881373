"""Passes and trees on a Dask cluster (extra ``dask``), from the same partitions.

Workers read the partitions by their path, so all of them see one folder. What goes to a worker
is a function and a partition's number, what comes back a sum: the models are the same code,
and their sums are added in the same order, as on one machine. Trees are built by xgboost's own
collective, one task on each worker, each with external memory of its own: xgboost's Dask
interface would hold all rows in the workers' memory, and needs pandas and pyarrow.
"""

import socket
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from cobasis.disk.whole import scratch_folder
from cobasis.engine.partitions import AlignedRows, Labels, Rows
from cobasis.engine.training_passes import Pass, TurnedRows
from cobasis.engine.trees import BoostedTrees, boost, require_extra, settings_for
from cobasis.errors import CobasisError, OptionError
from cobasis.linalg.threads import one_blas_thread
from cobasis.models.families import Estimator, Task
from cobasis.progress import Report, silent

Result = TypeVar("Result")

_LOOK_SECONDS = 2.0
"""How often, while trees are boosted, it is looked whether all workers are still there."""


def there(aligned: AlignedRows, client: Any, *, report: Report) -> Pass:  # noqa: ANN401 -- an extra's
    """Return passes on a cluster."""
    distributed = require_extra("distributed", extra="dask")
    if not isinstance(client, distributed.Client):
        raise OptionError(
            f"cluster={type(client).__name__} is no cluster. Give a distributed.Client."
        )
    n_partitions = len(aligned.partitions)

    def run(work: Callable[[int], Result], step: str | None = None) -> Iterator[Result]:
        task, indices = partial(_quietly, work), iter(range(n_partitions))
        ahead = max(2, 2 * sum(client.nthreads().values()))
        waiting = deque(client.submit(task, each, pure=False) for each in islice(indices, ahead))
        try:
            for done in range(1, n_partitions + 1):
                result = waiting.popleft().result()  # nobody holds it now: the worker lets it go
                waiting.extend(client.submit(task, each, pure=False) for each in islice(indices, 1))
                if step is not None:
                    report(step, done, n_partitions)
                yield result
        finally:  # also when something is raised: nobody waits for what is left
            client.cancel(list(waiting))

    return run


def _quietly(work: Callable[[int], Result], index: int) -> Result:
    """Call the work with one BLAS thread, as everywhere."""
    with one_blas_thread():
        return work(index)


def fit_trees_there(
    rows: TurnedRows,
    *,
    client: Any,  # noqa: ANN401 -- distributed.Client, whose package is optional
    task: Task,
    seed: int,
    max_rounds: int,
    over: Pass,
) -> Estimator:
    """Fit boosted trees on all workers of a cluster together."""
    tracker_of = require_extra("xgboost.tracker", extra="dask").RabitTracker
    n_partitions = len(rows.aligned.partitions)
    begun = _workers(client)
    _refuse_number(len(begun), n_partitions)
    workers = sorted(begun)
    classes = tuple(rows.aligned.class_counts) if task == "classification" else ()
    held = rows.first(rows.n_held, over) if rows.n_held else None
    tracker = tracker_of(n_workers=len(workers), host_ip=_address(client))
    tracker.start()
    futures = [
        client.submit(
            _share,
            rows,
            range(place, n_partitions, len(workers)),
            tracker={**tracker.worker_args(), "dmlc_task_id": f"{place:05d}"},
            task=task,
            classes=classes,
            held=held,
            seed=seed,
            max_rounds=max_rounds,
            workers=[worker],
            allow_other_workers=False,
            retries=0,
            pure=False,
        )
        for place, worker in enumerate(workers)
    ]
    try:
        raw = _together(futures, client=client, begun=begun)
    finally:
        client.cancel(futures)
        with suppress(ValueError):  # xgboost's: what broke its connections is raised above
            tracker.free()
    return BoostedTrees(raw, np.array(classes) if classes else None)


def _workers(client: Any) -> dict[str, str]:  # noqa: ANN401 -- distributed.Client
    """Return each worker's own folder by its address: one that is started anew has another."""
    found = client.scheduler_info(n_workers=-1)["workers"]
    return {address: each["local_directory"] for address, each in found.items()}


def _refuse_number(n_workers: int, n_partitions: int) -> None:
    """Raise unless each worker can have a partition."""
    if not 0 < n_workers <= n_partitions:
        raise OptionError(
            f"the cluster has {n_workers} workers for {n_partitions} partitions. Give at least "
            "one worker, and write smaller partitions (partition_bytes=) for more of them."
        )


def _together(
    futures: Sequence[Any],
    *,
    client: Any,  # noqa: ANN401 -- distributed.Client
    begun: Mapping[str, str],
) -> npt.NDArray[np.uint8]:
    """Wait for all workers; of their errors raise the one that made the others fail."""
    from distributed import wait  # noqa: PLC0415 -- an extra

    waiting = list(futures)
    while waiting:
        with client.as_current(), suppress(TimeoutError):
            wait(waiting, timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED")  # type: ignore[no-untyped-call]  # distributed has few types
        waiting = [each for each in futures if each.status == "pending"]
        errors = [each.exception() for each in futures if each.status == "error"]
        for error in errors:
            if isinstance(error, CobasisError):
                raise error
        if waiting or errors:
            _refuse_lost(begun, _workers(client))
    for error in errors:
        raise error
    raw: npt.NDArray[np.uint8] = futures[0].result()
    return raw


def _refuse_lost(begun: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Raise if a worker is gone: its share is nobody else's, so boosting would never end."""
    lost = sorted(each for each, folder in begun.items() if found.get(each) != folder)
    if lost:
        raise OptionError(
            f"the cluster lost {len(lost)} of {len(begun)} workers while trees were boosted "
            f"(first {lost[0]}). Each has a share of the rows, so the others cannot go on. See "
            "that worker's log (often its memory was too small), and train again."
        )


def _address(client: Any) -> str:  # noqa: ANN401 -- distributed.Client
    """Return the address of this machine that the scheduler is reached from."""
    host = urlsplit(client.scheduler.address).hostname or "127.0.0.1"
    try:
        family, kind, _, _, place = socket.getaddrinfo(host, 80, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(place)  # sends nothing: it only chooses a way out
            return str(probe.getsockname()[0])
    except OSError as error:
        raise OptionError(
            f"cluster: this machine has no way to its scheduler '{host}': {error}. The workers "
            "have to reach this machine, too. Connect the client by an address that both know."
        ) from error


def _share(
    rows: TurnedRows,
    partitions: Sequence[int],
    *,
    tracker: dict[str, Any],
    task: Task,
    classes: Sequence[int],
    held: tuple[Rows, Labels] | None,
    seed: int,
    max_rounds: int,
) -> npt.NDArray[np.uint8]:
    """Boost on one worker's share of the partitions, together with the other workers."""
    from distributed import get_worker  # noqa: PLC0415 -- an extra
    from xgboost.collective import CommunicatorContext  # noqa: PLC0415 -- an extra

    threads = int(get_worker().state.nthreads)
    settings = settings_for(task, classes, seed=seed, threads=threads)
    with CommunicatorContext(**tracker), scratch_folder() as folder:
        return boost(
            rows,
            partitions,
            settings=settings,
            classes=classes,
            held=held,
            folder=folder,
            max_rounds=max_rounds,
            report=silent,
        )
