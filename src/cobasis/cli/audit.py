"""``cobasis audit`` and ``plan``: measured at a party, before anything is made or agreed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import (
    AsJson,
    Owner,
    agreed,
    numbers,
    owned,
    progress,
    say,
    the_one,
    wrapped,
)

if TYPE_CHECKING:
    from cobasis.cli.answers import AuditAnswer
    from cobasis.party_side.audit import Audited
    from cobasis.party_side.session import PartySession
    from cobasis.privacy.audit import Plan

WithTable = Annotated[
    list[Path],
    typer.Argument(metavar="[AGREEMENT] DATA", help="The party's table, CSV or Parquet."),
]
Public = Annotated[
    Path | None, typer.Option(help="Table of public rows, where the agreement names some.")
]
Sensitive = Annotated[
    list[str] | None,
    typer.Option("--sensitive", help="A column that is sensitive; may be given again."),
]
Sizes = Annotated[str, typer.Option(help="Numbers of components to compare, such as 4,8,16.")]


@owned
def audit(
    owner: Owner,
    words: WithTable,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The page; a .json beside it.")
    ] = None,
    public_rows: Public = None,
    n_components: Sizes = "",
    noise: Annotated[str, typer.Option(help="Noise to compare, such as 0.1,0.2.")] = "",
    sensitive: Sensitive = None,
) -> None:
    """Measure what an upload would give away, on a page to decide on; nothing leaves.

    Example: cobasis audit icu.toml data.csv -o audit.html
    """
    from cobasis.party_side.audit import Question, audited, keep
    from cobasis.party_side.preview import make_ready
    from cobasis.party_side.rows import check
    from cobasis.party_side.send import projected, require_span, take_secret

    agreement, rest = agreed(words)
    data = the_one(rest, what="a table, CSV or Parquet")
    question = Question(
        n_components=numbers(n_components, int, option="--n-components"),
        noise=numbers(noise, float, option="--noise"),
        sensitive=tuple(sensitive or ()),
    )
    pages = _pages(out, data)
    session = owner.party(agreement)
    take_secret(session)
    require_span(session)
    with progress() as report:
        rows = check(session, data, report=report)
        ready = make_ready(session, rows, looking=True, public_rows=public_rows)
        with projected(ready, report=report) as made:
            found = audited(made, question=question)
    kept = keep(session, found)
    if pages:
        _write(pages, found, task=session.agreement.task)
    lines = [*in_words(found), *(f"Wrote {page}" for page in pages), f"Kept as {kept}"]
    owner.say(_answer(found, session, kept=kept, pages=pages), lines=lines)


def _answer(
    found: "Audited", session: "PartySession", *, kept: Path, pages: list[Path]
) -> "AuditAnswer":
    """Return the audit for ``--json``."""
    from cobasis.cli.answers import AuditAnswer

    report = found.report
    return AuditAnswer.by(
        session,
        report,
        command="audit",
        policy=found.record["policy"],
        blocked=bool(report.blocking),
        to_sign=[each.id for each in report.to_sign],
        report_sha256=found.record["report"],
        report_path=str(kept),
        pages=[str(page) for page in pages],
    )


def in_words(found: "Audited") -> list[str]:
    """Return an audit's summary for people."""
    report = found.report
    lines = wrapped(f"Audit: {report.verdict_words}")
    for at, each in enumerate(report.sentences, start=1):
        lines += wrapped(each, lead=f"  {at}. ")
    for blocking in report.blocking:
        lines += wrapped(f"Blocked: {blocking.id}. {blocking.words}")
    if report.to_sign:
        told = "; ".join(f"{each.id}, {each.title}" for each in report.to_sign)
        lines += wrapped(f"To be signed for: {told}.")
    if report.changes:
        lines.append("What would change it:")
        for change in report.changes:
            lines += wrapped(change, lead="  - ")
    return lines


def _pages(out: Path | None, data: Path) -> list[Path]:
    """Return where the page and its figures go; refuse a place that would do harm."""
    from cobasis.errors import OptionError
    from cobasis.party_side.session import refuse_target

    if out is None:
        return []
    beside = out.with_suffix(".json")
    if beside == out:
        raise OptionError(
            f"-o '{out}' names the page, and figures go into a .json beside it. Use .html."
        )
    for path in (out, beside):
        refuse_target(path, table=data)
    return [out, beside]


def _write(pages: list[Path], found: "Audited", *, task: str) -> None:
    """Write the page, and its figures beside it, for their owner only."""
    import json

    from cobasis.disk.whole import write_whole
    from cobasis.privacy.audit import as_json
    from cobasis.report.pages import render_audit

    page, beside = pages
    text = render_audit(found.report, task=task, seal=found.record["report"])
    write_whole(page, text.encode())
    write_whole(beside, json.dumps(as_json(found.report), indent=1).encode())


def plan(
    words: WithTable,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The same as a page.")] = None,
    public: Annotated[
        Path | None, typer.Option(help="Table of public rows with the same columns.")
    ] = None,
    n_components: Sizes = "",
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
    from cobasis.cli.answers import PlanAnswer
    from cobasis.disk.whole import write_whole
    from cobasis.party_side.prices import Asked, priced
    from cobasis.party_side.session import refuse_target
    from cobasis.report.pages import render_plan

    agreement, rest = agreed(words)
    data = the_one(rest, what="a table, CSV or Parquet")
    asked = Asked(
        n_components=numbers(n_components, int, option="--n-components"),
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
        write_whole(out, render_plan(found, round_id=terms.round_id, task=terms.task).encode())
    answer = PlanAnswer.of(
        found,
        command="plan",
        round=terms.round_id,
        metric={"classification": "accuracy", "regression": "r2"}.get(terms.task, ""),
        page="" if out is None else str(out),
    )
    if not as_json:
        _print(found, task=terms.task)
    wrote = [] if out is None else [f"Wrote {out}"]
    say(answer, as_json=as_json, lines=[*(f"- {each}" for each in found.told), *wrote])


def _print(found: "Plan", *, task: str) -> None:
    """Print the table, and what its columns are."""
    from rich.console import Console
    from rich.table import Table

    from cobasis.report.pages import table_of

    titles, rows, about = table_of(found, task=task)
    table = Table(title=f"What each defence would come to, on {found.n_sampled:,} of your rows")
    for at, title in enumerate(titles):
        table.add_column(title, justify="right" if at else "left")
    for cells in rows:
        table.add_row(*cells)
    console = Console()
    console.print(table)
    console.print(about, highlight=False)
