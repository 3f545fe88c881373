"""The pool: in order, few at a time, and quickly over when something goes wrong."""

import threading
import time

import pytest

from cobasis.linalg.threads import in_order


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_order(workers):
    def slow_first(item):
        time.sleep(0.02 if item == 0 else 0)
        return item

    assert list(in_order(slow_first, range(30), workers=workers)) == list(range(30))


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_items_are_read_just_ahead_in_the_callers_thread(workers):
    read, readers = [], set()

    def items():
        for item in range(50):
            read.append(item)
            readers.add(threading.get_ident())
            yield item

    for taken, _ in enumerate(in_order(abs, items(), workers=workers)):
        assert len(read) <= taken + 1 + workers
    assert readers == {threading.get_ident()}


def test_two_workers_work_at_the_same_time():
    together = threading.Barrier(2, timeout=10)

    def meet(item):
        together.wait()  # times out, and raises, unless two are in it at once
        return item

    assert list(in_order(meet, range(4), workers=2)) == [0, 1, 2, 3]


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_ends_the_work_and_comes_through(workers):
    begun = []

    def work(item):
        begun.append(item)
        if item == 3:
            msg = "three"
            raise ValueError(msg)
        return item

    found = []
    with pytest.raises(ValueError, match="three"):
        found.extend(in_order(work, range(1000), workers=workers))
    assert found in ([], [0, 1, 2])
    assert len(begun) <= 4 + 2 * workers


def test_an_interrupt_while_reading_leaves_no_thread_behind():
    before = threading.active_count()

    def items():
        yield from range(5)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(in_order(abs, items(), workers=3))
    assert threading.active_count() == before
