"""``cobasis run`` and ``remove``: what writes one sealed file for each party."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from cobasis.analyst_side.membership import remove as take_out
from cobasis.analyst_side.plan import Plan, planned
from cobasis.analyst_side.returns import Concluded
from cobasis.analyst_side.run import RunResult
from cobasis.analyst_side.run import run as end
from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.agreement_file import stem_of
from cobasis.cli import results
from cobasis.cli.options import (
    AgreementFile,
    Owner,
    Yes,
    agreed,
    alone,
    consent,
    grouped,
    progress,
    the_one,
)
from cobasis.cli.words import listed, picked, row, wrapped
from cobasis.errors import WaitingError
from cobasis.models import ModelName
from cobasis.models.worth import Figure
from cobasis.protocol.sums import SumsResult

Outbox = Annotated[Path | None, Option("-o", "--out", help="Folder to write to; else outbox/.")]
Cluster = Annotated[str | None, Option(help="Address of a Dask scheduler to train on.")]


@grouped
def run(
    owner: Owner,
    agreement: AgreementFile = None,
    without: Annotated[list[str] | None, Option(help="Go on without a party; repeat.")] = None,
    again: Annotated[list[str] | None, Option("--with", help="Take a party in again.")] = None,
    model: Annotated[ModelName | None, Option(help="Another family that is agreed.")] = None,
    cluster: Cluster = None,
    scores: Annotated[bool, Option(help="Cross-validate every agreed family.")] = True,
    out: Outbox = None,
    yes: Yes = False,
) -> None:
    """End the exchange that is open, and seal one file to each party: a span, or a return.

    Typed again it takes in parties that came late, and writes files that were lost. Nobody who
    may still send is left out unless you say so with --without.

    Example: cobasis run icu.toml
    """
    session = owner.analyst(alone(agreement), outbox=out)
    session.require_kept()
    told: dict[str, Any] = {"without": without or [], "again": again or []}
    new: tuple[str, ...] = ()
    try:
        plan = planned(session, **told)
    except WaitingError:
        pass  # raised again, once the news say how the round stands
    else:
        owner.tell(_first(session, plan))
        new = plan.new
    if new:
        question = f"Take in {', '.join(new)}, and send everybody new returns?"
        consent(question, yes=yes, what="the new run")
    with progress() as report:
        told |= {"confirmed": new, "model": model, "cluster": cluster, "scores": scores}
        found = end(session, **told, report=report)
    _say(owner, session, found)


def _first(session: AnalystSession, plan: Plan) -> Iterator[str]:
    """Yield which exchange is ended, and with whom."""
    exchange = plan.exchange
    what = f"exchange {exchange.number} of {len(session.exchanges)}"
    if plan.attempt:
        yield from wrapped(f"Begins attempt {plan.attempt} of {what}")
    elif not plan.ended:
        yield from wrapped(f"Ends {what}: {exchange.message} -> {exchange.reply}")
    else:
        more = "takes in who came since" if plan.new else "nobody is new"
        yield from wrapped(f"{what.capitalize()} ended on {plan.ended}; {more}")
    rows = {"with": plan.members, "new": plan.new, "without": plan.without}
    if not plan.ended or plan.new:
        rows["missing"] = plan.missing
    for title, names in rows.items():
        yield from row(title, ", ".join(names))
    if waiting := [name for name in plan.without if name in session.history.taken()]:
        options = " ".join(f"--with {name}" for name in waiting)
        yield from wrapped(f"The upload of {listed(waiting)} is in. To take it: {options}")


def _scores(scores: Mapping[ModelName, Mapping[str, Figure | None]]) -> Iterator[str]:
    """Yield the table of families."""
    if scores:
        yield "Right answers (R2 of numbers), cross-validated, with intervals of 95 %:"
        yield f"  {'':16}{'these parties':26}a new party"
    for family, found in scores.items():
        cells = [
            f"{each[0]:.3f} ({each[1]:.3f} to {each[2]:.3f})" if each else "not measured"
            for each in found.values()
        ]
        yield f"  {family:16}{cells[0]:26}{cells[1]}"


def _told(concluded: Concluded, *, card: Path) -> dict[str, Any]:
    """Return what programs get of a run's end."""
    outcome, certificate, sums = concluded.outcome, concluded.certificate, concluded.sums
    told = picked(outcome, "model_sha256", "n_rows", "target_carries")
    told |= {"model": outcome.family, "trained_on": [*outcome.uploads], "card": card}
    told |= {"returns": concluded.files, "scores": concluded.scores}
    if certificate is not None:
        told |= {"chance": certificate.chance, "figures": certificate.parties}
    if sums is not None:
        told["rows_per_feature"] = sums.rows_per_feature or None
    return told


