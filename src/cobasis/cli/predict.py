"""``cobasis predict``: the common model on a party's new rows."""

from pathlib import Path
from typing import Annotated

import typer

from cobasis.cli.options import Owner, agreed, owned, progress, the_one


@owned
def predict(
    owner: Owner,
    words: Annotated[
        list[Path],
        typer.Argument(metavar="[AGREEMENT] DATA", help="New rows, CSV or Parquet."),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Predictions, CSV or Parquet.")],
) -> None:
    """Predict new rows with the common model; the id column is kept beside each prediction.

    Example: cobasis predict icu.toml new.csv -o out.csv
    """
    from cobasis.cli.answers import PredictAnswer
    from cobasis.party_side import predict as predicting

    agreement, rest = agreed(words)
    data = the_one(rest, what="a table of new rows, CSV or Parquet")
    session = owner.party(agreement)
    with progress() as report:
        n_rows = predicting.predict(session, data, to=out, report=report)
    owner.say(
        PredictAnswer(
            command="predict",
            round=session.agreement.round_id,
            party=session.name,
            path=str(out),
            n_rows=n_rows,
        ),
        lines=[f"Wrote {out}: {n_rows:,} predictions."],
    )
