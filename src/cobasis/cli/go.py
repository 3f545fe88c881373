"""``cobasis go``: a party's whole round by one command, over HTTPS."""

import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from inspect import unwrap
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from cobasis.bundle.agreement_file import read_agreement, seal, stem_of
from cobasis.cli import options
from cobasis.cli.accept import accept
from cobasis.cli.audit import audit
from cobasis.cli.options import Given, Owner, ProxyCA, Public, agreed, grouped, progress, the_one
from cobasis.cli.send import Asked, send
from cobasis.cli.sign import sign
from cobasis.cli.status import Standing, standing
from cobasis.cli.words import aside, listed
from cobasis.disk.lock import Lock
from cobasis.disk.whole import file_digest, make_folder, remove_tree
from cobasis.errors import (
    AgreementError,
    ApprovalError,
    AuditUnsignedError,
    CommitmentError,
    IdentityError,
    OptionError,
    RemoteError,
    RequestError,
    StepError,
    UnreachableError,
    WaitingError,
)
from cobasis.keys.identity import Identity, save_identity
from cobasis.party_side.approval import approvals, read_audit
from cobasis.party_side.send import finish, send_again
from cobasis.party_side.session import NEWS, transcript_path
from cobasis.protocol.agreement import Agreement, moment_of
from cobasis.protocol.enrolment import officers_of
from cobasis.protocol.exchanges import Exchange
from cobasis.protocol.signatures import Approval, analyst_of
from cobasis.transport.client import Post, Remote
from cobasis.transport.invites import PREFIX, Code, take_agreement
from cobasis.transport.wire import WAIT_SECONDS


@dataclass(frozen=True, kw_only=True)
class _Inner(Owner):
    """Whoever types `go`, for the commands inside: asked once, and answered in words."""

    known: str = field(repr=False)

    def passphrase(self, *, new: bool = False) -> str:  # noqa: ARG002 -- no key is made
        return self.known

    def say(self, lines: Iterable[str], **_: object) -> None:
        """Tell what a command inside would print, but not what to type next."""
        self.tell(takewhile(lambda line: not line.startswith("Next"), lines))


@grouped
def go(
    owner: Owner,
    asked: Asked,
    words: Annotated[
        list[Path] | None,
        Argument(metavar="[AGREEMENT|CODE] DATA", help="The party's table, CSV or Parquet."),
    ] = None,
    wait: Annotated[
        int | None,
        Option(help="Seconds to wait for others; by default without end on a terminal, else 0."),
    ] = None,
    tls_ca: ProxyCA = None,
    public_rows: Public = None,
) -> None:
    """Take part in a round over HTTPS, from signing to the model, as far as it goes now.

    It signs, sends and accepts as the commands of these names do, with their questions, and waits
    for others, and for the officer who approves a file. Ended at any moment, the same command
    goes on; with nobody to ask it stops where others' files are missing, with exit code 4. An
    author's CODE brings the agreement, and makes a key.

    Example: cobasis go icu.toml data.csv
    """
    [first, *rest] = words or [Path()]
    code = Code.of_words(str(first)) if str(first).startswith(PREFIX) else None
    if code is None:
        path, rest = agreed(words)
        _served(owner, path)  # what cannot be is refused before a passphrase is asked
    data = the_one(rest, what="a table, CSV or Parquet")
    new = code is not None and not owner.key(code.party).exists()
    inner = _Inner(**{**vars(owner), "known": owner.passphrase(new=new)})
    seconds: float = (inf if options.on_terminal() else 0) if wait is None else wait
    if code is not None:
        inner = replace(inner, name=code.party)
        path = _invited(inner, code, seconds=seconds, ca=tls_ca)
    agreement, name = _served(inner, path)
    inner = replace(inner, name=name)
    identity = inner.enrolled(inner.who(agreement))
    folder = transcript_path(agreement, name, home=inner.folder()).parent
    make_folder(folder)
    with (  # keeps a second go of this party out, as one by cron beside one by hand
        Lock(folder, what=f"the round's transcript of '{name}'"),
        Remote(agreement, name=name, sign=identity.sign, ca=tls_ca) as remote,
    ):
        told: Any = {"path": path, "data": data, "public_rows": public_rows}
        trip = Trip(owner=inner, asked=asked, remote=remote, seconds=seconds, **told)
        if code is not None:
            trip.meet(analyst_of(agreement).name)
        while trip.step():
            pass
    card = trip.beside(f"{name}.card.html")
    lines = _in_words(standing(inner, path), card=card)
    owner.say(lines, command="go", round=agreement.round_id, party=name, card=card)


