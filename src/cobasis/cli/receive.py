"""``cobasis receive``: whatever came, checked, acknowledged, and told to everybody."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import Owner, agreed, owned, progress, wrapped
from cobasis.errors import RemoteError

if TYPE_CHECKING:
    from cobasis.analyst_side.receive import Reception
    from cobasis.protocol.agreement import Agreement


@owned
def receive(
    owner: Owner,
    words: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[AGREEMENT] [FILES]...", help="Files, or folders of them; else those here."
        ),
    ] = None,
) -> None:
    """Take in whatever came: signatures, proposals, uploads; in any order, again and again.

    The last signature seals the agreement. What is accepted has its receipt in icu.news, which
    everybody may have. Files are not changed. A party's key takes signatures only.

    Example: cobasis receive icu.toml inbox/
    """
    from cobasis.analyst_side.receive import receive as take
    from cobasis.analyst_side.receive import seal_only
    from cobasis.bundle.agreement_file import read_agreement

    path, files = agreed(words or [])
    agreement = read_agreement(path).agreement
    if owner.is_analyst(path):
        session = owner.analyst(path, sealed=False)
        with progress() as report:
            found = take(session, files, report=report)
    else:
        found = seal_only(path, files)
    _say(owner, found, agreement)
    if found.refused:
        raise typer.Exit(RemoteError.exit_code)


def _say(owner: Owner, found: "Reception", agreement: "Agreement") -> None:
    from cobasis.cli.analyst_answers import ReceiveAnswer, said_of_files

    owner.say(
        ReceiveAnswer.of(
            found,
            command="receive",
            round=agreement.round_id,
            sealed=None if found.sealed is None else str(found.sealed),
            exchange=found.exchange.number,
            message=found.exchange.message,
            news=None if found.news is None else str(found.news),
            minimum_parties=agreement.minimum_parties,
            deadline=agreement.deadline,
        ),
        lines=[*said_of_files(found.files), *_stands(found, agreement)],
    )


def _stands(found: "Reception", agreement: "Agreement") -> list[str]:
    """Return where the round stands, and what to do next."""
    everybody = len(found.agreed) + len(found.unsigned)
    if found.unsigned:
        return [
            "Agreement",
            *_row("signed", f"{_listed(found.agreed)} ({len(found.agreed)} of {everybody})"),
            *_row("missing", _listed(found.unsigned)),
            *_row("wrote", found.news),
        ]
    sealed = f"Agreement signed by all {everybody}"
    if found.news is None:
        return [sealed, *_row("sealed", found.sealed), f"Send {found.sealed} to everybody."]
    rows = _collected(found, agreement) if found.received or found.missing else []
    new = [each for each in found.files if each.verdict == "accepted"]
    signed = [each for each in new if each.message == "signature"]
    wrote = [str(each) for each in (found.sealed if signed else None, found.news) if each]
    receipts = ": it has their receipts" if found.received else ""
    return [
        *([sealed] if signed else []),
        *rows,
        *_row("wrote", ", ".join(wrote)),
        f"Send {' and '.join(wrote)} to everybody{receipts}.",
    ]


def _collected(found: "Reception", agreement: "Agreement") -> list[str]:
    """Return who is in with the files that are being collected."""
    from cobasis.analyst_side.plan import fewest
    from cobasis.protocol.agreement import exchanges

    exchange = found.exchange
    least = fewest(agreement, exchange)
    count = f"{len(found.received)} of {len(agreement.parties)}, {least} needed"
    again = " ".join(f"--with {name}" for name in found.late if name in found.without)
    return [
        f"Exchange {exchange.number} of {len(exchanges(agreement))}: {exchange.message}",
        *_row("in", f"{_listed(found.received)} ({count})"),
        *_row("missing", _listed(found.missing)),
        *(_row("without", _listed(found.without)) if found.without else []),
        *(_row("deadline", agreement.deadline) if agreement.deadline else []),
        *(_row("late", f"{_listed(found.late)}: cobasis run {again}") if found.late else []),
    ]


def _row(title: str, text: object) -> list[str]:
    return [] if text is None else wrapped(str(text), lead=f"  {title:<9} ")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nobody"
