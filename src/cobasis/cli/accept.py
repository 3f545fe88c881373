"""``cobasis accept``: whatever came to a party, each by what is in it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from cobasis.cli.options import Files, Owner, agreed, grouped, progress
from cobasis.cli.words import about, listed, picked, wrapped
from cobasis.errors import CobasisError, EstimateError, WaitingError

if TYPE_CHECKING:
    from cobasis.party_side.session import PartySession
    from cobasis.party_side.worth import Scores
    from cobasis.protocol.baseline import BaselineTable
    from cobasis.protocol.card import ModelCard
    from cobasis.statistics.coefficients import CoefficientTable
    from cobasis.vault.vault import Accepted


@grouped
def accept(
    owner: Owner,
    words: Files = None,
) -> None:
    """Take what came from the analyst: news with receipts, a span, a return.

    A file is known by what is in it; its name does not matter. A return is scored on the rows
    that were held back.

    Example: cobasis accept icu.toml icu.news icu.north.1-return
    """
    agreement, given = agreed(words)
    session = owner.party(agreement)
    found, passed, refused = _looked_at(session, given or _beside(session))
    takers = {"news": _take_news, "span": _take_span, "return": _take_return}
    told: dict[str, Any] = {}
    lines: list[str] = []
    for kind, take in takers.items():
        for path in (each for each, what in found.items() if what == kind):
            try:
                told[kind], said = take(session, path)
                lines += said
            except CobasisError as error:
                refused[path] = error
    owner.say(
        lines,
        **about(session, command="accept"),
        news=told.get("news"),
        span=told.get("span"),
        returned=told.get("return"),
        refused=[str(each) for each in refused.values()],
        passed_over=[path.name for path in passed],
    )
    for path, why in refused.items():
        if len(refused) == 1 and not lines:
            raise why
        typer.echo(f"Refused {path.name}: {type(why).__name__}: {why}", err=True)
    for why in refused.values():
        raise typer.Exit(why.exit_code)


def _places(session: "PartySession") -> list[Path]:
    """Return where what comes for this party lies by default."""
    from cobasis.bundle.agreement_file import stem_of

    replies = [f"{each.number}-{each.reply}" for each in session.exchanges]
    news = session.path.with_name(f"{stem_of(session.path)}.news")
    return [news, *map(session.beside, replies)]


def _beside(session: "PartySession") -> list[Path]:
    """Return what lies beside the agreement for this party; WaitingError where nothing is new."""
    from cobasis.party_side.accept import accepted_before

    places = _places(session)
    found = [path for path in places if path.exists()]
    new = [path for path in found if not accepted_before(session, path)]
    if not new:
        had = f" ({', '.join(path.name for path in found)} were accepted before)" if found else ""
        raise WaitingError(
            f"nothing new for '{session.name}' lies beside '{session.path}'{had}. Put there what "
            f"the analyst sends, of {', '.join(path.name for path in places)}, or name its files."
        )
    return new


def _looked_at(
    session: "PartySession", paths: list[Path]
) -> tuple[dict[Path, str], list[Path], dict[Path, CobasisError]]:
    """Return what files are, what of a folder is not for this party or new, and what is refused."""
    from cobasis.party_side.accept import accepted_before, look_at

    found: dict[Path, str] = {}
    passed, refused = [], {}
    ours = {path.name for path in _places(session)}
    for path in paths:
        folder = path.is_dir()
        for each in sorted(filter(Path.is_file, path.iterdir())) if folder else [path]:
            if folder and accepted_before(session, each):
                passed.append(each)
                continue
            try:
                found[each] = look_at(session, each)
            except CobasisError as error:
                if folder and each.name not in ours:
                    passed.append(each)
                else:
                    refused[each] = error
    if not found and not refused:
        raise WaitingError(
            f"of {len(passed):,} file(s) in {listed(paths)} none is new for '{session.name}'. Ask "
            f"'{session.analyst.name}' for yours. To end an accept that was cut short, name the "
            "file itself, which is taken again."
        )
    return found, passed, refused


def _take_news(session: "PartySession", path: Path) -> tuple[object, list[str]]:
    from cobasis.party_side.accept import accept_news

    news, signed = accept_news(session, path)
    lines = [f"Accepted the news of {news.time}, signed by '{news.analyst}'."]
    for each in (one.receipt for one in signed):
        lines += [
            f"  Your file of exchange {each.exchange} was received on {each.time}:",
            f"  {each.file}",
            "  The receipt is right, countersigned, and in your transcript.",
        ]
    for word, names in (("goes on without", news.without), ("has removed", news.removed)):
        if names:
            lines += wrapped(f"'{news.analyst}' {word} {listed(names)}.", lead="  ")
    if news.attempt > 1 and session.name not in news.without:
        again = f"Sums begin again, attempt {news.attempt}: cobasis send {session.path.name} DATA"
        lines += wrapped(again, lead="  ")
    lines.append(f"  Where the round stands: cobasis status {session.path.name}")
    receipts = [each.receipt.file for each in signed]
    return {**picked(news, "time", "without", "removed"), "receipts": receipts}, lines


def _take_span(session: "PartySession", path: Path) -> tuple[object, list[str]]:
    from cobasis.party_side.accept import adopt
    from cobasis.protocol.enrolment import words_of

    span = adopt(session, path)
    digest, contributors = span.digest(), span.contributors
    lines = wrapped(
        f"Accepted {path.name}: the common span of {listed(contributors)}. It is of this round's "
        "anchor, and is kept for the upload. All parties have to read these eight words:"
    )
    lines += [f"  {words_of(digest)}"]
    if not session.history("prepared"):
        lines += ["Next:", f"  cobasis send {session.path.name} DATA"]
    return {"contributors": contributors, "sha256": digest.hex()}, lines


def _take_return(session: "PartySession", path: Path) -> tuple[object, list[str]]:
    from cobasis.algorithms.certificate import CAVEAT
    from cobasis.disk.whole import write_whole
    from cobasis.party_side import accept as accepting
    from cobasis.party_side.worth import fit_local, score_quietly
    from cobasis.protocol.card import ModelCard
    from cobasis.report.pages import render_card

    taken = accepting.accept(session, path)
    with progress() as report:
        fit_local(session, report=report)
        scores = score_quietly(session, report=report)
    card, page = ModelCard.read(taken.card), session.beside("card.html")
    write_whole(page, render_card(card, party=session.name).encode())
    folder, thing = session.beside("table"), "model" if taken.total is None else "table"
    tables = [*_tables(session, taken, to=folder)]
    lines = [f"Accepted {path.name}."]
    if taken.change_of_basis is not None:
        lines += wrapped(f"The certificate says of your basis: {taken.evidence}; {CAVEAT}.")
    made = "Trained on" if taken.total is None else "The baseline table of the rows of"
    lines += [*wrapped(f"{made} {listed(taken.trained_on)}."), *tables]
    if taken.change_of_basis is not None:
        lines += wrapped(f"The target keeps a trace of {listed(taken.target_carries)}.")
    if taken.orthogonality is not None:
        lines.append(f"The change of basis is a rotation to {taken.orthogonality:.0e}.")
    if taken.model_sha256:
        model = "The model, the same at every party, has the SHA-256"
        lines += [model, f"  {taken.model_sha256}"]
    if card.scores:
        lines += wrapped(worth_in_words(card.scores))
        lines += importance_in_words(card)
    lines += [*scores_in_words(scores), f"Who and what made the {thing}: {page}"]
    name, predicting = session.path.name, "Next:"
    follows, [*_, line] = session.upcoming, session.history("accepted")
    if follows.number > cast("int", line.told["exchange"]):
        lines += ["Next:", f"  cobasis send {name} DATA"]
        predicting = "Or, before everybody's scores are in:"
    if taken.model_sha256 and not (session.agreement.tabular and predicting != "Next:"):
        lines += [predicting, *_predicting(session)]
    there = folder if folder.is_dir() else None
    told = picked(taken, "evidence", "trained_on", "target_carries", "model_sha256")
    told |= {"return_sha256": taken.bundle, "score": scores, "card": page, "table": there}
    told |= {"worth": card.scores, "importance": card.importance}
    return told, lines


def _predicting(session: "PartySession") -> Iterator[str]:
    """Yield the commands that predict."""
    from cobasis.protocol.rows_terms import others_of

    predict, others = f"  cobasis predict {session.path.name} NEW.csv", others_of(session.agreement)
    if others:
        yield f"{predict} --part -o PART.csv"
        yield f"and with what {listed(others)} made of the same people in this way:"
    yield predict + "".join(f" --with {each}.csv" for each in others) + " -o OUT.csv"


def _tables(session: "PartySession", taken: "Accepted", *, to: Path) -> Iterator[str]:
    """Write what a return has of tables into a folder, and yield them as lines, or why none is."""
    try:
        yield from _written(session, taken, to=to)
    except EstimateError as why:  # the return is kept: only another round can take other columns
        yield from wrapped(f"No table: {why.args[0]} [{why.code}]")


def _written(session: "PartySession", taken: "Accepted", *, to: Path) -> Iterator[str]:
    from cobasis.party_side.accept import clusters_in, coefficients_in, effects_in, table_in
    from cobasis.report.estimates import write_effects
    from cobasis.report.table import write_table

    if (table := table_in(session, taken)) is not None:
        yield from table_in_words(table, write_table(table, to))
    elif session.agreement.task == "clustering":
        yield from clusters_in_words(clusters_in(session, taken), to=to)
    elif taken.model_sha256 and (effects := effects_in(session)) is not None:
        page = write_effects(effects, to)
        yield from effects.summary().splitlines()
        yield from wrapped(f"Effects, balance and love plot: {page}, with CSV and LaTeX beside it.")
    elif taken.model_sha256 and (coefficients := coefficients_in(session)) is not None:
        yield from coefficients_in_words(coefficients, to=to)


def clusters_in_words(lines: Sequence[Sequence[str | float]], *, to: Path) -> Iterator[str]:
    """Write clusters into a folder, and yield them as lines."""
    from cobasis.report.pages import as_csv, write_files

    place = write_files(to, {"clusters.csv": as_csv(lines)})
    for name, *cells in lines:
        told = (f"{each:>10.10}" if isinstance(each, str) else f"{each:>10.4g}" for each in cells)
        yield f"  {name:24.24}{''.join(told)}"
    if not lines[2:]:
        yield from wrapped("Fewer components than encoded columns tell no centre by raw columns.")
    yield from wrapped(f"The clusters: {place}.")


def coefficients_in_words(coefficients: "CoefficientTable", *, to: Path) -> Iterator[str]:
    """Write a regression's table into a folder, and yield it as lines."""
    from cobasis.report.estimates import write_coefficients

    page = write_coefficients(coefficients, to)
    yield from coefficients.summary().splitlines()
    yield from wrapped(f"The table and its forest plot: {page}, with CSV and LaTeX beside it.")


