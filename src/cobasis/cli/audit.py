"""``cobasis audit``: what an upload would give away, measured before it is made."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import Owner, agreed, numbers, owned, progress, the_one, wrapped

if TYPE_CHECKING:
    from cobasis.cli.answers import AuditAnswer
    from cobasis.party_side.audit import Audited
    from cobasis.party_side.session import PartySession

Public = Annotated[
    Path | None, typer.Option(help="Table of public rows, where the agreement names some.")
]
Sensitive = Annotated[
    list[str] | None,
    typer.Option("--sensitive", help="A column that is sensitive; may be given again."),
]


@owned
def audit(
    owner: Owner,
    words: Annotated[
        list[Path],
        typer.Argument(metavar="[AGREEMENT] DATA", help="The party's table, CSV or Parquet."),
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The page; a .json beside it.")
    ] = None,
    public_rows: Public = None,
    n_components: Annotated[
        str, typer.Option(help="Numbers of components to compare, such as 4,8,16.")
    ] = "",
    noise: Annotated[str, typer.Option(help="Noise to compare, such as 0.1,0.2.")] = "",
    sensitive: Sensitive = None,
) -> None:
    """Measure what an upload would give away, on a page to decide on; nothing leaves.

    Example: cobasis audit icu.toml data.csv -o audit.html
    """
    from cobasis.party_side.audit import Question, audited, keep
    from cobasis.party_side.preview import make_ready
    from cobasis.party_side.send import projected, read_public_rows, require_span, take_secret

    agreement, rest = agreed(words)
    data = the_one(rest, what="a table, CSV or Parquet")
    question = Question(
        n_components=tuple(map(int, numbers(n_components, int, option="--n-components"))),
        noise=numbers(noise, float, option="--noise"),
        sensitive=tuple(sensitive or ()),
    )
    pages = _pages(out, data)
    session = owner.party(agreement)
    take_secret(session)
    require_span(session)
    rows = read_public_rows(session, public_rows)
    with progress() as report:
        ready = make_ready(session, data, looking=True, report=report)
        with projected(ready, public_rows=rows, report=report) as made:
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
    from cobasis.cli.answers import AuditAnswer, EffectAnswer, FindingAnswer

    report = found.report
    return AuditAnswer.of(
        report,
        command="audit",
        round=session.agreement.round_id,
        party=session.name,
        policy=found.record["policy"],
        blocked=bool(report.blocking),
        to_sign=[each.id for each in report.to_sign],
        findings=[FindingAnswer.of(each) for each in report.findings],
        effects=[EffectAnswer.of(each) for each in report.effects],
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
    from cobasis.report.privacy_pages import render_audit

    page, beside = pages
    text = render_audit(found.report, task=task, seal=found.record["report"])
    write_whole(page, text.encode())
    write_whole(beside, json.dumps(as_json(found.report), indent=1).encode())
