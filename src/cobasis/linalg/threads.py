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
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited
