"""What ``run`` will do, read from the transcript before anything is done."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.transcript import Fact
from cobasis.errors import OptionError, StepError, WaitingError
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.exchanges import Exchange
from cobasis.protocol.news import stopped_by
from cobasis.protocol.refusals import require_known
from cobasis.protocol.sums_terms import least_difference, may_leave_out, terms_of
from cobasis.protocol.vertical import complete


@dataclass(frozen=True, kw_only=True)
class Plan:
    exchange: Exchange
    ended: str = ""  # empty where this run ends it
    members: tuple[str, ...] = ()
    new: tuple[str, ...] = ()  # members that had no part in the last run
    missing: tuple[str, ...] = ()  # who has sent nothing
    without: tuple[str, ...] = ()
    attempt: int = 0  # which of sums begins, since other parties take part; 0 where none does

    @property
    def away(self) -> dict[str, Fact]:
        return {"without": list(self.without), "missing": list(self.missing)}


def planned(
    session: AnalystSession,
    *,
    without: Iterable[str] = (),
    again: Iterable[str] = (),
    now: datetime | None = None,
) -> Plan:
    """Say what a run does now; WaitingError where it needs files that have not come."""
    history, exchange, now = session.history, session.open_exchange(), now or datetime.now(UTC)
    out = _left_out(session, without=tuple(without), again=tuple(again))
    taken = history.taken(exchange.number)
    known = {*taken, *history.removed, *out}
    plan = Plan(
        exchange=exchange,
        members=tuple(complete([x for x in sorted(taken) if x not in out], session.agreement)),
        missing=tuple(name for name in session.agreement.parties if name not in known),
        without=out,
    )
    if session.agreement.sums is not None and {*out} != {*history.without}:
        return _next_attempt(session, plan, now=now)
    if history.outcome is not None and len(history.ended) == len(session.exchanges):
        before, ended = history.outcome.uploads, history.ended[-1]
        if gone := [name for name in before if name not in plan.members]:
            raise StepError(
                f"{', '.join(gone)} took part in the run of {ended}, and others have its returns. "
                f"To go on without, take the rows out for good: cobasis remove {' '.join(gone)}."
            )
        if away := [name for name in again if name in plan.missing]:
            raise StepError(f"nothing of {listed(away)} is here. Receive it, then type this again.")
        new = tuple(name for name in plan.members if name not in before)
        return replace(plan, ended=ended, new=new)
    try:
        _require_all(session, plan, now=now)
    except WaitingError:
        if not lost_replies(session):
            raise
        last = session.exchanges[len(history.ended) - 1]
        members = history.contributors or tuple(sorted(history.taken(last.number)))
        return Plan(exchange=last, ended=history.ended[-1], members=members, without=out)
    return plan


def _next_attempt(session: AnalystSession, plan: Plan, *, now: datetime) -> Plan:
    """Begin sums again with other parties; StepError where two totals would show one of them."""
    agreement, history, closes = session.agreement, session.history, session.agreement.closes
    terms, least, attempt = terms_of(agreement), least_difference(agreement), history.attempt + 1
    stay = tuple(name for name in agreement.parties if name not in plan.without)
    if history.outcome is not None:
        reason = f"everybody's sums were added up on {history.ended[0]}, with other parties"
    elif closes is None or now < closes:
        reason = _deadline(agreement)
    elif len(stay) < plan.exchange.fewest:
        reason = f"{len(stay)} would stay, and {plan.exchange.fewest} parties must"
    elif may_leave_out(agreement, attempt=attempt):
        return replace(plan, members=(), missing=stay, attempt=attempt)
    elif agreement.dp is not None:
        most = agreement.dp.lifetime_epsilon
        reason = f"{attempt} attempts spend more than lifetime_epsilon={most:g}, which is agreed"
    else:
        reason = (
            f"least_rows={terms.least_rows:,} is agreed, and of fewer than {least:,} rows the sums "
            "of a party that comes late would show in the difference of two totals"
        )
    raise StepError(
        f"sums cannot begin again with {listed(stay)}: {reason}. Wait for everybody, or agree on a "
        "new round."
    )


def _deadline(agreement: Agreement) -> str:
    return f"the deadline is {agreement.deadline}" if agreement.closes else "no deadline is agreed"


def lost_replies(session: AnalystSession) -> list[str]:
    """Return the parties whose span, or last return, was made, and stands not in the outbox."""
    history = session.history
    if not history.ended:
        return []
    last = session.exchanges[len(history.ended) - 1]
    made: Iterable[str] = () if history.outcome is None else history.outcome.uploads
    if history.contributors:  # a span is for those, too, who sent no proposal and may still come
        stolen = stopped_by(history.revoked.values(), session.agreement, out=history.removed)
        gone = {*history.removed, *(party for _, party in stolen)}
        made = [name for name in session.enrolled if name not in gone]
    return [name for name in made if not session.reply(name, last).exists()]


def _left_out(
    session: AnalystSession, *, without: tuple[str, ...], again: tuple[str, ...]
) -> tuple[str, ...]:
    history = session.history
    for name in (*without, *again):
        require_known(name, session.agreement.parties)
        if name in history.removed:
            raise StepError(f"party '{name}' was removed from this round. Leave out its name.")
        if name in without and name in again:
            raise OptionError(
                f"--without {name} and --with {name} contradict each other: a party is left out, "
                "or taken in. Say one of the two."
            )
    out = {*history.without, *without} - {*again, *history.removed}
    session.refuse_revoked(out={*out, *history.removed})
    return tuple(name for name in session.agreement.parties if name in out)


def _require_all(session: AnalystSession, plan: Plan, *, now: datetime) -> None:
    agreed, closes, least = session.agreement, session.agreement.closes, plan.exchange.fewest
    if plan.missing and (closes is None or now < closes or agreed.sums is not None):
        options = " ".join(f"--without {name}" for name in plan.missing)
        again = "where the agreement allows it, begin sums again with the others, who send anew"
        go_on = f", or {again if agreed.sums else 'go on without them'}: {options}"
        raise WaitingError(
            f"exchange {plan.exchange.number} of {len(session.exchanges)} waits for the "
            f"{plan.exchange.message} of {', '.join(plan.missing)}, and {_deadline(agreed)}. "
            f"Receive what they send{go_on if len(plan.members) >= least else ''}."
        )
    if len(plan.members) >= least:
        return
    found = (
        f"{len(plan.members)} {plan.exchange.message}(s) would be used ({listed(plan.members)}), "
        f"and at least {least} are needed: with fewer, each shows more of itself. Missing: "
        f"{listed(plan.missing)}; left out: {listed(plan.without)}."
    )
    if plan.missing:
        raise WaitingError(f"{found} Receive what is missing first.")
    raise StepError(f"{found} Take somebody in again with --with NAME, or agree on a new round.")


def listed(names: Collection[str]) -> str:
    return ", ".join(names) or "nobody"
