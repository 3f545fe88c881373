"""One BLAS thread: on a busy machine two of them can take 100 times as long.

The matrices here are small and many; what is spread over cores is spread over parties.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    """Return the controller of the libraries that are loaded when it is first asked for."""
    return ThreadpoolController()


@cache
def available_threads() -> int:
    """Return how many threads BLAS was given: by default as many as there are cores.

    Returns
    -------
    int
        At least 1. ``OPENBLAS_NUM_THREADS`` and its like lower it, as they do for BLAS.

    Notes
    -----
    **Who sees what.** Nothing.

    **Cost.** Asked once, before the first `one_blas_thread` lowers it.
    """
    blas = [each["num_threads"] for each in _controller().info() if each["user_api"] == "blas"]
    return max(blas, default=1)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread, and after which it uses as many as before.

    Returns
    -------
    context manager
        For the whole process, as BLAS libraries have it.

    Notes
    -----
    **Who sees what.** Nothing.

    **Cost.** Microseconds; finding the libraries the first time, some milliseconds.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> with one_blas_thread():
    ...     {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}
    {1}
    """
    available_threads()  # before it is lowered
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited
