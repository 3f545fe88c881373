"""Passes and trees on a Dask cluster (extra ``dask``), from the uploads themselves.

Workers read opened uploads by their paths, so all of them see one folder. What goes to a worker is
a function, a block's number, and paths and changes of basis of that block alone; what comes back is
a sum. Trees are built by xgboost's own collective, one task on each worker, each with files of its
own: xgboost's Dask interface would hold all rows in memory, and needs pandas and pyarrow.
"""

import socket
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from cobasis.disk.whole import scratch_folder
from cobasis.errors import CobasisError, MissingExtraError, OptionError
from cobasis.linalg.threads import one_blas_thread
from cobasis.models import ModelName
from cobasis.models.passes import LabelledRows, Result, Share, Work
from cobasis.progress import Report

ON_A_CLUSTER = ("logistic", "ridge", "rff", "xgboost")

_LOOK_SECONDS = 2.0
"""How often it is looked whether workers are still there."""

_ANSWER_SECONDS = 10


@contextmanager
def cluster_at(address: str, *, model: ModelName, report: Report) -> Iterator["ClusterPasses"]:
    """Connect to a scheduler, and give passes on its workers."""
    if model not in ON_A_CLUSTER:
        raise OptionError(
            f"model='{model}' is not trained on a cluster: perceptrons learn from one mini-batch "
            "after the other, and scikit-learn's trees from all rows at once. Train without "
            f"--cluster, or choose one of {', '.join(ON_A_CLUSTER)}."
        )
    distributed = _extra("distributed")
    try:
        client = distributed.Client(address, timeout=_ANSWER_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise OptionError(
            f"no cluster answers at '{address}': {error}. Give the scheduler's address, such as "
            "tcp://10.0.0.5:8786, and see that it runs."
        ) from error
    with client:
        yield ClusterPasses(client, report)


def _extra(package: str) -> Any:  # noqa: ANN401 -- a module
    """Import an optional package, or say how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtraError(
            f"--cluster needs the package {package}, which is not installed. Install it with: "
            "pip install 'cobasis[dask]'"
        ) from error


class ClusterPasses:
    """Passes on a cluster's workers."""

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
        begun = self._workers()
        workers = sorted(begun)[: rows.n_blocks]
        if not workers:
            _refuse_none()
        shares = [range(place, rows.n_blocks, len(workers)) for place in range(len(workers))]
        tracker = tracker_of(n_workers=len(workers), host_ip=_address(self.client))
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

    def _result(self, future: Any) -> Any:  # noqa: ANN401 -- distributed.Future and what it gives
        """Wait for one result, as long as there are workers."""
        from distributed import KilledWorker  # noqa: PLC0415 -- an extra

        while True:
            try:
                return future.result(timeout=_LOOK_SECONDS)
            except TimeoutError:
                if not self._workers():
                    _refuse_none()
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
            if waiting or errors:
                _refuse_lost(begun, self._workers())
        for error in errors:
            raise error
        return futures[0].result()


def _quietly(work: Work[Result], rows: LabelledRows, index: int) -> Result:
    """Work with one BLAS thread, as everywhere."""
    with one_blas_thread():
        return work(rows, index)


def _share(
    work: Callable[[LabelledRows, Share], Result],
    rows: LabelledRows,
    blocks: Sequence[int],
    *,
    tracker: dict[str, Any],
) -> Result:
    """Work on one worker's blocks, together with the other workers."""
    from distributed import get_worker  # noqa: PLC0415 -- an extra
    from xgboost.collective import CommunicatorContext  # noqa: PLC0415 -- an extra

    threads = int(get_worker().state.nthreads)
    with CommunicatorContext(**tracker), scratch_folder() as folder:
        return work(rows, Share(blocks, str(folder), threads))


def _refuse_none() -> None:
    """Raise OptionError: nobody is there to work."""
    raise OptionError(
        "the cluster has no workers left. See their log (often their memory was too small), start "
        "some, and train again."
    )


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
