"""The limit on BLAS holds while anybody is inside, and is lifted by the first who came."""

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from cobasis.linalg.threads import one_blas_thread


def blas_threads() -> set[int]:
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def inside(entered: threading.Event, leave: threading.Event) -> None:
    with one_blas_thread():
        entered.set()
        leave.wait(10)


@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_two_that_overlap_are_both_limited_to_their_end(first_leaves_first):
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        entered, leave = threading.Event(), threading.Event()
        thread = threading.Thread(target=inside, args=(entered, leave))
        with one_blas_thread():
            thread.start()
            assert entered.wait(10)
            if not first_leaves_first:
                leave.set()
                thread.join(10)
            assert blas_threads() == {1}
        assert blas_threads() == ({1} if first_leaves_first else before)
        leave.set()
        thread.join(10)


def test_an_error_inside_lifts_it_too():
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(ZeroDivisionError), one_blas_thread(), one_blas_thread():
            divmod(1, 0)
        assert blas_threads() == before