def _in_words(found: Standing, *, card: Path) -> Iterator[str]:
    yield f"Note: {found.outdated}." if found.outdated else "Everything has come back."
    yield f"Who and what made it: {card}"
    if found.step.command and not found.step.when:
        yield f"Next: {found.step.command}"


def _invited(owner: _Inner, code: Code, *, seconds: float, ca: Path | None) -> Path:
    """Answer an invitation with a key, made where there is none; return the agreement's file."""
    key, path, until = owner.key(code.party), Path(f"{code.stem}.toml"), time.monotonic() + seconds
    if path.exists() and key.exists():
        return path
    if code.until and datetime.now(UTC) >= moment_of(code.until):
        raise AgreementError(f"this code was good until {code.until}. {code.ask}")
    if not key.exists():
        save_identity(Identity.new(code.party), key, passphrase=owner.known)
        owner.tell([f"Made {key}: keep a copy of it, and of its passphrase, apart."])
    public = owner.identity(code.party).public
    with Post(code, ca=ca) as post:
        post.bring("key", public.text().encode())
        owner.tell(["Your key is at the server. Its fingerprint:", f"  {public.fingerprint}"])
        while (text := post.fetch("agreement", seconds=_left(until))) is None:
            if time.monotonic() >= until:
                raise WaitingError(
                    "the agreement is not there yet: its author finishes it when everybody's key "
                    "has come. Nothing is lost: the same command goes on."
                )
    take_agreement(code, text, path=path)
    return path


def _left(until: float) -> float:
    return max(0, min(WAIT_SECONDS, until - time.monotonic()))


def _served(owner: Owner, path: Path) -> tuple[Agreement, str]:
    """Return an agreement that names a server, and which of its parties types this."""
    agreement = read_agreement(path).agreement
    if not agreement.server:
        raise OptionError(
            f"'{path}' names no server, so files travel by hand: 'cobasis status {path}' says what "
            "to type. An agreement for this command is made with --server https://lab.example."
        )
    who = owner.who(agreement)
    if who.role == "analyst":
        raise IdentityError(
            f"'{who.name}' is the analyst of this round, and go is a party's command. The "
            "analyst's is serve."
        )
    return agreement, who.name


