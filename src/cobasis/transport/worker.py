"""The worker: has the analyst's key and no port; takes what lies in inboxes, and ends exchanges."""

import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cobasis.analyst_side.plan import planned
from cobasis.analyst_side.receive import receive
from cobasis.analyst_side.run import run
from cobasis.analyst_side.session import AnalystSession, session_of, work_folder
from cobasis.bundle.agreement_file import line_in, sealed_path, stem_of
from cobasis.disk.lock import Lock
from cobasis.disk.whole import make_folder, stamp_of, write_whole
from cobasis.errors import (
    AgreementError,
    AgreementFileError,
    AnotherRunError,
    CobasisError,
    IdentityError,
    UnsignedError,
    WaitingError,
)
from cobasis.keys.identity import Identity
from cobasis.protocol.agreement import moment_of
from cobasis.transport.certificate import Statement, certificate_at, pin_of
from cobasis.transport.inbox import OUTBOX, STATEMENT, STATEMENTS, Inbox

LOG = logging.getLogger("cobasis.worker")

_RENEW = timedelta(days=60)
"""A statement is signed anew when it holds for no longer than this."""


@dataclass(kw_only=True)
class Worker:
    """The analyst's work in all rounds of a folder that are its own."""

    folder: Path
    identity: Identity
    runs: bool  # ends an exchange once everybody's file is in
    certificate: Path
    _seen: dict[Path, object] = field(default_factory=dict)
    _closes: dict[Path, datetime] = field(default_factory=dict)

    def work(self, *, every: float, goes_on: Callable[[], bool]) -> None:
        """Look into the folder again and again; one worker at a time does."""
        make_folder(self.folder / STATEMENTS)
        with Lock(self.folder / STATEMENTS, what=f"the worker's folder '{self.folder}'"):
            while goes_on():
                self.step()
                time.sleep(every)

    def step(self) -> None:
        """Do whatever can be done now; what fails in one round keeps no other waiting."""
        self._state()
        for path in sorted(self.folder.glob("*.toml")):
            stands = self._stands(path)
            if stem_of(path) != path.stem or self._seen.get(path) == stands:
                continue
            first, self._seen[path] = path not in self._seen, stands
            with suppress(AgreementError, AgreementFileError, IdentityError):  # not one of ours
                self._look(session_of(path, self.identity, outbox=self.folder / OUTBOX), first)

    def _stands(self, path: Path) -> object:
        """Return what is another thing whenever there may be something to do in a round."""
        beside = [path, sealed_path(path), *sorted(path.parent.glob("*.sig"))]
        beside += [work_folder(path).transcript, Inbox(path).folder]
        closed = path in self._closes and self._closes[path] <= datetime.now(UTC)
        return closed, [stamp_of(each) for each in beside if each.exists()]

    def _look(self, session: AnalystSession, first: bool) -> None:  # noqa: FBT001
        if session.agreement.closes is not None:
            self._closes[session.path] = session.agreement.closes
        try:
            self._receive(session)
            if self.runs and session.sealed:
                self._end(session, first)
        except AnotherRunError:
            del self._seen[session.path]  # a command that somebody typed is at work
        except CobasisError as error:
            _log("failed", round=session.path.name, code=error.code, why=str(error.args[0]))

    def _receive(self, session: AnalystSession) -> None:
        """Take in what came, and write what became of each file."""
        inbox = Inbox(session.path)
        came = {path: sent for sent, path in inbox.waiting()}
        if not came and session.sealed:
            return
        for verdict in receive(session, came).files:
            sent = came.get(inbox.folder / verdict.file)
            if sent is None or verdict.code == UnsignedError.code:  # that one waits its turn
                continue
            told = {"verdict": verdict.verdict, "code": verdict.code}
            inbox.judge(sent, **told, reason=verdict.reason)
            _log("looked at", round=session.path.name, party=sent.party, what=sent.what, **told)

    def _end(self, session: AnalystSession, first: bool) -> None:  # noqa: FBT001
        """End the exchange that is open, if all is in; whom to take in later, a person says."""
        name = session.path.name
        try:
            plan = planned(session)
            if plan.new:
                _log("waits for a person", round=name, came_later=plan.new)
            elif first or not plan.ended:  # at first, also what a killed run has not told
                done = run(session, scores=True)
                wrote = [path.name for path in done.written.values()]
                _log("ended", round=name, exchange=plan.exchange.number, wrote=wrote)
        except WaitingError:
            if first:
                session.tell()

    def _state(self) -> None:
        """Sign for the server's certificate, where nothing does that holds for long."""
        path = self.folder / STATEMENTS / f"{self.identity.public.name}{STATEMENT}"
        certificate = certificate_at(self.certificate)
        if path.exists():
            known = line_in(path, Statement)
            soon = datetime.now(UTC) + _RENEW
            if known.pin == pin_of(certificate) and moment_of(known.until) > soon:
                return
        name, sign = self.identity.public.name, self.identity.sign
        made = Statement.made(certificate, analyst=name, sign=sign)
        write_whole(path, made.text().encode(), mode=0o644)
        _log("signed for the certificate", pin=made.pin, until=made.until)


def _log(event: str, **told: object) -> None:
    LOG.info(json.dumps({"event": event, **told}))
