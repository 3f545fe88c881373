"""``cobasis demo``: the whole round on real data, how these are dealt, and beside what."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from typer import Option

from cobasis.algorithms import AlignerName, AnchorKind, BasisName
from cobasis.algorithms.readable import Table
from cobasis.cli.options import Screen, grouped
from cobasis.disk.whole import write_whole
from cobasis.errors import OptionError
from cobasis.models import DEFAULT_MODELS, ModelName
from cobasis.report import DataName, Split
from cobasis.report.comparison import Comparison, compare, deal
from cobasis.report.pages import about_sums, as_json, conclusion, means, render_comparison


@grouped
def demo(
    screen: Screen,
    data: Annotated[DataName, Option(help="Data set.")] = "digits",
    parties: Annotated[int | None, Option(help="By default 10 for digits, else 4.")] = None,
    split: Annotated[Split, Option(help="How rows are dealt; by-label: digits.")] = "iid",
    n_components: Annotated[int | None, Option(help="By default 24, 10, 7.")] = None,
    aligner: Annotated[AlignerName, Option(help="Method.")] = "odc",
    anchor: Annotated[AnchorKind, Option(help="Anchor.")] = "isometric",
    basis: Annotated[BasisName, Option(help="Secret basis.")] = "svd",
    model: Annotated[ModelName | None, Option(help="By default logistic, or ridge.")] = None,
    seed: Annotated[int, Option(help="For rows, keys and folds.", min=0, max=2**32 - 1)] = 0,
    report: Annotated[Path, Option(help="Where the page goes.")] = Path("cobasis-report.html"),
) -> None:
    """Run a whole round on real data: alone, together, consensus basis, sums, pooled.

    Example: cobasis demo --split by-label --json
    """
    if report.is_dir() or not report.parent.is_dir():
        raise OptionError(
            f"--report {report} is a folder, or in one that does not exist. Name a file."
        )
    dealt = deal(data, n_parties=parties, split=split, seed=seed)
    settings = {
        "n_components": dealt.n_components if n_components is None else n_components,
        "aligner": aligner,
        "anchor": anchor,
        "basis": basis,
        "model": model or DEFAULT_MODELS[dealt.task],
        "seed": seed,
    }
    with Console(stderr=True).status("starting") as status:
        found = compare(dealt, settings, tell=status.update)
        write_whole(report, render_comparison(found).encode())
    if screen.as_json:
        typer.echo(json.dumps({**as_json(found), "report": str(report)}, indent=2))
    else:
        screen.tell([*_lines(found), f"Report: {report}"])


def _lines(found: Comparison) -> list[str]:
    def shown(value: float | None) -> str:
        if value is None:
            return "-"
        return f"{100 * value:.1f}" if found.metric == "accuracy" else f"{value:.3f}"

    unit = "accuracy in %" if found.metric == "accuracy" else "R2"
    data, consensus = found.data, found.consensus or {}
    rows = [("mean", *map(shown, means(found).values()), "", "")]
    for name, traffic in found.round.traffic.items():
        scores = (found.alone[name], found.together[name], consensus.get(name))
        told = map(shown, (*scores, found.sums_score, found.pooled))
        rows.insert(-1, (name, *told, f"{traffic.up:,}", f"{traffic.down:,}"))
    refusal = [f"No consensus basis: {found.consensus_refusal}"] if found.consensus_refusal else []
    table = Table(
        title=f"{data.name}, split {data.split}: {unit} on the test set; bytes up, down",
        header=("party", "alone", "together", "consensus", "sums", "pooled", "up", "down"),
        rows=rows,
        notes=(
            *(conclusion(found), about_sums(found), *refusal),
            f"Certificate: {found.round.analyst.certificate.headline}.",
        ),
    )
    return table.text().splitlines()