def _lines(concluded: Concluded, *, card: Path, table: Path) -> Iterator[str]:
    """Yield what people read of a run's end; write a baseline table."""
    outcome = concluded.outcome
    if concluded.certificate is not None:
        yield from concluded.certificate.summary().splitlines()
    if concluded.sums is not None:
        yield from _sums(concluded.sums)
    if concluded.worth is not None:
        yield from wrapped(results.worth_in_words(concluded.worth.told()))
        yield from results.importance_in_words(concluded.card)
    if concluded.table is not None:
        yield from results.table_in_words(concluded.table, to=table)
    if concluded.coefficients is not None:
        yield from results.coefficients_in_words(concluded.coefficients, to=table)
    if outcome.family is not None:
        rows = f"{outcome.n_rows:,} rows" if outcome.n_rows else "rows"
        who = f"{rows} of {listed(outcome.uploads)}"
        yield from wrapped(f"Model: {outcome.family}, trained on {who}.")
        yield "SHA-256 of the model, the same for all:"
        yield f"  {outcome.model_sha256}"
    yield from _scores(concluded.scores)
    if outcome.target_carries:
        yield from wrapped(f"The target descends from {listed(outcome.target_carries)}.")
    thing = "model" if concluded.table is None else "table"
    yield f"Who and what made the {thing}: {card}"


def _say(owner: Owner, session: AnalystSession, found: RunResult) -> None:
    """Print what was certified, trained and written."""
    plan, concluded = found.plan, found.concluded
    told = {**_NOTHING, **picked(plan, "missing", "without", "waits")}
    told |= {"exchange": plan.exchange.number, "contributors": plan.members}
    lines: list[str] = []
    if plan.attempt:
        who = listed(plan.missing)
        what = f"Attempt {plan.attempt} begins, of {who}: each accepts the news and sends again."
        lines += wrapped(f"{what} Sums that came before are deleted; they go with other masks.")
    elif concluded is None and (away := (*plan.missing, *plan.without)):
        lines += wrapped(f"The span is made without {listed(away)}, for good; none is added later.")
    if concluded is not None:
        card = _draw_card(session, concluded)
        table = card.with_name(card.name.replace(".card.html", ".table"))
        tabled = concluded.table or concluded.coefficients
        told |= {**_told(concluded, card=card), "table": tabled and table}
        lines += _lines(concluded, card=card, table=table)
    lines += ["", *(f"Wrote {path}" for path in found.written.values())]
    send = f"Send each party its own file, and {session.news.name} to everybody."
    if plan.attempt:
        lines += [f"Next: send {session.news.name} to everybody"]
    else:
        lines += [send if found.written else "Nothing is new, and no file is lost."]
    if plan.waits:
        lines += wrapped(f"Next: {plan.waits}")
    owner.say(lines, command="run", round=session.agreement.round_id, written=found.written, **told)


_NOTHING: dict[str, Any] = {
    **dict.fromkeys(("chance", "model", "model_sha256", "n_rows", "rows_per_feature")),
    **dict.fromkeys(("card", "table")),
    **dict.fromkeys(("trained_on", "target_carries"), ()),
    **{word: {} for word in ("figures", "returns", "scores")},
}
"""What programs get of a run that concluded nothing."""


def _sums(sums: SumsResult) -> Iterator[str]:
    """Yield what the total is."""
    if not sums.total.n_rows:
        yield "The total has noise, under which no rows are counted."
        return
    of = f"map {sums.chosen + 1} of {len(sums.found)}" if sums.found else "all steps"
    total = f"{sums.total.n_rows:,} rows, {sums.rows_per_feature:.3g} for each of the"
    yield from wrapped(
        f"The total: {total} {sums.n_features:,} features of {of}: {sums.light}. {sums.meaning}"
    )


def _draw_card(session: AnalystSession, concluded: Concluded) -> Path:
    """Write the model card beside the agreement; say where."""
    path = session.path.with_name(f"{stem_of(session.path)}.card.html")
    results.write_card(concluded.card, path)
    return path


@grouped
def remove(
    owner: Owner,
    words: Annotated[
        list[Path], Argument(metavar="[AGREEMENT] PARTY", help="Who leaves, by name.")
    ],
    realign: Annotated[bool, Option("--realign", help="Also make a new target.")] = False,
    cluster: Cluster = None,
    out: Outbox = None,
) -> None:
    """Delete what a party sent, train without it, and certify what is and is not gone.

    Example: cobasis remove icu.toml south
    """
    path, rest = agreed(words)
    party = str(the_one(rest, what="the name of one party"))
    session = owner.analyst(path, outbox=out)
    with progress() as report:
        done = take_out(session, party, realign=realign, cluster=cluster, report=report)
    written = {} if done.concluded is None else done.concluded.written
    drawn = [] if done.concluded is None else [_draw_card(session, done.concluded)]
    told = picked(done.removal, "party", "realigned", "gone", "not_gone")
    told |= picked(done.removal, "model_sha256", "trained_on", "target_carries")
    owner.say(
        [
            *done.removal.text().splitlines(),
            "",
            *(f"Wrote {path}" for path in (*written.values(), *drawn, *done.files)),
            f"Send each party its own file; certificate and {session.news.name} to all.",
        ],
        command="remove",
        round=done.removal.round_id,
        certificate=done.files,
        written=written,
        **told,
    )
