"""What the web half knows without listing folders: an SQLite index of rounds and of uploads.

Files are the truth. A row is written once its file is there, and believed where that still is: a
row without a file is passed over, and a file without a row gets one when it is begun again.
The worker, perhaps on another host, never opens the index.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cobasis.disk.lock import Lock
from cobasis.disk.whole import (
    PART,
    file_digest,
    make_folder,
    move_whole,
    read_whole,
    remove_tree,
    require_room,
    settle_names,
    stamp_of,
)
from cobasis.errors import DiskError, RequestError
from cobasis.transport.inbox import (
    DIGEST,
    JOINT,
    SECRET,
    STATEMENTS,
    VERDICT,
    Sent,
    Served,
    rounds,
    served_at,
)

MOST_OPEN = 4  # so many files of one kind a party may have on their way, or waiting

_NAME = "index.sqlite"


@dataclass(frozen=True, kw_only=True)
class State:
    n_bytes: int
    length: int
    whole: bool
    verdict: dict[str, Any] | None = None  # the worker's, once it has looked


class Index:
    """The inboxes of a served folder, as the web half fills them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / STATEMENTS / _NAME
        make_folder(self._path.parent)
        with self._usable():
            self._rows = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        self._ask("PRAGMA journal_mode = WAL")
        self._ask("PRAGMA synchronous = NORMAL")  # a power cut may take the last rows, and no file
        if not self._ask("SELECT 1 FROM sqlite_master"):
            self._make()

    def _make(self) -> None:
        self._ask("BEGIN")  # a kill in between leaves none
        self._ask("CREATE TABLE rounds (digest TEXT PRIMARY KEY, file TEXT)")
        self._ask("CREATE TABLE uploads (file TEXT PRIMARY KEY, length INTEGER)")
        self._read()
        for path in sorted(self._folder.glob(f"*.inbox/*/*{JOINT}*")):
            name, _, length = path.name.removesuffix(PART).rpartition(JOINT)
            if path.suffix == PART and length.isdigit():
                self._note(path.with_name(name), int(length))
            elif re.fullmatch(DIGEST, length):
                self._note(path, 0)  # whole: its size says more
        self._ask("COMMIT")

    def _read(self) -> None:
        for each in reversed(rounds(self._folder)):  # the first of two files of one text
            told = (each.digest, each.path.name)
            self._ask("INSERT OR REPLACE INTO rounds VALUES (?, ?)", *told)

    def round(self, digest: str) -> Served | None:
        """Return the round of an agreement; where none is known, all agreements are looked at."""
        for known in (True, False):
            if not known:
                self._read()
            for (name,) in self._ask("SELECT file FROM rounds WHERE digest = ?", digest):
                found = served_at(self._folder / name)
                if found is not None and found.digest == digest:
                    return found
        return None

    def state(self, sent: Sent) -> State | None:
        """Return how far a file has come, by its size; the index says how long it will be."""
        # in the order in which names follow each other, so that none is missed between two looks
        place = self._name(sent.place())
        for (length,) in self._ask("SELECT length FROM uploads WHERE file = ?", place):
            with suppress(DiskError):  # it has got its name meanwhile
                n_bytes = stamp_of(self._part(sent, length)).size
                return State(n_bytes=n_bytes, length=length, whole=False)
        with suppress(DiskError):
            n_bytes = stamp_of(sent.place()).size
            return State(n_bytes=n_bytes, length=n_bytes, whole=True)
        with suppress(DiskError):
            verdict = json.loads(read_whole(sent.place(VERDICT)))
            n_bytes = verdict.pop("bytes")
            return State(n_bytes=n_bytes, length=n_bytes, whole=True, verdict=verdict)
        return None

    def settled(self, sent: Sent) -> State | None:
        """Return a file's state; of a whole one once its name is on the disk."""
        if (state := self.state(sent)) and state.whole:
            # whoever gave it its name may have died before this
            settle_names(sent.place().parent)
        return state

    def begin(self, sent: Sent, *, length: int) -> State:
        if found := self.settled(sent):
            return found
        if (n_open := self._count(sent)) >= MOST_OPEN:
            raise RequestError(
                f"'{sent.party}' has {n_open} files of kind '{sent.what}' here. Wait until the "
                "worker has looked; parts that stop go after two weeks.",
                status=429,
            )
        make_folder(sent.place().parent)
        require_room(sent.inbox, length, what="this file")
        with self._locked(sent, length) as file:
            # not before: another request of this party deletes rows without a file
            self._note(sent.place(), length)
            return State(n_bytes=file.n_bytes, length=length, whole=False)

    def _count(self, sent: Sent) -> int:
        """Count a party's files of one kind that are on their way, or wait for the worker."""
        n_open, kind = 0, self._name(replace(sent, digest="").place())
        # a range, which the key serves: LIKE would read all rows, and '_' and '%' stand in names
        found = self._ask("SELECT file FROM uploads WHERE file BETWEEN ? AND ?", kind, f"{kind}g")
        for (name,) in found:
            state = self.state(replace(sent, digest=name.removeprefix(kind)))
            if state is None or state.verdict is not None:
                self._ask("DELETE FROM uploads WHERE file = ?", name)
            else:
                n_open += 1
        return n_open

    def known(self, sent: Sent) -> State:
        if state := self.settled(sent):
            return state
        raise RequestError("no such file was begun. Begin it.", status=404)

    def grow(self, sent: Sent, *, offset: int) -> tuple[Lock, int]:
        """Open what has come of a file, and say how long it will be; nobody else can meanwhile."""
        state = self.known(sent)
        here = state.n_bytes
        if not state.whole:
            file = self._locked(sent, state.length)
            if (here := file.n_bytes) == offset:
                return file, state.length
            file.release()
        raise RequestError(
            f"{here:,} bytes of this file are here, and what comes begins behind {offset:,}. Go on "
            "from where it stands.",
            status=409,
        )

    def finish(self, sent: Sent, file: Lock, *, digest: str | None) -> None:
        found = digest or file_digest(file.path)
        if found != sent.digest:
            remove_tree(file.path)
            raise RequestError(
                f"what came has the SHA-256 {found[:16]}, and was announced as {sent.digest[:16]}. "
                "It is deleted here. Send it again from its beginning."
            )
        file.settle()
        move_whole(file.path, sent.place())
        if sent.what.startswith(SECRET):
            for older in file.path.parent.glob(f"{sent.what}{JOINT}*"):
                # of an earlier text of the agreement; nobody gets it any more
                if older not in {sent.place(), file.path}:
                    remove_tree(older)

    def _part(self, sent: Sent, length: int) -> Path:
        return sent.place(f"{JOINT}{length}{PART}")

    def _locked(self, sent: Sent, length: int) -> Lock:
        path = self._part(sent, length)
        return Lock(path, what=f"'{path}'")

    def _note(self, whole: Path, length: int) -> None:
        self._ask("INSERT OR REPLACE INTO uploads VALUES (?, ?)", self._name(whole), length)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()

    def _ask(self, line: str, *told: object) -> list[tuple[Any, ...]]:
        with self._usable():
            return self._rows.execute(line, told).fetchall()

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise DiskError(
                f"the server's index '{self._path}' cannot be used ({error}). If the disk is not "
                "full, 'cobasis serve --rebuild' makes it anew from the files."
            ) from None


def alone(folder: Path) -> Lock:
    """Keep other web halves out: one on another host would break the index."""
    make_folder(folder / STATEMENTS)
    return Lock(folder / STATEMENTS / "web", what=f"the index of '{folder}'")


def forget_index(folder: Path) -> None:
    """Delete an index, with what SQLite keeps beside it, so that the next start makes it anew."""
    with alone(folder):
        for path in (folder / STATEMENTS).glob(f"{_NAME}*"):
            remove_tree(path)
