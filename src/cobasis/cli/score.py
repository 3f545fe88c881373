"""``cobasis score``: what the common model is worth to a party."""

from pathlib import Path
from typing import Annotated

import typer

from cobasis.cli.accept import score_part, scores_in_words
from cobasis.cli.options import Owner, agreed, owned, progress, the_one


@owned
def score(
    owner: Owner,
    words: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[AGREEMENT] [TABLE]",
            help="Rows with labels; else those that were held back of the table that was sent.",
        ),
    ] = None,
) -> None:
    """Score the common model on rows that never left, beside a model of the party's own.

    Of a table that is given, rows that were uploaded are left out.

    Example: cobasis score icu.toml later.csv
    """
    from cobasis.cli.answers import ScoreAnswer
    from cobasis.party_side import score as scoring

    agreement, rest = agreed(words or [])
    table = the_one(rest, what="one table, CSV or Parquet") if rest else None
    session = owner.party(agreement)
    with progress() as report:
        scores = scoring.score(session, table=table, report=report)
    owner.say(
        ScoreAnswer(
            command="score",
            round=session.agreement.round_id,
            party=session.name,
            score=score_part(scores),
        ),
        lines=scores_in_words(scores),
    )
