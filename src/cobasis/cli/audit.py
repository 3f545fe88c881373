"""``cobasis audit`` and ``plan``: measured at a party, before anything is made or agreed."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from cobasis.cli.mapping import Mapped
from cobasis.cli.options import Owner, Screen, agreed, grouped, numbers, progress, the_one, wrapped
from cobasis.errors import OptionError

if TYPE_CHECKING:
    from cobasis.party_side.plan import Priced, Released
    from cobasis.protocol.agreement import Agreement
    from cobasis.protocol.signatures import Approval

WithTable = Annotated[
    list[Path], Argument(metavar="[AGREEMENT] DATA", help="The party's table, CSV or Parquet.")
]
Public = Annotated[Path | None, Option(help="Table of the public rows that are agreed.")]
Sensitive = Annotated[
    list[str] | None,
    Option("--sensitive", help="A sensitive column; repeat."),
]
Own = Annotated[
    Path | None, Option(help="What the party files itself, by default record.toml of its home.")
]
Sizes = Annotated[str, Option(help="Numbers of components to compare, such as 4,8,16.")]


@grouped
def audit(
    owner: Owner,
    mapped: Mapped,
    words: WithTable,
    out: Annotated[Path | None, Option("-o", "--out", help="The page; a .json beside it.")] = None,
    public_rows: Public = None,
    n_components: Sizes = "",
    noise: Annotated[str, Option(help="Noise to compare, such as 0.1,0.2.")] = "",
    sensitive: Sensitive = None,
    record: Own = None,
) -> None:
    """Measure what the next file would give away, on a page to decide on; nothing leaves.

    Example: cobasis audit icu.toml data.csv -o audit.html
    """
    from cobasis.cli.audit_answers import AuditAnswer
    from cobasis.disk.whole import copy_whole
    from cobasis.party_side.approval import keep
    from cobasis.party_side.audit import Question, audited, own_record
    from cobasis.party_side.preview import make_ready
    from cobasis.party_side.rows import answered
    from cobasis.party_side.send import projected, require_secret

    agreement, rest = agreed(words)
    data = the_one(rest, what="a table, CSV or Parquet")
    question = Question(
        n_components=numbers(n_components, int, option="--n-components"),
        noise=numbers(noise, float, option="--noise"),
        sensitive=tuple(sensitive or ()),
    )
    pages = _pages(out, data)
    session = owner.party(agreement)
    require_secret(session)
    own = own_record(session, record)
    rows = mapped.check(owner, session, data)
    with progress() as report:
        ready = make_ready(session, rows, looking=True, public_rows=public_rows)
        with projected(ready, report=report) as made:
            found = audited(made, question=question)
    kept = keep(session, found, own=own, asked=answered(session, rows))
    if pages:
        copy_whole(kept, pages[1])
        draw(pages[0], pages[1], session.agreement)
    told = {word: found.told[word] for word in ("policy", "blocked", "to_sign")}
    told |= {"report_sha256": found.record["report"], "report_path": kept, "pages": pages}
    answer = AuditAnswer.by(session, found.report, command="audit", **told)
    wrote = [f"Wrote {page}" for page in pages]
    owner.say(answer, [*in_words(found.told), *wrote, f"Kept as {kept}"])


def draw(
    page: Path, audit: Path, agreement: "Agreement", *, approvals: "Iterable[Approval]" = ()
) -> None:
    """Draw the page of an audit that is kept, with those of the approvals that are for it."""
    from cobasis.disk.whole import write_whole
    from cobasis.party_side.approval import read_audit
    from cobasis.privacy.audit.report import from_json
    from cobasis.report.audit_page import render_audit

    kept = read_audit(audit, agreement)
    its = [each for each in approvals if each.report == kept.seal]
    report = from_json(kept.report)
    text = render_audit(report, agreement, **kept.page, seal=kept.seal, approvals=its)
    write_whole(page, text.encode())


def in_words(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield an audit's summary for people, from its JSON."""
    yield from wrapped(f"Audit: {report['verdict_words']}")
    for at, each in enumerate(report["sentences"], start=1):
        yield from wrapped(each, lead=f"  {at}. ")
    for each in report["findings"]:
        if each["action"] == "block":
            yield from wrapped(f"Blocked: {each['title']} ({each['id']}). {each['words']}")
    signed = (each for each in report["findings"] if each["action"] == "sign")
    if told := "; ".join(f"{each['title']} ({each['id']})" for each in signed):
        yield from wrapped(f"To be signed for: {told}.")
    if report["first"]:
        yield from wrapped(f"What we would change first: {report['first']}")


