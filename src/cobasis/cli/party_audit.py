"""``cobasis party audit``, and how ``prepare`` asks for what an audit wants."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import Agreed, Owner, ask_name, consent, numbers, owned, progress

if TYPE_CHECKING:
    from cobasis.cli.answers import AuditAnswer
    from cobasis.party_side.audit import Audited
    from cobasis.party_side.desk import PartyDesk
    from cobasis.party_side.send import Projected
    from cobasis.vault import Forced

Data = Annotated[Path, typer.Argument(metavar="DATA", help="The party's table, CSV or Parquet.")]
Public = Annotated[
    Path | None, typer.Option(help="Table of public rows, where the agreement names some.")
]
Sensitive = Annotated[
    list[str] | None,
    typer.Option("--sensitive", help="A column that is sensitive; may be given again."),
]
SignedBy = Annotated[
    list[str] | None,
    typer.Option("--signed-by", help="Who signs for the audit; may be given again."),
]
OverrideBy = Annotated[
    list[str] | None,
    typer.Option("--override-by", help="One of two people who answer for what is blocked."),
]
OverrideReason = Annotated[
    str, typer.Option(help="Why it leaves all the same; stays in the transcript.")
]


@owned
def audit(
    owner: Owner,
    agreement: Agreed,
    data: Data,
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

    Example: cobasis party audit icu.toml data.csv -o audit.html
    """
    from cobasis.party_side.audit import Question, audited, keep
    from cobasis.party_side.preview import make_ready
    from cobasis.party_side.send import projected, read_public_rows

    question = Question(
        n_components=tuple(map(int, numbers(n_components, int, option="--n-components"))),
        noise=numbers(noise, float, option="--noise"),
        sensitive=tuple(sensitive or ()),
    )
    pages = _pages(out, data)
    desk = owner.party(agreement)
    rows = read_public_rows(desk, public_rows)
    with progress() as report:
        ready = make_ready(desk, data, looking=True, report=report)
        with projected(ready, public_rows=rows, report=report) as made:
            found = audited(made, question=question)
    kept = keep(desk, found)
    if pages:
        _write(pages, found, task=desk.agreement.task)
    lines = [*in_words(found), *(f"Wrote {page}" for page in pages), f"Kept as {kept}"]
    owner.say(_answer(found, desk, kept=kept, pages=pages), lines=lines)


def _answer(found: "Audited", desk: "PartyDesk", *, kept: Path, pages: list[Path]) -> "AuditAnswer":
    """Return the audit for ``--json``."""
    from cobasis.cli.answers import AuditAnswer, EffectAnswer, FindingAnswer

    report = found.report
    return AuditAnswer.of(
        report,
        command="party audit",
        round=desk.agreement.round_id,
        party=desk.name,
        policy=found.record["policy"],
        blocked=bool(report.blocking),
        to_sign=[each.id for each in report.to_sign],
        findings=[FindingAnswer.of(each) for each in report.findings],
        effects=[EffectAnswer.of(each) for each in report.effects],
        report_sha256=found.record["report"],
        report_path=str(kept),
        pages=[str(page) for page in pages],
    )


def asking(
    owner: Owner,
    *,
    yes: bool,
    signed_by: list[str] | None,
    override: "Forced | None",
    sensitive: list[str] | None,
    before: Callable[[], None],
) -> "Callable[[Projected], dict[str, str]]":
    """Return what `prepare` does between writing an upload and sealing it.

    Parameters
    ----------
    owner : Owner
        Whose command it is.
    yes : bool
        From ``--yes``.
    signed_by : list of str or None
        From ``--signed-by``.
    override : Forced or None
        From ``--override-by`` and ``--override-reason``.
    sensitive : list of str or None
        From ``--sensitive``.
    before : callable
        Ends the display of progress, so that somebody can be asked.

    Returns
    -------
    callable
        Audits, says what was found, asks for a signature and for consent, and returns the record
        that travels.
    """
    from cobasis.party_side.audit import (
        Approval,
        Question,
        approve,
        audited,
        require_approval,
    )

    def allow(made: "Projected") -> dict[str, str]:
        asked = Question(sensitive=tuple(sensitive or ()), compared=False)
        found = audited(made, question=asked)
        before()
        for line in in_words(found):
            typer.echo(line, err=owner.as_json)
        names, stopped = tuple(signed_by or ()), found.report.blocking and override is None
        if found.report.to_sign and not names and not stopped:
            names = ask_name("Who signs for this")
        desk, approval = made.ready.desk, Approval(signed_by=names, override=override)
        require_approval(desk, found, approval=approval)
        consent("Make the sealed file?", yes=yes, what="the sealed file")
        return approve(desk, found, approval=approval)

    return allow


def in_words(found: "Audited") -> list[str]:
    """Return an audit's summary for people."""
    report = found.report
    lines = [f"Audit: {report.verdict_words}"]
    lines += [f"  {at}. {each}" for at, each in enumerate(report.sentences, start=1)]
    lines += [f"Blocked: {each.id}. {each.words}" for each in report.blocking]
    if report.to_sign:
        told = "; ".join(f"{each.id}, {each.title}" for each in report.to_sign)
        lines.append(f"To be signed for: {told}.")
    if report.changes:
        lines += ["What would change it:", *(f"  - {each}" for each in report.changes)]
    return lines


def _pages(out: Path | None, data: Path) -> list[Path]:
    """Return where the page and its figures go; refuse a place that would do harm."""
    from cobasis.errors import OptionError
    from cobasis.party_side.desk import refuse_target

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
    from cobasis.report.audit_page import render_audit

    page, beside = pages
    text = render_audit(found.report, task=task, seal=found.record["report"])
    write_whole(page, text.encode())
    write_whole(beside, json.dumps(as_json(found.report), indent=1).encode())
