"""What a party sends: directions, where they are agreed on, and its one upload, or its sums.

The order is the promise. The vault knows the basis and the rows before anything is sealed; it
knows the sealed file's digest, and so does the transcript, before the file has its name. Noise
that leaves is charged before it is drawn; whether the upload may leave is asked before that,
about a rehearsal with other noise.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cobasis.bundle.agreement_file import news_at, stem_of
from cobasis.bundle.manifest import MAX_AHEAD
from cobasis.bundle.messages import enclose
from cobasis.bundle.transcript import Fact, now
from cobasis.bundle.uploads import Payload, UploadFile, open_payload
from cobasis.disk.whole import copy_whole, file_digest, move_whole, remove_tree
from cobasis.errors import ApprovalError, DiskError, StepError, WaitingError
from cobasis.linalg.arrays import Hidden
from cobasis.linalg.threads import one_blas_thread
from cobasis.party_side.approval import approvals, newest
from cobasis.party_side.predict import usable
from cobasis.party_side.preview import Ready
from cobasis.party_side.session import MADE, NEWS, SENT, PartySession, refuse_target
from cobasis.protocol.agreement import moment_of, moment_text
from cobasis.protocol.exchanges import Exchange
from cobasis.protocol.messages import MaskedSums, SpanProposal
from cobasis.protocol.party import Party
from cobasis.protocol.projection import Projection
from cobasis.protocol.signatures import sign_span
from cobasis.protocol.sums_party import SumsParty


@dataclass(frozen=True, kw_only=True, repr=False)
class Made(Hidden):
    """A message that nobody has sealed; rows lie in the payload, noisy ones as a rehearsal."""

    ready: Ready
    message: Projection | SpanProposal | MaskedSums
    party: SumsParty | None = None  # who made the sums


Allow = Callable[[Made], Mapping[str, object]]
"""Looks at a file before it is sealed: raises, or returns the manifest's record of its audit."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    path: Path
    digest: str
    n_bytes: int
    exchange: Exchange
    again: bool = False  # made before, and the same to the last byte


def require_secret(session: PartySession) -> None:
    """Raise WaitingError before `sign` has kept the secret, StepError once it was forgotten."""
    session.require_open()
    if session.agreement.sums is not None:
        session.round.mask_key()
    elif not session.round.joined:
        raise WaitingError(
            f"party '{session.name}' has no secret of round '{session.agreement.round_id}' yet. "
            "'cobasis sign' takes it, from the file that came with the agreement."
        )


def require_turn(session: PartySession) -> None:
    """Raise StepError where the upload was made; nothing of a table is needed."""
    require_secret(session)
    exchange = session.upcoming
    if exchange.rows and (made := session.history(exchange.sent_as)):
        raise StepError(
            f"party '{session.name}' made its upload on {made[-1].time}, and a round takes one. "
            "'cobasis send --again' writes it once more; other rows take a new round."
        )
    if exchange.rows:
        return
    beside = session.path.with_name(f"{stem_of(session.path)}.{NEWS}")
    found = (news_at(path, session.agreement) for path in (session.news, beside))
    told = [news for news in found if news is not None]
    if session.agreement.sums and any(news.attempt > session.roster()[1] for news in told):
        raise StepError(
            f"the sums have begun anew, and what '{session.name}' makes now would go with masks of "
            f"the attempt before. Accept the news first: cobasis accept {session.path} {beside}."
        )
    ended = any(news.ended for news in told)
    if ended and exchange.reply == "span" and not session.history(exchange.sent_as):
        raise StepError(
            f"the common span was made without a proposal of party '{session.name}', so one "
            "would be refused, and directions of its rows would leave for nothing. Accept the "
            "span: 'cobasis status' says how; then send an upload."
        )


