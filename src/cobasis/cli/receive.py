"""``cobasis receive``: whatever came, checked, acknowledged, and told to everybody."""

from collections.abc import Iterable, Iterator

import typer

from cobasis.analyst_side.receive import FileVerdict, Reception
from cobasis.analyst_side.receive import receive as take
from cobasis.cli.options import Files, Owner, agreed, grouped, progress
from cobasis.cli.words import listed, picked, row, wrapped
from cobasis.errors import RemoteError
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.exchanges import EXCHANGES, exchanges


@grouped
def receive(owner: Owner, words: Files = None) -> None:
    """Take in whatever came: signatures, proposals, uploads; in any order, again and again.

    The last signature seals the agreement. What is accepted has its receipt in icu.news, which
    everybody may have. Files are not changed. A folder stands for the files in it.

    Example: cobasis receive icu.toml inbox/
    """
    path, files = agreed(words)
    session = owner.analyst(path, sealed=False)
    agreement = session.agreement
    with progress() as session.report:
        found = take(session, files)
    told = picked(found, "files", "agreed", "unsigned", "sealed")
    told |= picked(found, "received", "missing", "late", "news")
    owner.say(
        [*said_of_files(found.files), *_stands(found, agreement)],
        command="receive",
        round=agreement.round_id,
        exchange=found.exchange.number,
        message=found.exchange.message,
        **told,
        **picked(agreement, "minimum_parties", "deadline"),
    )
    if found.refused:
        raise typer.Exit(RemoteError.exit_code)


def said_of_files(files: Iterable[FileVerdict]) -> Iterator[str]:
    before = []
    for each in files:
        exchange = EXCHANGES.get(each.message)
        if each.verdict == "received before" and not (exchange and exchange.rows):
            before.append(each.file)
            continue
        told = [f"{each.message} of {each.party}"] if each.party else [each.reason]
        told += [f"{each.n_rows:,} rows"] if each.n_rows else []
        told += [each.reason] if each.message == "word" else []
        if exchange:
            audit = "{verdict} by {policy}".format(**each.audit) if each.audit else None
            told.append(f"audit: {audit or 'none is named'}")
        code = f" [{each.code}]" if each.code else ""
        yield from wrapped(f"{each.verdict}: {', '.join(told)}{code}", lead=f"{each.file}  ")
    if before:
        yield from wrapped(f"received before: {', '.join(before)}")


def _stands(found: Reception, agreement: Agreement) -> Iterator[str]:
    everybody = len(found.agreed) + len(found.unsigned)
    if found.unsigned:
        yield "Agreement"
        yield from row("signed", f"{listed(found.agreed)} ({len(found.agreed)} of {everybody})")
        yield from row("missing", listed(found.unsigned))
        yield from row("wrote", found.news)
        return
    new = {each.message for each in found.files if each.verdict == "accepted"}
    wrote = [found.news]
    if found.sealed and "signature" in new:
        yield f"Agreement signed by all {everybody}"
        wrote = [found.sealed, *wrote]
    if found.received or found.missing:
        exchange = found.exchange
        count = f"{len(found.received)} of {len(agreement.parties)}, {exchange.fewest} needed"
        yield f"Exchange {exchange.number} of {len(exchanges(agreement))}: {exchange.message}"
        yield from row("in", f"{listed(found.received)} ({count})")
        yield from row("missing", listed(found.missing))
        yield from row("without", ", ".join(found.without))
        yield from row("deadline", agreement.deadline)
        again = " ".join(f"--with {name}" for name in found.late if name in found.without)
        yield from row("late", f"{listed(found.late)}: cobasis run {again}" if found.late else "")
    yield from row("wrote", listed(wrote))
    receipts = ": it has their receipts" if found.received else ""
    yield f"Send {' and '.join(map(str, wrote))} to everybody{receipts}."
