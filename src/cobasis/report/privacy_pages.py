"""An audit to be read, printed and signed, and a plan: HTML pages without outside references."""

from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import jinja2

from cobasis.privacy.audit.distances import THIS
from cobasis.privacy.audit.grades import POLICY, per_cent
from cobasis.privacy.audit.report import AuditReport
from cobasis.report.charts import distances_chart, effects_chart

if TYPE_CHECKING:
    from cobasis.privacy.audit import Effect, Plan

MARKS: Final[Mapping[str, str]] = {
    "green": "within policy",
    "amber": "look at it",
    "red": "above policy",
    "told": "for information",
}
"""How a grade is written: in words, since there is no picture of safety."""

_WORTH = {"classification": "right answers", "regression": "R2"}

_DISTANCES = (
    "0 is the record itself, 1 is as far as the average person. It is a distance, so 0.3 leaves a "
    "tenth of the variance hidden. Full lines are means over everybody, dotted ones the 1 % of "
    "people (at least one) who are rebuilt best. Svd (of a party's own rows), consensus and haar "
    "(random) are bases that could be agreed on; the consensus is of three parties like yours."
)


def render_audit(report: AuditReport, *, task: str, seal: str = "") -> str:
    """Render an audit as one self-contained page."""
    return _template("audit.html").render(
        report=report,
        guarantee=report["D1"].words,
        effects=effects_chart(report.effects, task=task) if report.effects else "",
        n_compared=report.effects[0].n_rows if report.effects else 0,
        labels=any(each.accuracy is not None for each in report.effects),
        distances=distances_chart(report.distances) if report.distances else "",
        distance_words=_DISTANCES,
        own_distance=_own_distance(report),
        policy=POLICY,
        marks=MARKS,
        seal=seal,
    )


def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["lower_first"] = _lower_first
    text = files("cobasis.report").joinpath(name).read_text(encoding="utf-8")
    return environment.from_string(text)


def _own_distance(report: AuditReport) -> str:
    """Return the distances of the upload as it is, in words."""
    for each in report.distances:
        if each.basis == THIS:
            return f"{each.mean:.2f} on average, {each.worst:.2f} for those 1 %"
    return "not measured"


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def render_plan(found: "Plan", *, round_id: str, task: str) -> str:
    """Render the price of each defence as one self-contained page."""
    titles, about = columns_of(found, task=task)
    return _template("plan.html").render(
        plan=found,
        round_id=round_id,
        chart=effects_chart(found.effects, task=task),
        titles=titles,
        rows=[row_of(each, task=task) for each in found.effects],
        about=about,
    )


def columns_of(found: "Plan", *, task: str) -> tuple[tuple[str, ...], str]:
    """Return the table's titles, and what its columns mean."""
    now = found.effects[0]
    titles = ["setting", "content", "alone", "leaked"]
    alone = (
        "'alone' was not tried, on so few rows"
        if now.alone is None
        else "'alone': an analyst with similar records, alone, picks the right person from a list "
        f"of {round(1 / now.chance_alone):,}"
    )
    about = (
        "'content': share of the variance that is rebuilt, if one partner helps the analyst; "
        f"{alone}; 'leaked': the same of {round(1 / now.chance):,}, if the secret basis leaks."
    )
    if task in _WORTH and now.accuracy is not None:
        titles.append(_WORTH[task])
        about += (
            f" '{_WORTH[task]}': of a simple model of your own rows, scored on {now.n_scored:,} "
            "that it was not fitted on, which get no noise, as when a party predicts: mean of "
            "three splits, least and most. It compares settings, and is not the round's."
        )
    return tuple(titles), about


def row_of(effect: "Effect", *, task: str) -> tuple[str, ...]:
    """Return one setting as cells of the table."""
    alone = "-" if effect.alone is None else per_cent(effect.alone)
    cells = (effect.name, per_cent(effect.content), alone, per_cent(effect.leaked))
    if task not in _WORTH:
        return cells
    if effect.accuracy is None or effect.accuracy_least is None or effect.accuracy_most is None:
        return (*cells, "-")
    least, most = round(100 * effect.accuracy_least), round(100 * effect.accuracy_most)
    return (*cells, f"{round(100 * effect.accuracy)} % ({least} to {most})")
