import threading
import time

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from cobasis.linalg.threads import in_order, one_blas_thread


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


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_order_and_items_are_read_just_ahead_in_the_callers_thread(workers):
    read, readers = [], set()

    def slow_first(item):
        time.sleep(0.02 if item == 0 else 0)
        return item

    def items():
        for item in range(50):
            read.append(item)
            readers.add(threading.get_ident())
            yield item

    for taken, item in enumerate(in_order(slow_first, items(), workers=workers)):
        assert item == taken
        assert len(read) <= taken + 1 + workers
    assert readers == {threading.get_ident()}


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_ends_the_work_and_comes_through(workers):
    begun = []

    def work(item):
        begun.append(item)
        if item == 3:
            raise ValueError("three")
        return item

    found = []
    with pytest.raises(ValueError, match="three"):
        found.extend(in_order(work, range(1000), workers=workers))
    assert found in ([], [0, 1, 2])
    assert len(begun) <= 4 + 2 * workers