def _pages(out: Path | None, data: Path) -> list[Path]:
    """Return where the page and its figures go; refuse a place that would do harm."""
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


@grouped
def plan(
    screen: Screen,
    words: WithTable,
    out: Annotated[Path | None, Option("-o", "--out", help="The same as a page.")] = None,
    public: Annotated[Path | None, Option(help="Public rows with the same columns.")] = None,
    n_components: Sizes = "",
    noise: Annotated[str, Option(help="Noise to compare, by default 0.1,0.2,0.4.")] = "",
    epsilon: Annotated[str, Option(help="Guarantees to compare, by default 32,8,2.")] = "",
) -> None:
    """Measure on your own rows what each defence would cost and win; nothing leaves.

    It takes an agreement, or a draft without parties, and your table. No key, vault or joined
    secret is needed, nobody has to have signed, and nothing is kept or charged.

    Example: cobasis plan icu.toml data.csv --public public.csv -o plan.html
    """
    from cobasis.bundle.agreement_file import read_terms
    from cobasis.cli.audit_answers import PlanAnswer
    from cobasis.disk.whole import write_whole
    from cobasis.party_side.plan import priced
    from cobasis.party_side.session import refuse_target
    from cobasis.privacy.audit.prices import EPSILON, NOISE, Offer
    from cobasis.report.audit_page import render_plan

    agreement, rest = agreed(words)
    data = the_one(rest, what="a table, CSV or Parquet")
    offer = Offer(
        n_components=numbers(n_components, int, option="--n-components"),
        noise=numbers(noise, float, option="--noise") or NOISE,
        epsilon=numbers(epsilon, float, option="--epsilon") or EPSILON,
    )
    for path in (data, agreement, public):
        if out is not None and path is not None:
            refuse_target(out, table=path)
    terms = read_terms(agreement)
    with progress() as report:
        found = priced(terms, data, public=public, offer=offer, report=report)
    if out is not None:
        write_whole(out, render_plan(found, round_id=terms.round_id, task=terms.task).encode())
    metric = {"classification": "accuracy", "regression": "r2"}.get(terms.task, "")
    page = "" if out is None else str(out)
    answer = PlanAnswer.of(found, terms, command="plan", metric=metric, page=page)
    if not screen.as_json and found.effects:
        _print(found, task=terms.task)
    if not screen.as_json:
        screen.tell(_beside(found.releases, metric=metric))
    wrote = [] if out is None else [f"Wrote {out}"]
    screen.say(answer, [*(f"- {each}" for each in found.told), *wrote])


def _beside(found: "Iterable[Released]", *, metric: str) -> Iterator[str]:
    """Yield rows beside sums."""
    yield "Rows beside sums, on your own table:"
    for each in found:
        worth = "" if each.score is None else f"; {each.score:.3f} {_WORTH[metric]}, you alone"
        size = f"{each.n_bytes / 1000:,.0f} kB, about {each.seconds:.2g} s"
        yield from wrapped(f"{each.leaves}: {size}{worth}", lead=f"  {each.release:<6}")
        yield from wrapped(f"the analyst learns, {each.learns}", lead="        ")


_WORTH = {"accuracy": "right answers", "r2": "R2"}


def _print(found: "Priced", *, task: str) -> None:
    """Print the table, and what its columns are."""
    from rich.console import Console
    from rich.table import Table

    from cobasis.report.audit_page import table_of

    titles, rows, about = table_of(found.effects, task=task)
    table = Table(title=f"What each defence would come to, on {found.n_sampled:,} of your rows")
    for at, title in enumerate(titles):
        table.add_column(title, justify="right" if at else "left")
    for cells in rows:
        table.add_row(*cells)
    console = Console()
    console.print(table)
    console.print(about, highlight=False)
