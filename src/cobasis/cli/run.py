"""``cobasis run`` and ``remove``: what writes one sealed file for each party."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cobasis.cli.options import (
    AgreementFile,
    Owner,
    Yes,
    agreed,
    alone,
    consent,
    owned,
    progress,
    the_one,
    wrapped,
)
from cobasis.errors import WaitingError
from cobasis.models import ModelName

if TYPE_CHECKING:
    from cobasis.analyst_side.plan import Plan
    from cobasis.analyst_side.run import RunResult
    from cobasis.analyst_side.session import AnalystSession

Outbox = Annotated[
    Path | None,
    typer.Option("-o", "--out", help="Folder for what is written; by default outbox/."),
]
Cluster = Annotated[
    str | None,
    typer.Option(help="Train on the Dask cluster whose scheduler answers at this address."),
]


@owned
def run(
    owner: Owner,
    agreement: AgreementFile = None,
    without: Annotated[
        list[str] | None, typer.Option(help="Go on without a party, until --with; repeat.")
    ] = None,
    again: Annotated[
        list[str] | None, typer.Option("--with", help="Take a party in again; repeat.")
    ] = None,
    model: Annotated[
        ModelName | None, typer.Option(help="A family that the agreement allows; else its own.")
    ] = None,
    cluster: Cluster = None,
    out: Outbox = None,
    yes: Yes = False,
) -> None:
    """End the exchange that is open, and seal one file to each party: a span, or a return.

    Typed again it takes in parties that came late, and writes files that were lost. Nobody who
    may still send is left out unless you say so with --without.

    Example: cobasis run icu.toml
    """
    from cobasis.analyst_side.run import run as end

    path = alone(agreement)
    session = owner.analyst(path, outbox=out)
    out_of, back = without or [], again or []
    new = _foretold(owner, session, without=out_of, again=back, yes=yes)
    with progress() as report:
        found = end(
            session,
            without=out_of,
            again=back,
            confirmed=new,
            model=model,
            cluster=cluster,
            report=report,
        )
    _say(owner, session, found)


def _foretold(
    owner: Owner,
    session: "AnalystSession",
    *,
    without: list[str],
    again: list[str],
    yes: bool,
) -> tuple[str, ...]:
    """Say what will be done, and ask about those who are new; return them."""
    from cobasis.analyst_side.plan import planned

    session.require_kept()
    try:
        plan = planned(session, without=without, again=again)
    except WaitingError:
        return ()  # raised again, once the news say how the round stands
    for line in _first(session, plan):
        owner.tell(line)
    if plan.new:
        question = f"Take in {', '.join(plan.new)}, and send everybody new returns?"
        consent(question, yes=yes, what="the new run")
    return plan.new


def _first(session: "AnalystSession", plan: "Plan") -> list[str]:
    """Return which exchange is ended, and with whom."""
    exchange = plan.exchange
    what = f"exchange {exchange.number} of {len(session.exchanges)}"
    if not plan.ended:
        first = f"Ends {what}: {exchange.message} -> {exchange.reply}"
    else:
        more = "takes in who came since" if plan.new else "nobody is new"
        first = f"{what.capitalize()} ended on {plan.ended}; {more}"
    rows = {"with": plan.members, "new": plan.new, "without": plan.without}
    if not plan.ended or plan.new:
        rows["missing"] = plan.missing
    lines = [
        line
        for title, names in rows.items()
        if names
        for line in wrapped(", ".join(names), lead=f"  {title:<9} ")
    ]
    waiting = [name for name in plan.without if name in session.history.taken()]
    if waiting:
        options = " ".join(f"--with {name}" for name in waiting)
        lines += wrapped(f"The upload of {', '.join(waiting)} is in. To take it: {options}")
    return [*wrapped(first), *lines]


def _say(owner: Owner, session: "AnalystSession", found: "RunResult") -> None:
    """Print what was certified, trained and written."""
    from cobasis.cli.analyst_answers import RunAnswer, certified

    plan = found.plan
    written = _names(found.written)
    shared: dict[str, Any] = {
        "command": "run",
        "round": session.agreement.round_id,
        "exchange": plan.exchange.number,
        "written": written,
        "missing": list(plan.missing),
        "without": list(plan.without),
    }
    if found.concluded is None:
        answer = RunAnswer(**shared, contributors=list(plan.members), waits=plan.waits)
        lines: list[str] = []
    else:
        answer, lines = certified(found.concluded, **shared)
    nothing = ["Nothing is new, and no file is lost."] if not written else []
    lines += ["", *(f"Wrote {path}" for path in written.values()), *nothing]
    if written:
        lines += [f"Send each party its own file, and {session.news.name} to everybody."]
    if plan.waits:
        lines += wrapped(f"Next: {plan.waits}")
    owner.say(answer, lines=lines)


def _names(written: Mapping[str, Path]) -> dict[str, str]:
    return {name: str(path) for name, path in written.items()}


@owned
def remove(
    owner: Owner,
    words: Annotated[
        list[Path], typer.Argument(metavar="[AGREEMENT] PARTY", help="Who leaves, by name.")
    ],
    realign: Annotated[
        bool, typer.Option("--realign", help="Also make a new target and new changes of basis.")
    ] = False,
    cluster: Cluster = None,
    out: Outbox = None,
) -> None:
    """Delete what a party sent, train without it, and certify what is and is not gone.

    Example: cobasis remove icu.toml south
    """
    from cobasis.analyst_side.membership import remove as take_out
    from cobasis.cli.analyst_answers import RemoveAnswer

    path, rest = agreed(words)
    party = the_one(rest, what="the name of one party")
    session = owner.analyst(path, outbox=out)
    with progress() as report:
        done = take_out(session, str(party), realign=realign, cluster=cluster, report=report)
    removal, concluded = done.removal, done.concluded
    written = {} if concluded is None else _names(concluded.written)
    answer = RemoveAnswer.of(
        removal,
        command="remove",
        round=session.agreement.round_id,
        certificate=[str(path) for path in done.files],
        written=written,
    )
    owner.say(
        answer,
        lines=[
            *f"{removal.text()}\n".splitlines(),
            *(f"Wrote {path}" for path in (*written.values(), *answer.certificate)),
            f"Send each party its own file; certificate and {session.news.name} to all.",
        ],
    )
