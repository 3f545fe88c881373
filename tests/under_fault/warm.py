"""A warm interpreter that forks: each job runs in a child of its own, which may be killed.

Pytest's own process cannot fork: libraries have started threads in it. This one has only
imported them.
"""

import json
import os
import signal
import subprocess
import sys
import traceback
from contextlib import suppress
from typing import NamedTuple

import pytest

SCRIPT = "import sys; sys.path[:0] = {path!r}; from under_fault import warm; warm.serve()"
MOST_SECONDS = 60


class Done(NamedTuple):
    """How a child ended: minus the signal that killed it, and what it said before."""

    status: int
    answer: object


class Warm:
    """Starts the interpreter, and hands it jobs: functions of ``under_fault.jobs``, by name."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, job, **told):
        """Run a job in a fresh child, and wait until it has ended."""
        self._process.stdin.write(json.dumps([job, told]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the warm interpreter itself has ended"
        return Done(*json.loads(line))

    def ask(self, job, **told):
        """Run a job that has to end well, and return its answer."""
        done = self.do(job, **told)
        assert done.status == 0, (job, told, done)
        return done.answer

    def close(self):
        """End the interpreter."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def say(pipe, answer):
    """Give an answer; the last one counts."""
    os.write(pipe, json.dumps(answer).encode() + b"\n")


def serve():
    """Fork for every line that comes in."""
    from under_fault import jobs  # noqa: PLC0415 -- the warm interpreter's, not pytest's

    jobs.unlock(pytest.MonkeyPatch())
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a child prints goes to stderr
    for line in sys.stdin:
        job, told = json.loads(line)
        reads, writes = os.pipe()
        child = os.fork()
        if not child:
            os.close(reads)
            _child(getattr(jobs, job), told, writes)
        os.close(writes)
        with os.fdopen(reads) as pipe:
            said = pipe.read().splitlines()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps([status, json.loads(said[-1]) if said else None]), file=out, flush=True)


def _child(job, told, pipe):
    status = 1
    with suppress(BaseException):
        signal.alarm(MOST_SECONDS)
        try:
            say(pipe, job(pipe=pipe, **told))
            status = 0
        except BaseException:  # noqa: BLE001 -- told, and the child ends
            say(pipe, traceback.format_exc())
    os._exit(status)
