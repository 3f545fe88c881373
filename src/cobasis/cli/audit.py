"""``cobasis audit`` and ``plan``: measured at a party, before anything is made or agreed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from cobasis.bundle.agreement_file import read_terms
from cobasis.cli.approve import show
from cobasis.cli.mapping import Mapped
from cobasis.cli.options import Given, Owner, Public, Screen, Sensitive, about, grouped, progress
from cobasis.cli.words import audit_in_words, picked, wrapped
from cobasis.disk.whole import copy_whole, write_whole
from cobasis.errors import OptionError
from cobasis.party_side.approval import approvals, keep, read_audit
from cobasis.party_side.audit import audited, own_record
from cobasis.party_side.defences import Priced, priced
from cobasis.party_side.preview import make_ready
from cobasis.party_side.rows import answered
from cobasis.party_side.send import projected, require_secret
from cobasis.party_side.session import refuse_target
from cobasis.report.audit_page import WORTH, render_audit, table_of


@grouped
def audit(
    owner: Owner,
    mapped: Mapped,
    given: Given,
    out: Annotated[Path | None, Option("-o", "--out", help="The page; a .json beside it.")] = None,
    public_rows: Public = None,
    sensitive: Sensitive = None,
    opens: Annotated[bool, Option("--open", help="Show it, or a .json, in a browser.")] = False,
) -> None:
    """Measure what the next file would give away, on a page to decide on; nothing leaves.

    With --open it has a button for an officer, which does what approve does.

    Example: cobasis audit icu.toml data.csv -o audit.html
    """
    agreement, data = given.agreement, given.table
    if opens and data.suffix == ".json":
        show(owner, agreement, data)
        return
    pages = [] if out is None else [out, out.with_suffix(".json")]
    for path in pages:
        refuse_target(path, table=data)
    if len({*pages}) == 1:
        raise OptionError(
            f"-o '{out}' names the page, and figures go into a .json beside it. Use .html."
        )
    session = owner.party(agreement)
    require_secret(session)
    own = own_record(session)
    rows = mapped.check(owner, session, data)
    with progress() as session.report:
        ready = make_ready(session, rows, looking=True, public_rows=public_rows)
        with projected(ready) as made:
            found = audited(made, sensitive=sensitive or ())
    kept = keep(session, found, own=own, asked=answered(session, rows))
    if pages:
        copy_whole(kept, pages[1])
        whole = read_audit(kept, session.agreement)
        shown = render_audit(whole, session.agreement, given=approvals(agreement, session.name))
        write_whole(pages[0], shown.encode())
    wrote = (f"Wrote {page}" for page in pages)
    told: dict[str, Any] = {word: found.told[word] for word in _AUDIT}
    told |= {"report_sha256": found.record["report"], "report_path": kept, "pages": pages}
    lines = [*audit_in_words(found.report), *wrote, f"Kept as {kept}"]
    owner.say(lines, **about(session, command="audit"), **told)
    if opens:
        show(owner, agreement, pages[1] if pages else kept)


@grouped
def plan(
    screen: Screen,
    mapped: Mapped,
    given: Given,
    public: Annotated[Path | None, Option(help="Public rows with the same columns.")] = None,
) -> None:
    """Measure on your own rows what each defence would cost and win; nothing leaves.

    It takes an agreement, or a draft, and your table: no key, and nothing is kept or charged.

    Example: cobasis plan icu.toml data.csv --public public.csv
    """
    terms, data = read_terms(given.agreement), given.table
    with progress() as report:
        found = priced(terms, data, mapping=mapped.read(), public=public, report=report)
    metric = {"classification": "accuracy", "regression": "r2"}.get(terms.task, "")
    told = picked(found, "n_rows", "n_sampled", "told", "effects", "releases")
    notes = [line for each in found.told for line in wrapped(each, lead="- ")]
    said = [*_priced(found, task=terms.task), *notes]
    screen.say(said, command="plan", round=terms.round_id, metric=metric, **told)


_AUDIT = (
    *("policy", "verdict", "verdict_words", "sentences"),
    *("blocked", "to_sign", "findings", "effects", "untested"),
)
"""What programs get of an audit."""


def _priced(found: Priced, *, task: str) -> Iterator[str]:
    if found.effects:
        title = f"What each defence would come to, on {found.n_sampled:,} of your rows"
        table = replace(table_of(found.effects, task=task), title=title)
        yield from table.text().splitlines()
    ways = " beside ".join(each.release for each in found.releases)
    yield f"{ways.capitalize()}, on your own table:"
    for each in found.releases:
        worth = "" if each.score is None else f"; {each.score:.3f} {WORTH[task]}, you alone"
        size = f"{each.n_bytes / 1000:,.0f} kB, about {each.seconds:.2g} s"
        yield from wrapped(f"{each.leaves}: {size}{worth}", lead=f"  {each.release:<6}")
        yield from wrapped(f"the analyst learns, {each.learns}", lead="        ")
