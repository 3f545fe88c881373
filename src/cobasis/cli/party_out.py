"""``cobasis party``: what a party does with the model."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cobasis.cli.options import (
    Agreed,
    AsJson,
    Home,
    Name,
    PassphraseFile,
    Yes,
    consent,
    passphrase_from,
    progress,
    say,
)


def register(app: typer.Typer) -> None:
    """Add these commands to ``cobasis party``."""
    for command in (predict, export, forget):
        app.command()(command)


def predict(
    agreement: Agreed,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="New rows, CSV or Parquet.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Predictions, CSV or Parquet.")],
    home: Home = None,
    name: Name = None,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Predict new rows with the common model; the id column is kept beside each prediction.

    Example: cobasis party predict icu.toml new.csv -o out.csv
    """
    from cobasis.cli.answers import PredictAnswer
    from cobasis.party_side import predicting
    from cobasis.party_side.desk import open_desk

    desk = open_desk(agreement, home=home, name=name, passphrase=passphrase_from(passphrase_file))
    with progress() as report:
        n_rows = predicting.predict(desk, data, to=out, report=report)
    say(
        PredictAnswer(
            command="party predict",
            round=desk.agreement.round_id,
            party=desk.name,
            path=str(out),
            n_rows=n_rows,
        ),
        as_json=as_json,
        lines=[f"Wrote {out}: {n_rows:,} predictions."],
    )


def export(
    agreement: Agreed,
    out: Annotated[Path, typer.Option("-o", "--out", help="The model file.")] = Path("model.onnx"),
    onnx: Annotated[  # noqa: ARG001 -- said for whoever reads the command
        bool, typer.Option("--onnx", help="As ONNX, the one format there is.")
    ] = True,
    precision: Annotated[
        Literal["float64", "float32"], typer.Option(help="Of its numbers.")
    ] = "float64",
    home: Home = None,
    name: Name = None,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Write one ONNX file that takes raw columns and predicts; it holds a secret of all parties.

    Example: cobasis party export icu.toml --onnx -o north.onnx
    """
    from cobasis.cli.answers import ExportAnswer
    from cobasis.party_side import exporting
    from cobasis.party_side.desk import open_desk

    desk = open_desk(agreement, home=home, name=name, passphrase=passphrase_from(passphrase_file))
    n_bytes = exporting.export_onnx(desk, out, precision=precision)
    say(
        ExportAnswer(
            command="party export",
            round=desk.agreement.round_id,
            party=desk.name,
            path=str(out),
            n_bytes=n_bytes,
        ),
        as_json=as_json,
        lines=[
            f"Wrote {out} ({n_bytes:,} bytes). It is SECRET: keep it as you keep your key.",
            "It holds F_i G_i, with which rows of every party can be read.",
        ],
    )


def forget(
    agreement: Agreed,
    yes: Yes = False,
    home: Home = None,
    name: Name = None,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Destroy the round's secret, common span and return; nothing can be predicted then.

    The basis and the upload history stay, for a later round on the same rows.

    Example: cobasis party forget icu.toml --yes
    """
    from cobasis.cli.answers import ForgetAnswer
    from cobasis.party_side import joining
    from cobasis.party_side.desk import open_desk

    desk = open_desk(agreement, home=home, name=name, passphrase=passphrase_from(passphrase_file))
    consent("Destroy the round's secret and return?", yes=yes, what="the deletion")
    time = joining.forget(desk)
    say(
        ForgetAnswer(command="party forget", round=desk.agreement.round_id, time=time),
        as_json=as_json,
        lines=[f"'{desk.name}' forgot round '{desk.agreement.round_id}' on {time}."],
    )
