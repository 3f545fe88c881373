"""A warm interpreter that forks: each job runs in a child of its own, which may be killed.

Pytest's own process cannot fork: libraries have started threads in it. The other one has only
imported them, and what its children do stands in ``jobs.py``.
"""

import json
import subprocess
import sys
from typing import NamedTuple

import pytest

SCRIPT = "import sys; sys.path[:0] = {path!r}; from under_fault import jobs; jobs.serve()"


class Done(NamedTuple):
    """How a child ended: minus the signal that killed it, and what it said before."""

    status: int
    answer: object


class Warm:
    """Hands the interpreter jobs: functions of ``under_fault.jobs``, by name."""

    def __init__(self, process):
        self._process = process

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


@pytest.fixture(scope="session")
def warm():
    command = [sys.executable, "-c", SCRIPT.format(path=sys.path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        yield Warm(process)


@pytest.fixture
def tell(capsys):
    """Print a figure that the documentation quotes, also where all goes well."""

    def telling(text):
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return telling
