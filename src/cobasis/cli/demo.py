"""``cobasis demo``: the whole round on real data, how these are dealt, and beside what."""

from pathlib import Path
from typing import Annotated

from rich.console import Console
from typer import Option

from cobasis.algorithms.readable import Table
from cobasis.cli.options import Screen, grouped
from cobasis.disk.whole import write_whole
from cobasis.party_side.session import refuse_target
from cobasis.report.comparison import Comparison, DataName, Split, compare, deal
from cobasis.report.pages import template


@grouped
def demo(
    screen: Screen,
    data: Annotated[DataName, Option(help="Data set.")] = "digits",
    parties: Annotated[int | None, Option(min=3, help="By default 10; 4 of the others.")] = None,
    split: Annotated[Split, Option(help="How rows are dealt; by-label: digits.")] = "iid",
    seed: Annotated[int, Option(help="For rows, keys and folds.", min=0, max=2**32 - 1)] = 0,
    report: Annotated[Path, Option(help="Where the page goes.")] = Path("cobasis-report.html"),
) -> None:
    """Run a whole round on real data: alone, together, consensus basis, sums, pooled.

    Example: cobasis demo --split by-label --json
    """
    refuse_target(report)
    dealt = deal(data, n_parties=parties, split=split, seed=seed)
    with Console(stderr=True).status("starting") as status:
        found = compare(dealt, seed=seed, tell=status.update)
        write_whole(report, template("page.html").render(found=found).encode())
    lines = [*_lines(found), f"Report: {report}"]
    screen.say(lines, command="demo", round=None, **found.told(), report=report)


def _lines(found: Comparison) -> list[str]:
    def shown(value: float) -> str:
        return f"{100 * value:.1f}" if found.metric == "accuracy" else f"{value:.3f}"

    unit = "accuracy in %" if found.metric == "accuracy" else "R2"
    data, rows = found.data, []
    for name, traffic in found.round.traffic.items():
        told = [shown(scores[name]) for scores in found.scores.values()]
        rows.append((name, *told, f"{traffic.up:,}", f"{traffic.down:,}"))
    headline = f"Certificate: {found.round.analyst.certificate.headline}."
    table = Table(
        title=f"{data.name}, split {data.split}: {unit} on the test set; bytes up, down",
        header=("party", "alone", "together", "consensus", "sums", "pooled", "up", "down"),
        rows=[*rows, ("mean", *map(shown, found.means.values()), "", "")],
        notes=(found.conclusion, found.about_sums, headline),
    )
    return table.text().splitlines()
