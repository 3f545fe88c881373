"""``cobasis plan``: what a choice would come to, before anything is agreed or sent."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import AsJson, agreed, numbers, progress, say
from cobasis.errors import OptionError

if TYPE_CHECKING:
    from cobasis.privacy.audit import Plan


def plan(
    words: Annotated[
        list[Path],
        typer.Argument(metavar="[AGREEMENT] DATA", help="And your table, CSV or Parquet."),
    ],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The same as a page.")] = None,
    public: Annotated[
        Path | None, typer.Option(help="Table of public rows with the same columns.")
    ] = None,
    n_components: Annotated[
        str, typer.Option(help="Numbers of components to compare, such as 4,8,16.")
    ] = "",
    noise: Annotated[str, typer.Option(help="Noise to compare, by default 0.1,0.2,0.4.")] = "",
    epsilon: Annotated[str, typer.Option(help="Guarantees to compare, by default 32,8,2.")] = "",
    as_json: AsJson = False,
) -> None:
    """Measure on your own rows what each defence would cost and win; nothing leaves.

    It takes an agreement, or a draft without parties, and your table. No key, vault or joined
    secret is needed, nobody has to have signed, and nothing is kept or charged.

    Example: cobasis plan icu.toml data.csv --public public.csv -o plan.html
    """
    from cobasis.bundle.agreement_file import read_terms
    from cobasis.party_side.pricing import Asked, priced
    from cobasis.party_side.session import refuse_target

    agreement, tables = agreed(words)
    if len(tables) != 1:
        raise OptionError(
            f"plan takes one table beside the agreement, not {len(tables)}. Write it as: cobasis "
            f"plan {agreement} data.csv."
        )
    [data] = tables
    asked = Asked(
        n_components=tuple(map(int, numbers(n_components, int, option="--n-components"))),
        noise=numbers(noise, float, option="--noise"),
        epsilon=numbers(epsilon, float, option="--epsilon"),
    )
    for table in (data, agreement, public):
        if out is not None and table is not None:
            refuse_target(out, table=table)
    terms = read_terms(agreement)
    with progress() as report:
        found = priced(terms, data, public=public, asked=asked, report=report)
    if out is not None:
        _write(out, found, round_id=terms.round_id, task=terms.task)
    _show(found, round_id=terms.round_id, task=terms.task, out=out, as_json=as_json)


def _write(out: Path, found: "Plan", *, round_id: str, task: str) -> None:
    """Write the page, for its owner only."""
    from cobasis.disk.whole import write_whole
    from cobasis.report.privacy_pages import render_plan

    write_whole(out, render_plan(found, round_id=round_id, task=task).encode())


def _show(found: "Plan", *, round_id: str, task: str, out: Path | None, as_json: bool) -> None:
    """Print what was found, as JSON or as a table."""
    from cobasis.cli.answers import EffectAnswer, PlanAnswer

    answer = PlanAnswer.of(
        found,
        command="plan",
        round=round_id,
        metric={"classification": "accuracy", "regression": "r2"}.get(task, ""),
        effects=[EffectAnswer.of(each) for each in found.effects],
        told=list(found.told),
        page="" if out is None else str(out),
    )
    if not as_json:
        _print(found, task=task)
    told = [f"- {each}" for each in found.told]
    say(answer, as_json=as_json, lines=[*told, *([f"Wrote {out}"] if out is not None else [])])


def _print(found: "Plan", *, task: str) -> None:
    """Print the table, and what its columns are."""
    from rich.console import Console
    from rich.table import Table

    from cobasis.report.privacy_pages import columns_of, row_of

    titles, about = columns_of(found, task=task)
    table = Table(title=f"What each defence would come to, on {found.n_sampled:,} of your rows")
    for at, title in enumerate(titles):
        table.add_column(title, justify="right" if at else "left")
    for each in found.effects:
        table.add_row(*row_of(each, task=task))
    console = Console()
    console.print(table)
    console.print(about, highlight=False)
