"""A disk that fails, or a process that dies, at the k-th call of ``cobasis.disk.calls``."""

import errno
import os
from contextlib import contextmanager, suppress
from itertools import count
from types import SimpleNamespace
from unittest import mock

from cobasis.disk import calls
from cobasis.errors import DiskError


class Killed(BaseException):
    """Ends some work as a kill does; no code of ours catches it."""


def every(*_):
    return True


def changes(name, told, _):
    """Whether a call leaves something else on the disk: all but an opening of what is there."""
    return name != "open" or told[1] & os.O_CREAT


def on(call, file):
    """Only calls of that name on files of that name."""
    return lambda name, _, path: (name, path.name) == (call, file)


@contextmanager
def at_call(number, act, *, counts=every):
    """Let `act` take the place of the k-th call that counts; the dead make no further one."""
    # how many calls there were, which one it stopped at, and whose file that was
    clock = SimpleNamespace(count=0, stopped_at=None, path=None, dead=False)

    def hook(real, told, path):
        if clock.dead:  # what is tidied up while an exception travels is not by a kill
            raise Killed
        if not counts(real.__name__, told, path):
            return real(*told)
        clock.count += 1
        if clock.count != number:
            return real(*told)
        clock.stopped_at, clock.path = real.__name__, path
        try:
            return act(real, told)
        except Killed:
            clock.dead = True
            raise

    with mock.patch.object(calls, "on_call", hook):
        yield clock


def half(real, told):
    if real.__name__ == "pwrite":
        descriptor, data, offset = told
        real(descriptor, data[: len(data) // 2], offset)


def failing(code):
    def act(real, told):
        half(real, told)
        raise OSError(code, os.strerror(code))

    return act


def dying_half_way(real, told):
    half(real, told)
    raise Killed


def dying_before(_, __):
    raise Killed


def dying_after(real, told):
    """Die after a call, which is before the next one."""
    with suppress(OSError):  # there may be nothing to delete
        real(*told)
    raise Killed


FULL, BROKEN = failing(errno.ENOSPC), failing(errno.EIO)


def failures(act, work):
    """Let the disk fail at the k-th call, k = 1 until it runs clean; yields where it did."""
    for number in count(1):
        error = ""
        with at_call(number, act) as clock:
            try:
                work()
            except DiskError as raised:
                error = str(raised)
        if clock.stopped_at is None:
            assert not error
            return
        # an error while it tidies up after its work is none that anybody has to hear of
        assert "[CB601]" in error or clock.stopped_at in {"unlink", "rmdir"}, clock.stopped_at
        yield clock.stopped_at


def died(act, number, work, *, counts=changes):
    """Do some work that dies at the k-th call; which call that was, None if it lived."""
    with at_call(number, act, counts=counts) as clock, suppress(Killed):
        work()
    return clock.stopped_at


def deaths(work):
    """Die after each call, and within each write; yields the call, before the next death."""
    number = 1
    while call := died(dying_after, number, work):
        yield f"after call {number} ({call})", call
        if call == "pwrite":
            died(dying_half_way, number, work)
            yield f"within call {number} ({call})", call
        number += 1


def calls_of(work, *, counts=changes):
    """Do some work; the calls of it that count, in order: name and file."""
    made = []

    def noted(name, told, path):
        if counts(name, told, path):
            made.append((name, path))

    with at_call(0, None, counts=noted):
        work()
    return made