@dataclass(kw_only=True)
class Trip:
    """The way through a round: again and again what `status` would say to type next."""

    owner: _Inner
    asked: Asked
    path: Path
    data: Path
    remote: Remote
    seconds: float
    public_rows: Path | None
    _told: str = ""

    def meet(self, analyst: str) -> None:
        """Wait until the server has the round: an invitation brings the agreement before."""

        def known(left: float) -> bool:
            try:
                self.remote.fetch("news", self.beside("news"))
            except RequestError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
                time.sleep(min(1, left))
                return False
            return True

        self._wait(known, what=f"'{analyst}' to put this very agreement into the served folder")

    def step(self) -> bool:
        """Do what is next; whether there is more."""
        found = standing(self.owner, self.path)
        if found.revoked:
            found.news.refuse_revoked(found.agreement, asking=found.name)
        if not (what := found.step.what):
            raise StepError(
                f"nothing is left to do for '{found.name}' in this round, which was forgotten here "
                f"or goes on without it. 'cobasis status {self.path}' says how it stands."
            )
        if what == "sign":
            self._join(found)
        elif what == "wait":
            self._signed(found)
        elif self._came(found) and standing(self.owner, self.path).step != found.step:
            return True  # as where sums begin again; what others send must not hold this one up
        elif what == "send":
            self._sent(found)
        elif what == "accept":
            self._answered(found)
        else:  # all is here; unless somebody came late, or left
            if (word := self.beside(f"{found.name}.word")).exists():
                self.remote.upload(word, "word")
            return self._came(found, found.exchanges[-1])
        return True

    def _join(self, found: Standing) -> None:
        """Sign, with the consortium secret that its maker left at the server, or beside."""
        own = self.path.with_name(f"{found.name}.secret")
        if found.agreement.sums is not None or found.has("joined") or own.exists():
            self._type(sign, agreement=self.path, yes=self.asked.yes)
            return
        makers = [name for name in found.agreement.parties if name != found.name]
        what = "the secret that its maker has to bring"
        self._wait(lambda left: self._secret(own, makers, seconds=left), what=what)

    def _secret(self, own: Path, makers: list[str], *, seconds: float) -> bool:
        """Sign with the first secret that is the agreement's; anybody may have left another."""
        came = own.with_name(f"{own.name}.came")
        # one question for all; each maker is asked for only where somebody left a false one
        for maker in ("", *makers):
            what, share = (f"secret.{maker}", len(makers)) if maker else ("secret", 1)
            if not self.remote.fetch(what, came, seconds=seconds / share):
                if maker:
                    continue
                return False
            try:
                self._type(sign, agreement=self.path, secret=came, yes=self.asked.yes)
            except (RemoteError, CommitmentError) as error:
                if maker:
                    aside(f"What '{maker}' left as the secret is not taken: {error}")
            else:
                return True
            finally:
                remove_tree(came)
        return False

    def _signed(self, found: Standing) -> None:
        """Bring the signature, and secrets that lie here for others; wait for everybody's."""
        for name in found.agreement.parties:
            secret = self.path.with_name(f"{name}.secret")
            if found.agreement.sums is None and name != found.name and secret.exists():
                self.remote.upload(secret, f"secret.{name}")
        own = self.path.with_name(f"{found.name}.sig")  # elsewhere, in a folder that is new
        brought = (own, "signature") if own.exists() else None
        self._wait(self._sealed, what="everybody's signature", brought=brought)

    def _sealed(self, left: float) -> bool:
        """Seal the agreement here with the signatures that came; the text with them is not kept."""
        came = self.beside("came")
        try:
            if there := self.remote.fetch("agreement", came, seconds=left):
                seal(self.path, read_agreement(came).signatures)
            return there
        finally:
            remove_tree(came)

    def _sent(self, found: Standing) -> None:
        """Make the next file; or keep its audit for an officer, and wait for the approval."""
        table = Given(words=[self.path, self.data])
        told: Any = {"given": table, "public_rows": self.public_rows}
        given = approvals(self.path, found.name)
        try:
            self._type(send, asked=self.asked, **told)
        except (ApprovalError, AuditUnsignedError) as error:
            if not officers_of(found.agreement, found.name):
                raise
            aside(str(error))
            page = self.beside(f"{found.name}.audit.html")
            kept = page.with_suffix(".json")
            # one that nobody has approved yet stays: perhaps an officer is reading it
            known = {each.report for each in given}
            if not kept.exists() or read_audit(kept, found.agreement).seal in known:
                asked = {"mapped": self.asked, "sensitive": self.asked.sensitive}
                self._type(audit, out=page, **asked, **told)
            self._approved(found, given)

    def _approved(self, found: Standing, given: Sequence[Approval]) -> None:
        """Wait until an officer says more of the audit that lies here than was given."""

        def came(left: float) -> bool:
            time.sleep(min(1, left))
            return approvals(self.path, found.name) != given

        officers = listed(officers_of(found.agreement, found.name))
        command = f"cobasis approve {self.path} {self.beside(f'{found.name}.audit.json')}"
        self._wait(came, what=f"the approval of {officers}: {command}")

    def _answered(self, found: Standing) -> None:
        """Bring the file that was made last, and wait for its answer, or other news."""
        made = [each for each in found.exchanges if found.sent(each)]
        exchange = made[-1] if made else found.exchanges[0]  # whose span was made without it
        word = f"{exchange.number}-{exchange.message}"
        file = self.beside(f"{found.name}.{word}")
        if made and not file.exists():
            session = self.owner.party(self.path)
            given = approvals(self.path, found.name)
            try:
                _ = finish(session, file) or send_again(session, file)
            except ApprovalError as error:  # withdrawn before a file that was made had its name
                aside(str(error))
                self._approved(found, given)
                return
        arrived = partial(self._came, found, exchange)
        self._wait(arrived, brought=(file, word) if made else None)

    def _came(self, found: Standing, exchange: Exchange | None = None, seconds: float = 0) -> bool:
        """Take an exchange's answer, and the news that go with it; whether anything is new."""
        news = transcript_path(found.agreement, found.name, home=self.owner.folder())
        kept, known = news.with_name(NEWS), dict[Path, Container[str]]()
        if exchange is not None:
            word = f"{exchange.number}-{exchange.reply}"
            reply = self.beside(f"{found.name}.{word}")
            self.remote.fetch(word, reply, seconds=seconds)
            known[reply] = found.taken(exchange)
        self.remote.fetch("news", self.beside("news"))
        known[self.beside("news")] = {file_digest(kept)} if kept.exists() else ()
        # fetched is not taken: a command may have died in between
        came = [x for x, taken in known.items() if x.exists() and file_digest(x) not in taken]
        if came:
            self._type(accept, words=[self.path, *came])
        return bool(came)

    def _wait(
        self,
        arrived: Callable[[float], bool],
        *,
        what: str = "",
        brought: tuple[Path, str] | None = None,
    ) -> None:
        """Bring a file, then wait for something; WaitingError once there is no more time."""
        until = time.monotonic() + self.seconds
        if brought is not None:
            with progress() as report:
                self.remote.upload(*brought, report=report)
        while not self._arrived(arrived, until=until):
            found = standing(self.owner, self.path)
            taken = {each.receipt.file for each in found.news.receipts}
            why = self.remote.refusal(*brought) if brought else ""
            if brought and why and file_digest(brought[0]) not in taken:  # as one that came by hand
                raise RequestError(
                    f"the analyst did not take '{brought[0].name}': {why} It takes no other file "
                    "in its place without a change. Ask the analyst what to do."
                )
            if found.halted and not what:
                raise RequestError(
                    f"{found.halted}. Ask what to do; once it has ended, the same command goes on."
                )
            others = listed(name for name in found.waits_for if name != found.name)
            if found.name in found.out:
                others = f"{found.analyst} to type: cobasis run --with {found.name}"
            told = f"waits for {what or others}"
            if time.monotonic() >= until:
                raise WaitingError(
                    f"round '{found.agreement.round_id}' {told}. Nothing is lost: the same command "
                    "goes on; --wait gives the seconds that it waits."
                )
            if told != self._told:
                aside(f"The round {told}. Ctrl-C ends; the same command goes on.")
                self._told = told

    def _arrived(self, arrived: Callable[[float], bool], *, until: float) -> bool:
        """Ask once; a line that is gone meanwhile is waited for, too, while there is time."""
        try:
            return arrived(_left(until))
        except UnreachableError:
            if time.monotonic() >= until:
                raise
            return False

    def _type(self, command: Callable[..., None], **told: object) -> None:
        unwrap(command)(owner=self.owner, **told)

    def beside(self, word: str) -> Path:
        return self.path.with_name(f"{stem_of(self.path)}.{word}")
