"""``cobasis demo``: the whole round on real data, how these are dealt, and beside what."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.algorithms import AlignerName, AnchorKind, BasisName
from cobasis.errors import OptionError
from cobasis.models import ModelName
from cobasis.report import DataName, Split

if TYPE_CHECKING:
    from rich.console import Console

    from cobasis.report.comparison import Comparison, Dealt, Settings


def demo(
    data: Annotated[DataName, typer.Option(help="Data set.")] = "digits",
    parties: Annotated[
        int | None, typer.Option(help="How many; by default 10 for digits, else 4.")
    ] = None,
    split: Annotated[Split, typer.Option(help="How rows are dealt; by-label: digits.")] = "iid",
    n_components: Annotated[
        int | None, typer.Option(help="Columns of a basis; by default 24, 10, 7.")
    ] = None,
    aligner: Annotated[AlignerName, typer.Option(help="Method.")] = "odc",
    anchor: Annotated[AnchorKind, typer.Option(help="Anchor.")] = "isometric",
    basis: Annotated[BasisName, typer.Option(help="Secret basis.")] = "svd",
    model: Annotated[
        ModelName | None, typer.Option(help="Family; by default logistic, or ridge.")
    ] = None,
    seed: Annotated[int, typer.Option(help="For rows, keys and folds.", min=0, max=2**32 - 1)] = 0,
    report: Annotated[Path, typer.Option(help="Where the page goes.")] = Path(
        "cobasis-report.html"
    ),
    allow_row_carrying: Annotated[
        bool, typer.Option("--allow-row-carrying", help="Accept svm, which stores rows.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run a whole round on real data: alone, together, with a consensus basis, pooled.

    Parties draw secret bases and build uploads.
    The analyst aligns, certifies, trains and returns.
    Each party predicts one common test set with its own basis.

    Example: cobasis demo --split by-label --json
    """
    from cobasis.models.families import default_model
    from cobasis.report.comparison import Settings, deal, load

    if report.is_dir() or not report.parent.is_dir():
        raise OptionError(
            f"--report {report} is a folder, or in one that does not exist. Name a file."
        )
    table = load(data)
    n_parties = table.parties if parties is None else parties
    dealt = deal(table, n_parties=n_parties, split=split, seed=seed)
    settings = Settings(
        n_components=table.n_components if n_components is None else n_components,
        aligner=aligner,
        anchor=anchor,
        basis=basis,
        model=model or default_model(table.task),
        seed=seed,
        allow_row_carrying=allow_row_carrying,
    )
    _show(_compared(dealt, settings, report), report, as_json=as_json)


def _compared(dealt: "Dealt", settings: "Settings", report: Path) -> "Comparison":
    """Run the comparison and write its page, saying what is being done."""
    from rich.console import Console

    from cobasis.disk.whole import write_whole
    from cobasis.report.comparison import compare
    from cobasis.report.pages import render_comparison

    with Console(stderr=True).status("starting") as status:
        found = compare(dealt, settings, tell=status.update)
        status.update("writing the report")
        write_whole(report, render_comparison(found).encode())
    return found


def _show(found: "Comparison", report: Path, *, as_json: bool) -> None:
    """Print what was found, as JSON or as a table."""
    from rich.console import Console

    from cobasis.report.pages import as_json as to_json

    if as_json:
        typer.echo(json.dumps({**to_json(found), "report": str(report)}, indent=2))
    else:
        _print(found, report, Console())


def _print(found: "Comparison", report: Path, console: "Console") -> None:
    """Print scores per party and on average, the certificate, traffic and time."""
    from rich.table import Table as RichTable

    from cobasis.report.pages import conclusion, means

    def shown(value: float | None) -> str:
        if value is None:
            return "-"
        return f"{100 * value:.1f}" if found.metric == "accuracy" else f"{value:.3f}"

    unit = "accuracy in %" if found.metric == "accuracy" else "R2"
    table = RichTable(
        title=f"{found.data.table.name}, split {found.data.split}: {unit} on the test set"
    )
    for column in ("party", "alone", "together", "consensus", "pooled", "bytes up", "bytes down"):
        table.add_column(column, justify="left" if column == "party" else "right")
    consensus = found.consensus or {}
    for name, traffic in found.round.traffic.items():
        table.add_row(
            name + (" (one class)" if name in found.one_class else ""),
            shown(found.alone[name]),
            shown(found.together[name]),
            shown(consensus.get(name)),
            shown(found.pooled),
            f"{traffic.up:,}",
            f"{traffic.down:,}",
        )
    table.add_section()
    table.add_row("mean", *(shown(value) for value in means(found).values()), "", "")
    console.print(table)
    console.print(conclusion(found), highlight=False)
    if found.consensus_refusal:
        console.print(f"No consensus basis: {found.consensus_refusal}", highlight=False)
    certificate = found.round.analyst.certificate
    console.print(f"Certificate: {certificate.headline}.", highlight=False, soft_wrap=True)
    console.print(f"Took {found.seconds:.1f} s. Report: {report}", highlight=False, soft_wrap=True)
