"""Small work in threads, in order, with one BLAS thread each: two can take 100 times as long."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TypeVar

import scipy.linalg  # noqa: F401 -- a BLAS that is loaded after the controller has no limit
from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    """Return the controller of the libraries that are loaded when it is first asked for."""
    return ThreadpoolController()


@cache
def available_threads() -> int:
    """Return how many threads BLAS was given: by default as many as there are cores."""
    blas = [each["num_threads"] for each in _controller().info() if each["user_api"] == "blas"]
    return max(blas, default=1)


class _Inside:
    """How many threads of the caller are inside, and what restores the limit after the last."""

    # The limit is the process's: were each to restore what it found, the first that leaves would
    # give BLAS its threads back while others are inside, and the last would keep them at one.
    lock = threading.Lock()
    count = 0
    limit = ExitStack()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread, and after that as many as before."""
    available_threads()  # before it is lowered
    with _Inside.lock:
        _Inside.count += 1
        if _Inside.count == 1:
            _Inside.limit.enter_context(_controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _Inside.lock:
            _Inside.count -= 1
            if _Inside.count == 0:
                _Inside.limit.close()


Item = TypeVar("Item")
Done = TypeVar("Done")


def in_order(
    work: Callable[[Item], Done], items: Iterable[Item], *, workers: int | None = None
) -> Iterator[Done]:
    """Yield ``work(item)`` for each item, in the items' order."""
    threads = workers or available_threads()
    if threads == 1:
        yield from map(work, items)
        return
    waiting: deque[Future[Done]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="cobasis")
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            del item  # it may be large, and the next one is made while the name would hold it
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # also on Ctrl-C: what has not begun is dropped, what runs is waited for
        pool.shutdown(wait=True, cancel_futures=True)