def worth_in_words(scores: "Mapping[str, float]") -> str:
    """Say what the common model is worth on all parties' held-back rows."""
    if not scores["rows"]:
        return "No party held back enough rows, so nothing is known of the model's worth."
    told = [f"{word} {scores[name]:.3g}" for name, word in _CALLED.items() if name in scores]
    if "accuracy" in scores:
        told[0] += f" ({scores['accuracy_low']:.3f} to {scores['accuracy_high']:.3f})"
    return f"On {scores['rows']:,.0f} rows that all parties held back: {', '.join(told)}."


def importance_in_words(card: "ModelCard") -> Iterator[str]:
    """Yield what each column is to the common model, the largest first; nothing where not asked."""
    if card.importance:
        figure = "accuracy" if card.classes else "R2"
        yield f"By how much {figure} falls where a column is shuffled, and the standard error:"
    told = sorted(card.importance.items(), key=lambda each: -each[1][0])
    for name, (falls, error) in told[:_MOST_COLUMNS]:
        yield f"  {name:40.40}{falls:>10.4f}{error:>10.4f}"
    if len(told) > _MOST_COLUMNS:
        yield f"  and {len(told) - _MOST_COLUMNS} columns more, on the card's page"


_MOST_COLUMNS = 20
"""Columns whose importance is shown on a terminal."""

