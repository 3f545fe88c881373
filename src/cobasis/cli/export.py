"""``cobasis export``: a party's whole way from raw columns to a prediction, as ONNX."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cobasis.cli.options import Owner, agreed, owned


@owned
def export(
    owner: Owner,
    words: Annotated[
        list[Path] | None, typer.Argument(metavar="[AGREEMENT]", help="The agreement's file.")
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="The model file.")] = Path("model.onnx"),
    precision: Annotated[
        Literal["float64", "float32"], typer.Option(help="Of its numbers.")
    ] = "float64",
) -> None:
    """Write one ONNX file that takes raw columns and predicts; it holds a secret of all parties.

    Needs the extra onnx: pip install 'cobasis[onnx]'.

    Example: cobasis export icu.toml -o north.onnx
    """
    from cobasis.cli.answers import ExportAnswer
    from cobasis.party_side.predict import export_onnx

    agreement, _ = agreed(words or [])
    session = owner.party(agreement)
    n_bytes = export_onnx(session, out, precision=precision)
    owner.say(
        ExportAnswer(
            command="export",
            round=session.agreement.round_id,
            party=session.name,
            path=str(out),
            n_bytes=n_bytes,
        ),
        lines=[
            f"Wrote {out} ({n_bytes:,} bytes). It is SECRET: keep it as you keep your key.",
            "With it, rows that any party uploaded can be turned back.",
        ],
    )
