"""Work spread over threads, in order, with few items under way at a time.

NumPy lets go of the interpreter's lock inside products and factorisations, so that threads
are enough, and nothing has to be copied to other processes.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from cobasis.linalg.threads import available_threads

Item = TypeVar("Item")
Done = TypeVar("Done")


def in_order(
    work: Callable[[Item], Done], items: Iterable[Item], *, workers: int | None = None
) -> Iterator[Done]:
    """Yield ``work(item)`` for each item, in the items' order.

    Examples
    --------
    >>> list(in_order(abs, [-1, 2, -3], workers=2))
    [1, 2, 3]
    """
    threads = workers or available_threads()
    if threads == 1:
        yield from map(work, items)
        return
    waiting: deque[Future[Done]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="cobasis")
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # also on Ctrl-C: what has not begun is dropped, what runs is waited for
        pool.shutdown(wait=True, cancel_futures=True)
