"""``cobasis accept``: whatever came to a party, each by what is in it."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from cobasis.algorithms.certificate import CAVEAT
from cobasis.bundle.agreement_file import stem_of
from cobasis.bundle.envelope import plain_kind
from cobasis.cli.options import Files, Owner, about, agreed, grouped, progress
from cobasis.cli.predict import scores_in_words
from cobasis.cli.status import Standing, standing
from cobasis.cli.words import listed, picked, safe, wrapped
from cobasis.errors import CobasisError, EstimateError, WaitingError
from cobasis.party_side import accept as accepting
from cobasis.party_side.session import PartySession
from cobasis.party_side.worth import fit_local, score_quietly
from cobasis.protocol.card import ModelCard
from cobasis.protocol.enrolment import words_of
from cobasis.protocol.terms import other_groups, others_of


@grouped
def accept(owner: Owner, words: Files = None) -> None:
    """Take what came from the analyst: news with receipts, a span, a return.

    A file is known by what is in it; its name does not matter. A return is scored on the rows
    that were held back.

    Example: cobasis accept icu.toml icu.news icu.north.1-return
    """
    agreement, given = agreed(words)
    session = owner.party(agreement)
    news = session.path.with_name(f"{stem_of(session.path)}.news")
    ours = [news, *(session.beside(f"{x.number}-{x.reply}") for x in session.exchanges)]
    here = given or [path for path in ours if path.exists()]
    passed = [path for path in here if not given and accepting.accepted_before(session, path)]
    if passed == here:
        raise WaitingError(
            f"of {len(passed):,} file(s) here none is new for '{session.name}'. Put what "
            f"'{session.analyst.name}' sends, of {listed(each.name for each in ours)}, beside "
            f"'{session.path}', or name its files. To end an accept that was cut short, name the "
            "file itself, which is taken again."
        )
    takers = {"news": _take_news, "span": _take_span, "return": _take_return}
    told: dict[str, Any] = {}
    lines: list[str] = []
    refused: dict[Path, CobasisError] = {}
    new = (path for path in here if path not in passed)
    for path in sorted(new, key=lambda each: plain_kind(each) != "news"):  # who is revoked, first
        try:
            kind = accepting.look_at(session, path)
            told[kind], said = takers[kind](session, path)
            lines += said
        except CobasisError as error:
            refused[path] = error
    if told:
        with suppress(CobasisError):  # a foreign icu.news must not hide what was taken
            lines += _next(session, standing(owner, agreement))
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
        typer.echo(safe(f"Refused {path.name}: {type(why).__name__}: {why}"), err=True)
    for why in refused.values():
        raise typer.Exit(why.exit_code)


def _take_news(session: PartySession, path: Path) -> tuple[object, list[str]]:
    news, signed = accepting.accept_news(session, path)
    lines = [f"Accepted the news of {news.time}, signed by '{news.analyst}'."]
    for each in (one.receipt for one in signed):
        lines += [
            f"  Your file of exchange {each.exchange} was received on {each.time}:",
            f"  {each.file}",
            "  The receipt is right, and in your transcript.",
        ]
    for word, names in (("goes on without", news.without), ("has removed", news.removed)):
        if names:
            lines += wrapped(f"'{news.analyst}' {word} {listed(names)}.", lead="  ")
    if news.attempt > 1 and session.name not in news.without:
        lines.append(f"  Sums have begun again: this is attempt {news.attempt}.")
    lines.append(f"  Where the round stands: cobasis status {session.path.name}")
    receipts = [each.receipt.file for each in signed]
    return {**picked(news, "time", "without", "removed"), "receipts": receipts}, lines


def _take_span(session: PartySession, path: Path) -> tuple[object, list[str]]:
    span = accepting.adopt(session, path)
    lines = wrapped(
        f"Accepted {path.name}: the common span of {listed(span.contributors)}. It is of this "
        "round's anchor, and is kept for the upload. All parties have to read these eight words:"
    )
    lines.append(f"  {words_of(span.digest())}")
    return {"contributors": span.contributors, "sha256": span.digest().hex()}, lines


def _take_return(session: PartySession, path: Path) -> tuple[object, list[str]]:
    from cobasis.cli import run  # noqa: PLC0415 -- loads matplotlib, for a return alone

    taken = accepting.accept(session, path)
    with progress() as session.report:
        fit_local(session)
        scores = score_quietly(session)
    card = ModelCard.read(taken.card)
    page = run.write_card(card, session.path, party=session.name)
    folder, tables = session.beside("table"), list[str]()
    try:
        tables += run.found_in_words(accepting.found_in(session, taken), to=folder)
    except EstimateError as why:  # the return is kept: only another round can take other columns
        tables += wrapped(f"No table: {why.args[0]} [{why.code}]")
    lines = [f"Accepted {path.name}."]
    if taken.change_of_basis is not None:
        lines += wrapped(f"The certificate says of your basis: {taken.evidence}; {CAVEAT}.")
    made = "Trained on" if taken.total is None else "The baseline table of the rows of"
    everybody = listed((*taken.trained_on, *other_groups(session.agreement)))
    lines += [*wrapped(f"{made} {everybody}."), *tables]
    lines += [*run.card_in_words(card, page=page), *scores_in_words(scores)]
    told = picked(taken, "evidence", "trained_on", "target_carries", "model_sha256")
    told |= {"table": folder if folder.is_dir() else None, "score": scores, "card": page}
    told |= {"return_sha256": taken.bundle, "worth": card.scores, "importance": card.importance}
    return told, lines


def _next(session: PartySession, found: Standing) -> Iterator[str]:
    yield from wrapped(found.outdated and f"Note: {found.outdated}.")
    if (step := found.step).when or not step.command:
        return
    yield from ("Next:", f"  {step.command}")
    if step.what == "end" and (others := others_of(session.agreement)):
        yield f"and with what {listed(others)} made of the same people in this way:"
        parts = "".join(f" --with {each}.part" for each in others)
        yield f"  cobasis predict {session.path.name} new.csv{parts} -o out.csv"
