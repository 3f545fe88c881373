"""A warm interpreter that forks: each job runs in a child of its own, which may be killed.

Pytest's own process cannot fork: libraries have started threads in it. The other one has only
imported them, and what its children do stands in ``jobs.py``.
"""

import os
import sys
from contextlib import suppress
from multiprocessing import forkserver, get_context
from typing import NamedTuple

import pytest

from under_fault import jobs


class Done(NamedTuple):
    """How a child ended: minus the signal that killed it, and what it said before."""

    status: int
    answer: object


class Warm:
    def __init__(self):
        self._context = get_context("forkserver")
        later = ("sklearn.model_selection", "sklearn.svm", "narwhals._polars.dataframe")
        self._context.set_forkserver_preload([jobs.__name__, *later])  # else each child loads them

    def do(self, job, **told):
        reads, writes = self._context.Pipe(duplex=False)
        child = self._context.Process(target=jobs.answer, args=(writes, job, told))
        child.start()
        writes.close()
        said = None
        with reads, suppress(EOFError):
            said = reads.recv()
        child.join()
        return Done(child.exitcode, said)

    def ask(self, job, **told):
        done = self.do(job, **told)
        assert done.status == 0, (job, told, done)
        return done.answer


@pytest.fixture(scope="session")
def warm():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        yield Warm()
    forkserver._forkserver._stop()  # waited for, so that the processor's time counts its children


@pytest.fixture
def tell(capsys):
    """Print a figure that the documentation quotes, also where all goes well."""

    def telling(text):
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return telling
