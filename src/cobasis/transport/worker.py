"""The worker: has the analyst's key and no port; takes what lies in inboxes, and ends exchanges."""

import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from cobasis.analyst_side.plan import planned
from cobasis.analyst_side.receive import FileVerdict, receive
from cobasis.analyst_side.run import halting, run
from cobasis.analyst_side.session import AnalystSession, session_of, work_folder
from cobasis.bundle.agreement_file import inbox_of, line_in, sealed_path
from cobasis.disk.lock import Lock
from cobasis.disk.whole import make_folder, remove_tree, stamp_of, write_whole
from cobasis.errors import (
    AgreementError,
    AnotherRunError,
    CobasisError,
    DiskError,
    RetentionError,
    RevokedError,
    StepError,
    TranscriptError,
    UnsignedError,
    WaitingError,
)
from cobasis.keys.identity import Identity
from cobasis.protocol.agreement import moment_of
from cobasis.transport.certificate import Statement, certificate_at, pin_of
from cobasis.transport.inbox import STATEMENT, STATEMENTS, Served, prune, rounds, waiting

LOG = logging.getLogger("cobasis.worker")

_RENEW = timedelta(days=60)  # a statement that ends sooner than this is signed anew

_REST = 10.0  # seconds without a look after a folder was in use, or its disk failed


@dataclass(kw_only=True)
class Worker:
    folder: Path
    identity: Identity
    runs: bool  # ends an exchange once everybody's file is in
    certificate: Path
    _seen: dict[Path, object] = field(default_factory=dict)
    _rests: dict[Path, float] = field(default_factory=dict)

    def work(self, *, every: float, goes_on: Callable[[], bool]) -> None:
        """Look into the folder again and again; one worker at a time does."""
        make_folder(self.folder / STATEMENTS)
        place = self.folder / STATEMENTS / "worker"
        with Lock(place, what=f"the worker's folder '{self.folder}'"):
            while goes_on():
                self.step()
                time.sleep(every)

    def step(self) -> None:
        """Do whatever can be done now; what fails in one round keeps no other waiting."""
        for key in (self.identity, *self.identity.before):  # rounds may enrol one before
            self._guarded(self.certificate, partial(self._state, key))
        for served in rounds(self.folder):
            if time.monotonic() >= self._rests.get(served.path, 0):
                self._guarded(served.path, partial(self._look, served))

    def _guarded(self, path: Path, work: Callable[[], None]) -> None:
        try:
            work()
        except (AnotherRunError, DiskError) as error:  # perhaps not in a while
            self._seen.pop(path, None)
            self._rests[path] = time.monotonic() + _REST
            _log("tries again", file=path.name, code=error.code, why=str(error.args[0]))
        except CobasisError as error:
            _log("failed", file=path.name, code=error.code, why=str(error.args[0]))
        except Exception as error:  # noqa: BLE001 -- nobody's file may end everybody's service
            _log("failed", file=path.name, code="", why=type(error).__name__)

    def _look(self, served: Served) -> None:
        path, stands = served.path, _stands(served)
        if self._seen.get(path) == stands:
            return
        first, self._seen[path] = path not in self._seen, stands
        session = session_of(path, self.identity)
        self._receive(session)
        if self.runs and session.sealed:
            self._end(session, first)
        prune(inbox_of(path), secrets=bool(session.history.ended))

    def _receive(self, session: AnalystSession) -> None:
        came = list(waiting(inbox_of(session.path)))
        if not came and not session.sealed:
            receive(session, [])  # perhaps signatures lie beside the agreement
        for sent in came:
            path = sent.place()
            try:
                taken = receive(session, [path])
                verdict = next(each for each in taken if each.file == path.name)
            except (DiskError, AnotherRunError, TranscriptError):
                raise  # of the work folder, and so of every file
            except RetentionError as error:
                verdict = FileVerdict.refused(path, error)
            except Exception as error:  # noqa: BLE001 -- an enemy's file, which no reader has foreseen
                reason = f"it cannot be read ({type(error).__name__})"
                verdict = FileVerdict(file=path.name, verdict="refused", reason=reason)
            if verdict.code in {UnsignedError.code, RevokedError.code}:  # that one waits its turn
                continue
            told = {"verdict": verdict.verdict, "code": verdict.code}
            sent.judge(**told, reason=verdict.reason)
            _log("looked at", round=session.path.name, party=sent.party, what=sent.what, **told)

    def _end(self, session: AnalystSession, first: bool) -> None:  # noqa: FBT001
        name = session.path.name
        try:
            plan = planned(session)
        except WaitingError:
            if first:
                session.tell()
            return
        except StepError:  # which nobody hears of who types nothing here
            with session.at_work(), halting(session):
                planned(session)
            return
        if plan.new:
            _log("waits for a person", round=name, came_later=plan.new)
        elif first or not plan.ended:  # at first, also what a killed run has not told
            wrote = [path.name for path in run(session, scores=True).written.values()]
            _log("ended", round=name, exchange=plan.exchange.number, wrote=wrote)

    def _state(self, identity: Identity) -> None:
        """Sign for the server's certificate, where nothing does that holds for long."""
        certificate, now = certificate_at(self.certificate), datetime.now(UTC)
        name, pin = identity.public.name, pin_of(certificate)
        key = identity.public.signing_key[:8]
        path = self.folder / STATEMENTS / f"{name}.{key}.{pin[:16]}{STATEMENT}"
        # one for each key: the web half may show the one before until it begins again
        for each in path.parent.glob(f"{name}.*{STATEMENT}"):
            with suppress(AgreementError):
                until = moment_of(line_in(each, Statement).until)
                if until < now:
                    remove_tree(each)
                elif each == path and until > now + _RENEW:
                    return
        made = Statement.made(certificate, analyst=name, sign=identity.sign)
        write_whole(path, made.text().encode(), mode=0o644)
        _log("signed for the certificate", pin=made.pin, until=made.until)


def _stands(served: Served) -> object:
    """Return what changes where there is something to do in a round."""
    path, closes, stamps = served.path, served.agreement.closes, []
    beside = [path, sealed_path(path), *sorted(path.parent.glob("*.sig"))]
    for each in (*beside, work_folder(path).transcript):
        with suppress(DiskError):
            stamps.append(stamp_of(each))
    closed = closes is not None and closes <= datetime.now(UTC)
    return closed, stamps, sorted(map(str, inbox_of(path).glob("*/*")))


def _log(event: str, **told: object) -> None:
    LOG.info(json.dumps({"event": event, **told}))
