"""``cobasis receive``: whatever came, checked, acknowledged, and told to everybody."""

from collections.abc import Iterable, Iterator

import typer

from cobasis.analyst_side.receive import FileVerdict
from cobasis.analyst_side.receive import receive as take
from cobasis.bundle.agreement_file import sealed_path
from cobasis.cli.options import Files, Owner, agreed, grouped, progress
from cobasis.cli.status import shown, standing
from cobasis.cli.words import picked, wrapped
from cobasis.errors import RemoteError
from cobasis.protocol.exchanges import EXCHANGES


@grouped
def receive(owner: Owner, words: Files = None) -> None:
    """Take in whatever came: signatures, proposals, uploads, sums; in any order, again and again.

    The last signature seals the agreement. Receipts go to icu.news: send it to everybody.
    Files are not changed. A folder stands for the files in it.

    Example: cobasis receive icu.toml inbox/
    """
    path, files = agreed(words)
    session = owner.analyst(path, sealed=False)
    with progress() as session.report:
        taken = take(session, files)
    found, sealed = standing(owner, path), sealed_path(path) if session.sealed else None
    signed = any((each.message, each.verdict) == ("signature", "accepted") for each in taken)
    wrote = [str(sealed)] * bool(sealed and signed) + [str(session.news)]
    owner.say(
        [*said_of_files(taken), *shown(found), "", f"Send {' and '.join(wrote)} to everybody."],
        command="receive",
        round=found.agreement.round_id,
        exchange=found.last.number,
        message=found.last.message,
        files=taken,
        agreed=found.signed,
        sealed=sealed,
        received=sorted(x for x in found.receipts(found.last) if found.out.get(x) != "removed"),
        missing=found.awaited,
        news=session.news,
        **picked(found, "unsigned", "late"),
        **picked(found.agreement, "minimum_parties", "deadline"),
    )
    if any(each.verdict == "refused" for each in taken):
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
