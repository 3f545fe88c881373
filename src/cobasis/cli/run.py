"""``cobasis run`` and ``remove``: one sealed file for each party, and what came of a round."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from cobasis.analyst_side.membership import remove as take_out
from cobasis.analyst_side.plan import Plan, planned
from cobasis.analyst_side.returns import Conclusion
from cobasis.analyst_side.run import RunResult
from cobasis.analyst_side.run import run as end
from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.agreement_file import stem_of
from cobasis.cli.options import AgreementFile, Owner, Yes, agreed, alone, consent, grouped, progress
from cobasis.cli.status import standing
from cobasis.cli.words import listed, picked, wrapped
from cobasis.disk.whole import write_whole
from cobasis.errors import OptionError, WaitingError
from cobasis.models import ModelName
from cobasis.party_side.accept import Found
from cobasis.party_side.predict import usable
from cobasis.protocol.baseline import BaselineTable
from cobasis.protocol.card import ModelCard
from cobasis.protocol.terms import other_groups
from cobasis.report.estimates import write_coefficients, write_effects
from cobasis.report.pages import as_csv, render_card, write_files
from cobasis.report.table import rows_of, small_cells, write_table
from cobasis.statistics.effect_table import EffectTable


@grouped
def run(
    owner: Owner,
    agreement: AgreementFile = None,
    without: Annotated[list[str] | None, Option(help="Go on without a party; repeat.")] = None,
    again: Annotated[list[str] | None, Option("--with", help="Take a party in again.")] = None,
    model: Annotated[ModelName | None, Option(help="Another family that is agreed.")] = None,
    cluster: Annotated[str | None, Option(help="Address of a Dask scheduler to train on.")] = None,
    scores: Annotated[bool, Option(help="Cross-validate every agreed family.")] = True,
    trained: Annotated[Path | None, Option(help="The agreement of all groups' sums.")] = None,
    yes: Yes = False,
) -> None:
    """End the exchange that is open, and seal one file to each party: a span, or a return.

    Typed again it takes in parties that came late, and writes files that were lost. Nobody who
    may still send is left out unless you say so with --without.

    Of a group with an analyst of its own it writes a reference for the other groups' analysts, and
    with theirs beside the agreement the table that all train on; with --trained the returns.

    Example: cobasis run icu.toml
    """
    session = owner.analyst(alone(agreement))
    session.require_kept()
    if trained and not session.agreement.groups:
        raise OptionError("this round is of no groups, and trains itself. Leave out --trained.")
    told: dict[str, Any] = {"without": without or [], "again": again or []}
    new: tuple[str, ...] = ()
    with suppress(WaitingError):  # raised again, once the news say how the round stands
        plan = planned(session, **told)
        owner.tell(_first(session, plan))
        new = plan.new
    if new:
        question = f"Take in {', '.join(new)}, and send everybody new returns?"
        consent(question, yes=yes, what="the new run")
    with progress() as session.report:
        told |= {"confirmed": new, "model": model, "cluster": cluster, "scores": scores}
        if trained is not None:
            party = owner.party(trained)
            told["trained"] = party.agreement, usable(party, model="common").model
        found = end(session, **told)
    _say(owner, session, found)


def _first(session: AnalystSession, plan: Plan) -> Iterator[str]:
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
    rows |= {"missing": plan.missing} if plan.new or not plan.ended else {}
    for title, names in rows.items():
        yield from wrapped(", ".join(names), lead=f"  {title:<9} ") if names else ()


def _told(concluded: Conclusion, *, card: Path) -> dict[str, Any]:
    outcome, certificate, sums = concluded.outcome, concluded.certificate, concluded.sums
    told = picked(outcome, "n_rows", "target_carries")
    told |= {"model": outcome.model or None, "model_sha256": outcome.model_sha256 or None}
    told |= {"trained_on": [*outcome.uploads], "card": card}
    told |= {"returns": concluded.files, "scores": concluded.scores}
    told |= {"worth": concluded.card.scores, "importance": concluded.card.importance}
    if certificate is not None:
        told |= {"chance": certificate.chance, "figures": certificate.parties}
    if sums is not None:
        told["rows_per_feature"] = sums.rows_per_feature or None
    return told


def _lines(concluded: Conclusion, *, card: Path, table: Path) -> Iterator[str]:
    outcome = concluded.outcome
    if concluded.certificate is not None:
        yield from concluded.certificate.summary().splitlines()
    if (sums := concluded.sums) is not None:
        noisy = ["The total has noise, under which no rows are counted."]
        yield from wrapped(f"The total: {sums.aggregate}") if sums.total.n_rows else noisy
    yield from found_in_words(concluded.table, to=table)
    if outcome.model:
        rows = f"{outcome.n_rows:,} rows" if outcome.n_rows else "rows"
        who = f"{rows} of {listed(outcome.uploads)}"
        yield from wrapped(f"Model: {outcome.model}, trained on {who}.")
    if concluded.scores:
        yield "Right answers (R2 of numbers), cross-validated, with intervals of 95 %:"
        yield f"  {'':16}{'these parties':26}a new party"
    for family, found in concluded.scores.items():
        here, new = ("{:.3f} ({:.3f} to {:.3f})".format(*x) if x else "-" for x in found.values())
        yield f"  {family:16}{here:26}{new}"
    yield from card_in_words(concluded.card, page=card)


def _say(owner: Owner, session: AnalystSession, found: RunResult) -> None:
    plan, concluded = found.plan, found.concluded
    told = {**_NOTHING, **picked(plan, "missing", "without")}
    told |= {"exchange": plan.exchange.number, "contributors": plan.members}
    lines: list[str] = []
    if plan.attempt:
        who = listed(plan.missing)
        what = f"Attempt {plan.attempt} begins, of {who}: each accepts the news and sends again."
        lines += wrapped(f"{what} Sums that came before are deleted; they go with other masks.")
        lines += ["", f"Next: send {session.news.name} to everybody"]
    elif plan.exchange.reply == "span" and (away := (*plan.missing, *plan.without)):
        lines += wrapped(f"The span is made without {listed(away)}, for good; none is added later.")
    if concluded is not None:
        card = write_card(concluded.card, session.path)
        table = card.with_name(card.name.replace(".card.html", ".table"))
        told |= {**_told(concluded, card=card), "table": concluded.table and table}
        lines += _lines(concluded, card=card, table=table)
        if also := other_groups(session.agreement):
            lines += wrapped(f"The model is of rows of {listed(also)}, too, by sums of all groups.")
    if not plan.attempt:
        lines += ["", *(f"Wrote {path}" for path in found.written.values())]
        if "reference" in found.written:
            step = standing(owner, session.path).step
            what = f"{session.name}.reference, which holds no row, to the other groups' analysts"
            lines += [*wrapped(f"Send {what}. Next, when {step.when}:"), f"  {step.command}"]
        elif found.written:
            lines += wrapped(f"Send each party its own file, and {session.news.name} to everybody.")
        else:
            lines.append("Nothing is new, and no file is lost.")
    owner.say(lines, command="run", round=session.agreement.round_id, written=found.written, **told)


_NOTHING: dict[str, Any] = {
    **dict.fromkeys(("chance", "model", "model_sha256", "n_rows", "rows_per_feature")),
    **dict.fromkeys(("card", "table")),
    **dict.fromkeys(("trained_on", "target_carries"), ()),
    **{word: {} for word in ("figures", "importance", "returns", "scores", "worth")},
}
"""What programs get of a run that concluded nothing."""


@grouped
def remove(
    owner: Owner,
    words: Annotated[
        list[Path], Argument(metavar="[AGREEMENT] PARTY...", help="Who leaves, by name.")
    ],
    realign: Annotated[bool, Option("--realign", help="Also make a new target.")] = False,
) -> None:
    """Delete what parties sent, train once without them, and certify what is and is not gone.

    Example: cobasis remove icu.toml south
    """
    path, rest = agreed(words)
    parties = [str(each) for each in rest]
    if not parties:
        raise OptionError("this command wants the name of a party: cobasis remove icu.toml NAME.")
    session = owner.analyst(path)
    with progress() as session.report:
        done = take_out(session, parties, realign=realign)
    written = {} if done.concluded is None else done.concluded.written
    drawn = [] if done.concluded is None else [write_card(done.concluded.card, path)]
    last = done.removals[-1]
    told = picked(last, "model_sha256", "trained_on", "target_carries", "realigned")
    owner.say(
        [
            *"\n".join(each.text() for each in done.removals).splitlines(),
            "",
            *(f"Wrote {path}" for path in (*written.values(), *drawn, *done.files)),
            f"Send each party its own file; certificates and {session.news.name} to all.",
        ],
        command="remove",
        round=last.round_id,
        removals=[picked(each, "party", "gone", "not_gone") for each in done.removals],
        certificates=done.files,
        written=written,
        **told,
    )


def write_card(card: ModelCard, agreement: Path, *, party: str = "") -> Path:
    page = agreement.with_name(".".join(filter(None, (stem_of(agreement), party, "card.html"))))
    write_whole(page, render_card(card, party=party).encode())
    return page


def found_in_words(found: Found | None, *, to: Path) -> Iterator[str]:
    """Write what a round has found into a folder, and yield it as lines; nothing of nothing."""
    if isinstance(found, BaselineTable):  # its column of all rows, as lines
        page = write_table(found, to)
        for name, of_all, *_ in rows_of(found):
            yield f"  {name:40.40}{of_all:>36}"
        if few := small_cells(found):
            yield from wrapped(f"{few:,} cells or bins have fewer than five people.")
        groups = f", by {listed(found.groups[1:])}" if found.groups[1:] else ""
        yield from wrapped(f"The table{groups}: {page}, with CSV and JSON beside it.")
    elif isinstance(found, list):
        place = write_files(to, {"clusters.csv": as_csv(found)})
        for row_name, *cells in found:
            told = (f"{x:>10.10}" if isinstance(x, str) else f"{x:>10.4g}" for x in cells)
            yield f"  {row_name:24.24}{''.join(told)}"
        if not found[2:]:
            needed = "as many components as everybody's encoded columns, all of them at one party"
            yield from wrapped(f"A centre by raw columns takes {needed}.")
        yield from wrapped(f"The clusters: {place}.")
    elif found is not None:
        if isinstance(found, EffectTable):
            page, what = write_effects(found, to), "Effects, balance and love plot"
        else:
            page, what = write_coefficients(found, to), "The table and its forest plot"
        yield from found.summary().splitlines()
        yield from wrapped(f"{what}: {page}, with CSV and LaTeX beside it.")


def card_in_words(card: ModelCard, *, page: Path) -> Iterator[str]:
    """Yield what all may know of a model: whose trace it has, which it is, and its worth."""
    if card.target_carries:
        yield from wrapped(f"The target keeps a trace of {listed(card.target_carries)}.")
    if card.model_sha256:
        yield "The model, the same at every party, has the SHA-256"
        yield f"  {card.model_sha256}"
    if scores := card.scores:
        told = [f"{word} {scores[name]:.3g}" for name, word in _CALLED.items() if name in scores]
        if "accuracy" in scores:
            told[0] += f" ({scores['accuracy_low']:.3f} to {scores['accuracy_high']:.3f})"
        found = "No party held back enough rows, so nothing is known of the model's worth."
        if scores["rows"]:
            found = f"On {scores['rows']:,.0f} rows that all parties held back: {', '.join(told)}."
        yield from wrapped(found)
    if card.importance:
        figure = "accuracy" if card.classes else "R2"
        yield f"By how much {figure} falls where a column is shuffled, and the standard error:"
    columns = sorted(card.importance.items(), key=lambda each: -each[1][0])
    for name, (falls, error) in columns[:_MOST_COLUMNS]:
        yield f"  {name:40.40}{falls:>10.4f}{error:>10.4f}"
    yield f"Who and what made the {'table' if card.task == 'table' else 'model'}: {page}"


_MOST_COLUMNS = 20  # of which a terminal shows the importance, and the card that of all

_CALLED = {"accuracy": "accuracy", "auc": "AUC", "log_loss": "log loss", "r2": "R2", "mae": "MAE"}
"""What is said of scores; R2 and MAE are of predictions cut at the agreed range."""