def send(ready: Ready, to: Path | None = None, *, allow: Allow | None = None) -> Sent:
    """Make the file of the exchange that is next: write down, sign, seal, and then give it a name.

    A crash at any moment leaves the old state or the new one, and the same command goes on. A
    file is made only if `allow`, where it is given, lets it leave; a proposal, or sums, of the
    same rows are the same file, and those of others are refused.
    """
    session, exchange, source = ready.session, ready.exchange, ready.rows.table.source.path
    before = not exchange.rows and session.vault.made_before(session.agreement, ready.choice.asked)
    sent = session.history(exchange.sent_as)
    # One that a fast clock made is taken from nobody: the same words are sealed anew.
    ahead = bool(sent) and moment_of(sent[-1].time) > now() + MAX_AHEAD
    if before and before.upload in session.digests_sent(exchange) and not ahead:
        return finish(session, to) or send_again(session, to)
    with session.alone():
        place = _place(session, exchange, to, table=source)
        if source is not None:
            people = ready.rows.marks if ready.rows.ids is None else ready.rows.ids
            session.round.note_table(source, held=people[ready.rows.held])
        made = _made(ready, looked=allow is not None)
        audit: Any = None if allow is None else allow(made)
        message, number = _begun(made)
        head, span = session.vault.heads()[number - 1], session.round.consensus()
        whose: Any = {"party": session.name, "sign": session.identity.sign}
        lines = () if span is None else (sign_span(span, session.agreement, **whose),)
        said: Any = {"audit": audit, "history": head, "lines": lines}
        enclosed = enclose(message, agreement=session.agreement, sender=session.name, **said)
        sealed = session.kept_file(exchange, end=MADE)
        digest = session.seal(enclosed, sealed, to=[session.analyst])
        # Sealed, and still without a name outside. Its digest goes into the vault, then into the
        # transcript, and then the file gets its name: whatever a kill leaves out there is known in
        # here. Killed before the line, the same command makes the same rows and seals them anew;
        # killed behind it, `finish` gives the file its name.
        session.vault.finish_upload(number, digest)
        told: dict[str, Fact] = {exchange.message: digest, "exchange": exchange.number}
        told |= {"analyst": session.analyst.name, "history": head}
        told |= {"attempt": session.roster()[1]} if session.agreement.sums else {}
        if given := (audit or {}).get("approvals"):
            told["approvals"] = [each["signature"] for each in given]
        session.transcript.append(exchange.sent_as, told)
        return _delivered(session, exchange, place)


def finish(session: PartySession, to: Path | None) -> Sent | None:
    """Give the file its name that a killed command had made; None where there is none."""
    exchange = session.upcoming
    made, sent = session.kept_file(exchange, end=MADE), session.digests_sent(exchange)
    if not (made.exists() and sent and file_digest(made) == sent[-1]):
        return None
    agreement, line = session.agreement, session.history(exchange.sent_as)[-1]
    given = newest(approvals(session.path, session.name), agreement)
    last = [(each.officer(agreement), each) for each in given if each.exchange == exchange.message]
    back = {who for who, each in last if who and each.withdrawn and each.time >= line.time}
    if line.told.get("approvals") and back - {who for who, each in last if not each.withdrawn}:
        raise ApprovalError(
            f"the file that a killed command of party '{session.name}' made has not left, and its "
            "approval was withdrawn since. Nothing has left. Have its audit approved again, and "
            "put the approval beside the agreement."
        )
    with session.alone():
        place = _place(session, exchange, to)
        return _delivered(session, exchange, place, again=True)


def send_again(session: PartySession, to: Path | None) -> Sent:
    """Write the file that was sent last once more, the same to the last byte."""
    for exchange in reversed(session.exchanges):
        kept = session.kept_file(exchange, end=SENT)
        if kept.exists():
            break
    else:
        raise StepError(
            f"party '{session.name}' keeps no file that it sent in round "
            f"'{session.agreement.round_id}': it has sent none, has accepted the return, or has "
            "forgotten the round. Without --again, 'cobasis send' makes the next one."
        )
    with session.alone():
        place = _place(session, exchange, to)
        digest, n_bytes = copy_whole(kept, place), kept.stat().st_size
    return Sent(path=place, digest=digest, n_bytes=n_bytes, exchange=exchange, again=True)


