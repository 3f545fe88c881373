"""What ``run`` will do, read from the transcript before anything is done."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cobasis.analyst_side.consensus import MIN_PARTIES, lost_spans
from cobasis.analyst_side.history import History
from cobasis.analyst_side.session import AnalystSession
from cobasis.errors import StepError, WaitingError
from cobasis.protocol.agreement import Exchange
from cobasis.protocol.refusals import require_known


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Which exchange a run ends, and with whom."""

    exchange: Exchange
    ended: str = ""  # empty where this run ends it
    members: tuple[str, ...] = ()
    new: tuple[str, ...] = ()  # members that had no part in the last run
    missing: tuple[str, ...] = ()  # who has sent nothing
    without: tuple[str, ...] = ()
    waits: str = ""  # where only lost files are written: what the next exchange waits for

    def refuse_unasked(self, confirmed: Collection[str]) -> None:
        """Raise StepError where somebody would be taken in of whom nobody was asked."""
        if unasked := sorted(set(self.new) - set(confirmed)):
            raise StepError(
                f"{', '.join(unasked)} came after the run of {self.ended}, and nobody said that "
                "they are to be taken in. Confirm it."
            )

    def told(self) -> dict[str, list[str]]:
        """Return what the transcript says of it."""
        told = {"without": list(self.without), "missing": list(self.missing)}
        return {**told, "parties": list(self.new)} if self.new else told


def planned(
    session: AnalystSession,
    history: History,
    *,
    to: Path,
    without: Iterable[str] = (),
    again: Iterable[str] = (),
    now: datetime | None = None,
) -> Plan:
    """Say what a run does now; WaitingError where it needs files that have not come."""
    out = _left_out(session, history, without=tuple(without), again=tuple(again))
    exchange = session.open_exchange(history)
    taken = history.taken(exchange.message)
    members = tuple(name for name in sorted(taken) if name not in out)
    away = {*session.agreement.parties} - {*taken, *history.removed, *out}
    plan = Plan(
        exchange=exchange,
        members=members,
        missing=tuple(name for name in session.agreement.parties if name in away),
        without=out,
    )
    if history.outcome is not None:
        return _after_run(plan, history)
    try:
        _require_all(session, plan, now=now or datetime.now(UTC))
    except WaitingError as error:
        before = exchange.number - 1
        if not lost_spans(session, history, to=to) or not before:
            raise
        return Plan(
            exchange=session.exchanges[before - 1],
            ended=history.ended[before - 1],
            members=history.contributors,
            without=out,
            waits=str(error.args[0]),
        )
    return plan


def _left_out(
    session: AnalystSession, history: History, *, without: tuple[str, ...], again: tuple[str, ...]
) -> tuple[str, ...]:
    """Return whom the analyst goes on without, in the agreement's order."""
    for name in (*without, *again):
        require_known(name, session.agreement.parties)
        if name in history.removed:
            raise StepError(
                f"party '{name}' was removed from this round, for good. Leave out its name."
            )
    out = {*history.without, *without} - {*again, *history.removed}
    return tuple(name for name in session.agreement.parties if name in out)


def _after_run(plan: Plan, history: History) -> Plan:
    """Return who is new since the last run; StepError where somebody who took part is left out."""
    outcome = history.outcome
    before = {} if outcome is None else outcome.uploads
    gone = [name for name in before if name not in plan.members]
    if gone:
        removes = " and ".join(f"cobasis remove {name}" for name in gone)
        raise StepError(
            f"{', '.join(gone)} took part in the run of {history.ended[-1]}, and others have "
            f"its returns. To go on without, take the rows out for good: {removes}."
        )
    return Plan(
        **{
            **vars(plan),
            "ended": history.ended[-1],
            "new": tuple(name for name in plan.members if name not in before),
        }
    )


def _require_all(session: AnalystSession, plan: Plan, *, now: datetime) -> None:
    """Raise WaitingError while somebody may still send, or too few have."""
    agreed, closes = session.agreement, session.agreement.closes
    what = f"exchange {plan.exchange.number} of {len(session.exchanges)}"
    least = agreed.minimum_parties
    if plan.exchange.message == "proposal":
        least = max(least, MIN_PARTIES)
    if plan.missing and (closes is None or now < closes):
        until = f"the deadline is {agreed.deadline}" if closes else "no deadline is agreed"
        options = " ".join(f"--without {name}" for name in plan.missing)
        go_on = f", or go on without them: {options}" if len(plan.members) >= least else ""
        raise WaitingError(
            f"{what} waits for the {plan.exchange.message} of {', '.join(plan.missing)}, and "
            f"{until}. Receive what they send{go_on}."
        )
    require_enough(plan, least=least)


def require_enough(plan: Plan, *, least: int) -> None:
    """Raise WaitingError or StepError where fewer take part than have to."""
    if len(plan.members) >= max(1, least):
        return
    found = (
        f"{len(plan.members)} {plan.exchange.message}(s) would be used "
        f"({listed(plan.members)}), and at least {least} are needed: with fewer, each shows more "
        f"of itself. Missing: {listed(plan.missing)}; left out: {listed(plan.without)}."
    )
    if plan.missing:
        raise WaitingError(f"{found} Receive what is missing first.")
    raise StepError(f"{found} Take somebody in again with --with NAME, or agree on a new round.")


def listed(names: Collection[str]) -> str:
    """Return names with commas, or nobody."""
    return ", ".join(names) or "nobody"
