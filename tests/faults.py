"""A disk that fails, or a process that dies, at the k-th call: k = 1 until it runs clean."""

import errno
import os
from contextlib import contextmanager
from unittest import mock

CALLS = (
    "open",
    "write",
    "pwrite",
    "fsync",
    "ftruncate",
    "posix_fallocate",
    "mkdir",
    "replace",
    "rename",
    "unlink",
    "rmdir",
)
REAL = {name: getattr(os, name) for name in CALLS if hasattr(os, name)}
KILLED = 9


class Clock:
    """Counts the calls, and says which one it stopped at."""

    def __init__(self):
        self.count, self.stopped_at = 0, None


@contextmanager
def at_call(number, act):
    """Let `act(name, real, args, kwargs)` take the place of the k-th of those calls."""
    clock = Clock()

    def watched(name):
        def call(*args, **kwargs):
            clock.count += 1
            if clock.count == number:
                clock.stopped_at = name
                return act(name, REAL[name], args, kwargs)
            return REAL[name](*args, **kwargs)

        return call

    with mock.patch.multiple(os, **{name: watched(name) for name in REAL}):
        yield clock


def half(name, real, args, kwargs):
    """Write the first half of what was to be written."""
    if name in WRITES:
        data = bytes(args[1])
        real(args[0], data[: len(data) // 2], *args[2:], **kwargs)


def failing(code):
    def act(name, real, args, kwargs):
        half(name, real, args, kwargs)
        raise OSError(code, os.strerror(code))

    return act


def dying_half_way(name, real, args, kwargs):
    """Die within a write; at any other call, before it."""
    half(name, real, args, kwargs)
    os._exit(KILLED)


def dying_after(_, real, args, kwargs):
    """Die after a call, which is before the next one."""
    real(*args, **kwargs)
    os._exit(KILLED)


FULL, BROKEN = failing(errno.ENOSPC), failing(errno.EIO)
WRITES = {"write", "pwrite"}


def died(act, number, work):
    """Do some work in a fork that dies at the k-th call; which call that was, None if it lived."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:

            def told(name, *rest):
                REAL["write"](writes, name.encode())
                act(name, *rest)

            with at_call(number, told):
                work()
            status = 0
        finally:
            os._exit(status)
    os.close(writes)
    name = os.read(reads, 100).decode()
    os.close(reads)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in {0, KILLED}:
        msg = f"the work failed with {status} at call {number} ({name})"
        raise AssertionError(msg)
    return name if status == KILLED else None
