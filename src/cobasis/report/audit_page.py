"""An audit as one HTML page without outside references: to be read, printed and signed."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Final

import jinja2

from cobasis.privacy.audit.distances import THIS
from cobasis.privacy.audit.grading import POLICY
from cobasis.privacy.audit.report import AuditReport
from cobasis.report.charts import distances_chart, effects_chart

MARKS: Final[Mapping[str, str]] = {
    "green": "within policy",
    "amber": "look at it",
    "red": "above policy",
    "told": "for information",
}
"""How a grade is written: in words, since there is no picture of safety."""

_DISTANCES = (
    "0 is the record itself, 1 is as far as the average person. It is a distance, so 0.3 leaves a "
    "tenth of the variance hidden. Full lines are means over everybody, dotted ones the 1 % of "
    "people (at least one) who are rebuilt best. Svd (of a party's own rows), consensus and haar "
    "(random) are bases that could be agreed on; the consensus is of three parties like yours."
)


def render_audit(report: AuditReport, *, task: str, seal: str = "") -> str:
    """Render an audit as one self-contained page."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["lower_first"] = _lower_first
    template = environment.from_string(
        files("cobasis.report").joinpath("audit.html").read_text(encoding="utf-8")
    )
    return template.render(
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


def _own_distance(report: AuditReport) -> str:
    """Return the distances of the upload as it is, in words."""
    for each in report.distances:
        if each.basis == THIS:
            return f"{each.mean:.2f} on average, {each.worst:.2f} for those 1 %"
    return "not measured"


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
