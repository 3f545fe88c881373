"""``cobasis party``: what a party does with the model."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cobasis.cli.options import Agreed, Owner, Yes, consent, owned, progress


@owned
def predict(
    owner: Owner,
    agreement: Agreed,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="New rows, CSV or Parquet.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Predictions, CSV or Parquet.")],
) -> None:
    """Predict new rows with the common model; the id column is kept beside each prediction.

    Example: cobasis party predict icu.toml new.csv -o out.csv
    """
    from cobasis.cli.answers import PredictAnswer
    from cobasis.party_side import predicting

    desk = owner.party(agreement)
    with progress() as report:
        n_rows = predicting.predict(desk, data, to=out, report=report)
    owner.say(
        PredictAnswer(
            command="party predict",
            round=desk.agreement.round_id,
            party=desk.name,
            path=str(out),
            n_rows=n_rows,
        ),
        lines=[f"Wrote {out}: {n_rows:,} predictions."],
    )


@owned
def export(
    owner: Owner,
    agreement: Agreed,
    out: Annotated[Path, typer.Option("-o", "--out", help="The model file.")] = Path("model.onnx"),
    onnx: Annotated[  # noqa: ARG001 -- said for whoever reads the command
        bool,
        typer.Option(
            "--onnx", show_default=False, help="As ONNX, the one format there is; may be left out."
        ),
    ] = True,
    precision: Annotated[
        Literal["float64", "float32"], typer.Option(help="Of its numbers.")
    ] = "float64",
) -> None:
    """Write one ONNX file that takes raw columns and predicts; it holds a secret of all parties.

    Needs the extra onnx: pip install 'cobasis[onnx]'.

    Example: cobasis party export icu.toml -o north.onnx
    """
    from cobasis.cli.answers import ExportAnswer
    from cobasis.party_side import exporting

    desk = owner.party(agreement)
    n_bytes = exporting.export_onnx(desk, out, precision=precision)
    owner.say(
        ExportAnswer(
            command="party export",
            round=desk.agreement.round_id,
            party=desk.name,
            path=str(out),
            n_bytes=n_bytes,
        ),
        lines=[
            f"Wrote {out} ({n_bytes:,} bytes). It is SECRET: keep it as you keep your key.",
            "It holds F_i G_i, with which rows of every party can be read.",
        ],
    )


@owned
def forget(
    owner: Owner,
    agreement: Agreed,
    yes: Yes = False,
) -> None:
    """Destroy the round's secret, common span and return; nothing can be predicted then.

    The basis and the upload history stay, for a later round on the same rows.

    Example: cobasis party forget icu.toml --yes
    """
    from cobasis.cli.answers import ForgetAnswer
    from cobasis.party_side import secret

    desk = owner.party(agreement)
    consent("Destroy the round's secret and return?", yes=yes, what="the deletion")
    time = secret.forget(desk)
    owner.say(
        ForgetAnswer(command="party forget", round=desk.agreement.round_id, time=time),
        lines=[f"'{desk.name}' forgot round '{desk.agreement.round_id}' on {time}."],
    )
