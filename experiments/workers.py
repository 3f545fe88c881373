"""Processes that measure cells, one at a time each; they end when their master does."""

import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process

from experiments.data.sources import MissingDataError
from experiments.store import Cell
from experiments.study import Settings, key, load


@dataclass(frozen=True, kw_only=True)
class Task:
    """One cell that is still to be measured.

    Attributes
    ----------
    study : str
        Whose.
    settings : Settings
        Which.
    repeat : int
        Which repeat.
    expected : float
        Seconds, from an earlier run; 0 where nobody knows.
    shared : str
        Whose uploads it needs, where other cells need the same.
    """

    study: str
    settings: Settings
    repeat: int
    expected: float = 0.0
    shared: str = ""

    @property
    def round(self) -> str:
        """What cells have in common that one process should measure, one after another."""
        return f"{self.study} {self.repeat} {self.shared}" if self.shared else str(self)

    @property
    def cell(self) -> tuple[str, str]:
        """What all its repeats share."""
        return self.study, key(self.settings, "")

    def __str__(self) -> str:
        """Say which it is."""
        return f"{self.study} {key(self.settings, str(self.repeat))}"


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Why there is no cell.

    Attributes
    ----------
    reason : str
        In one line.
    story : str
        The traceback.
    missing : bool
        Whether a file of the evaluation data is not there.
    """

    reason: str
    story: str = ""
    missing: bool = False


def measured(task: Task) -> Cell:
    """Measure one cell."""
    started, clock = time.process_time(), time.monotonic()
    values = load(task.study).run(task.settings, repeat=task.repeat)
    return Cell(
        settings=task.settings,
        repeat=task.repeat,
        values={name: float(value) for name, value in values.items()},
        seconds=round(time.process_time() - started, 1),
        wall=round(time.monotonic() - clock, 1),
        commit=os.environ["COBASIS_COMMIT"],
    )


def answer(task: Task) -> Cell | Trouble:
    """Measure one cell, or say why not: one cell's trouble must not end the others."""
    try:
        return measured(task)
    except MissingDataError as error:
        return Trouble(reason=str(error), missing=True)
    except Exception as error:  # noqa: BLE001 -- said by whoever asked
        reason = f"{type(error).__name__}: {error}"
        return Trouble(reason=reason, story=traceback.format_exc())


def serve(asked: "connection.Connection[Cell | Trouble, Task]") -> None:
    """Answer until nobody asks any more."""
    threading.Thread(target=_end_with_the_master, daemon=True).start()
    while True:
        try:
            task = asked.recv()
        except EOFError:
            return
        asked.send(answer(task))


def _end_with_the_master() -> None:
    """End at once when the master was killed: nobody would take what comes."""
    master = parent_process()
    if master is not None:
        connection.wait([master.sentinel])
        os._exit(1)


class Worker:
    """One process, and what it is at."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        with _deaf_to_interrupts():
            self.process.start()
        theirs.close()
        self.task: Task | None = None
        self.started = 0.0

    def begin(self, task: Task) -> None:
        """Hand over a cell."""
        self.task, self.started = task, time.monotonic()
        self.connection.send(task)

    def result(self) -> Cell | Trouble:
        """Take what it found; call when something is there to take."""
        self.task = None
        try:
            found: Cell | Trouble = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            return Trouble(reason=f"its process ended with {code}; was it short of memory?")
        return found

    def stop(self) -> None:
        """End the process, whatever it is at."""
        self.process.kill()
        self.process.join()
        self.connection.close()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let a process begin that never hears Ctrl-C; its master does, and ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
