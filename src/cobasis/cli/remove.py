"""``cobasis remove``: takes a party's rows out, and certifies what is and is not gone."""

from pathlib import Path
from typing import Annotated

import typer

from cobasis.cli.options import Owner, agreed, owned, progress
from cobasis.cli.run import Cluster, Outbox
from cobasis.errors import OptionError


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

    path, party = agreed(words)
    if len(party) != 1:
        raise OptionError(
            f"remove takes one party's name, and {len(party)} were given. Remove one at a time."
        )
    session = owner.analyst(path)
    with progress() as report:
        done = take_out(
            session,
            str(party[0]),
            to=out or session.outbox,
            realign=realign,
            cluster=cluster,
            report=report,
        )
    removal, concluded = done.removal, done.concluded
    written = {} if concluded is None else {**concluded.written}
    owner.say(
        RemoveAnswer.of(
            removal,
            command="remove",
            round=session.agreement.round_id,
            certificate=[str(path) for path in done.files],
            written={name: str(path) for name, path in written.items()},
        ),
        lines=[
            *f"{removal.text()}\n".splitlines(),
            *(f"Wrote {path}" for path in (*written.values(), *done.files)),
            f"Send each party its own file; certificate and {session.news.name} to all.",
        ],
    )