_CALLED = {"accuracy": "accuracy", "auc": "AUC", "log_loss": "log loss", "r2": "R2", "mae": "MAE"}
"""What is said of scores; R2 and MAE are of predictions cut at the agreed range."""


def table_in_words(table: "BaselineTable", page: Path) -> Iterator[str]:
    """Yield a baseline table's column of all rows; groups stand in the files."""
    from cobasis.report.table import median_of, rows_of, small_cells

    for name, told, *_ in rows_of(table):
        yield f"  {name:40.40}{told:>36}"
    if few := small_cells(table):
        yield from wrapped(f"{few:,} cells or bins have fewer than five people.")
    if (found := table.survival) is not None and found.times:
        for group, curve in zip(table.groups[1:], found.groups[1:], strict=True):
            yield f"  {f'median {found.time} of {group}':40.40}{median_of(curve):>36}"
    groups = f", by {listed(table.groups[1:])}" if table.groups[1:] else ""
    yield from wrapped(f"The table{groups}: {page}, with CSV and JSON beside it.")


_CHOSEN = {
    "common": "the common model as it is",
    "intercept": "the common model with an intercept of your own",
    "slope": "the common model with an intercept and a slope of your own",
    "mix": "a mix of the common model and one of your own",
    "alone": "a model of your own alone",
}


def scores_in_words(scores: "Scores") -> Iterator[str]:
    """Yield what the model is worth, for people."""
    if scores.together:
        yield f"On {scores.n_rows:,} rows that never left, with intervals of 95 %:"
        yield f"  {'':24}{'together':26}{'local':>8}{'alone':>8}{'constant':>10}"
        for name, (value, low, high) in scores.together.items():
            within = f" ({low:.3f} to {high:.3f})" if low < high else ""
            beside = [each.get(name) for each in (scores.local, scores.alone, scores.constant)]
            local, alone, constant = ("-" if e is None else f"{e.value:.3f}" for e in beside)
            yield f"  {name:24}{f'{value:.3f}{within}':26}{local:>8}{alone:>8}{constant:>10}"
    if scores.verdict is not None:
        shown = f"no difference that {scores.n_rows:,} rows can show"
        told = {"no difference": shown}.get(scores.verdict, f"{scores.verdict} than alone")
        yield from wrapped(f"The model of all beside one of your own rows alone: {told}.")
    if scores.chosen is not None:
        yield from wrapped(f"For your rows, by those that you uploaded: {_CHOSEN[scores.chosen]}.")
    for remark in scores.remarks:
        yield from wrapped(f"Note: {remark}.")