def _place(
    session: PartySession, exchange: Exchange, to: Path | None, *, table: Path | None = None
) -> Path:
    """Return where the file of an exchange goes; without a wish, beside the agreement.

    Raises OptionError or DiskError where a file would be overwritten that the party did not make,
    StepError or RevokedError where the round is closed.
    """
    session.require_open()  # looked at last
    place = to or session.beside(f"{exchange.number}-{exchange.message}")
    refuse_target(place, table=table)
    if place.exists():
        sent = [session.digests_sent(each) for each in session.exchanges]
        if file_digest(place) not in {digest for each in sent for digest in each}:
            raise DiskError(
                f"'{place}' exists, and is no file that party '{session.name}' made in round "
                f"'{session.agreement.round_id}'. Move it away, or name another with -o."
            )
    return place


def _delivered(session: PartySession, exchange: Exchange, to: Path, *, again: bool = False) -> Sent:
    """Give a sealed file its name, and keep it in case it is lost on its way."""
    made = session.kept_file(exchange, end=MADE)
    n_bytes = made.stat().st_size
    # Copied first: renamed first, a kill in between would leave a file that counts as delivered
    # and is nowhere outside.
    digest = copy_whole(made, to)
    # Removed before it: behind it nobody comes here again, and it would stay.
    remove_tree(session.payload)
    move_whole(made, made.with_suffix(SENT))
    return Sent(path=to, digest=digest, n_bytes=n_bytes, exchange=exchange, again=again)


@contextmanager
def projected(ready: Ready) -> Iterator[Made]:
    """Make a file to look at it; it is gone when the block ends, unknown to the vault."""
    with ready.session.alone():
        yield _made(ready)


def _made(ready: Ready, *, looked: bool = True) -> Made:
    session, exchange, sent = ready.session, ready.exchange, ready.rows.sent
    if exchange.masked:
        (keys, attempt), key = session.roster(), session.round.mask_key()
        told: Any = {"agreement": session.agreement, "key": key, "keys": keys, "attempt": attempt}
        adding = SumsParty(session.name, **told)
        first = exchange.number == 1
        model = None if first else usable(session, model="common", step=True).model
        if model is not None and exchange.held:
            sums = adding.score(ready.rows.kept, model)
        else:
            sums = adding.sum_up(sent, model=model, exchange=exchange.number)
        return Made(ready=ready, party=adding, message=sums)
    party = Party(
        session.name,
        agreement=session.agreement,
        secret=session.round.secret(),
        key=ready.choice.key,
        public_rows=ready.public_rows,
    )
    if exchange.rows:
        basis = None if ready.choice.dataset is None else ready.choice.dataset.basis
        consensus = session.round.consensus()
        made = party.project(sent, consensus=consensus, basis=basis)
        # What is looked at has noise of another stream, for whoever looks may still say no, and
        # noise that was drawn could not be taken back.
        if looked or made.noising is None:
            _write(made.rehearsed(), session)
        return Made(ready=ready, message=made)
    session.report("finding directions", 0, 1)
    with one_blas_thread():
        proposal = party.propose(sent)
    session.report("finding directions", 1, 1)
    return Made(ready=ready, message=proposal)


def _begun(made: Made) -> tuple[Payload | SpanProposal | MaskedSums, int]:
    """Begin what may leave in the vault, as which file of its; return it as it leaves."""
    session, message, basis, release = made.ready.session, made.message, None, ""
    if isinstance(message, Projection):
        basis, release = message.basis, message.noising.release if message.noising else ""
    elif isinstance(message, MaskedSums):
        # Before a byte is on the disk: whatever leaves, no other content gets the same masks.
        release = hashlib.sha256(message.words.astype("<u8").tobytes()).hexdigest()
    # Charged before the noise that leaves is drawn. A kill in between has spent a release that
    # nobody saw; made again it is the same numbers, and free. Drawn first, a kill would leave
    # noise on the disk that no account knows of.
    number = session.vault.begin_upload(
        made.ready.choice,
        basis,
        agreement=session.agreement,
        time=moment_text(now()),
        release=release,
    )
    if not isinstance(message, Projection):
        return message, number
    if message.noising is not None:
        _write(message, session)
    return open_payload(session.payload), number


def _write(made: Projection, session: PartySession) -> None:
    agreed, to = session.agreement, session.payload
    file = UploadFile(to, precision=agreed.precision, int8_range=agreed.int8_range)
    made.write(file, report=session.report)
