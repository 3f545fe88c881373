"""A comparison, an audit and a plan as HTML pages that refer to nothing outside themselves."""

from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import jinja2
import numpy as np

from cobasis.privacy.audit.policy import POLICY, per_cent
from cobasis.privacy.audit.report import AuditReport
from cobasis.privacy.audit.what_if import THIS
from cobasis.report.charts import angles_chart, distances_chart, effects_chart, scores_chart

if TYPE_CHECKING:
    from cobasis.privacy.audit import Effect, Plan
    from cobasis.report.comparison import Comparison

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


def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["lower_first"] = lambda text: text[:1].lower() + text[1:]
    text = files("cobasis.report").joinpath(name).read_text(encoding="utf-8")
    return environment.from_string(text)


def render_comparison(found: "Comparison") -> str:
    """Render the demo's comparison."""
    analyst = found.round.analyst
    return _template("page.html").render(
        found=found,
        certificate=analyst.certificate,
        means=means(found),
        conclusion=conclusion(found),
        seen=_what_each_role_saw(found),
        scores=scores_chart(found),
        angles=angles_chart({name: each.read_image() for name, each in analyst.uploads.items()}),
    )


def means(found: "Comparison") -> dict[str, float | None]:
    """Return the four numbers, each as mean over parties."""
    return {
        "alone": _mean(found.alone),
        "together": _mean(found.together),
        "together_consensus": None if found.consensus is None else _mean(found.consensus),
        "pooled": found.pooled,
    }


def conclusion(found: "Comparison") -> str:
    """Return in one sentence what the four numbers say of taking part."""
    alone = _mean(found.alone)

    def gain(value: float) -> str:
        points = f"{100 * (value - alone):+.1f} points"
        return points if found.metric == "accuracy" else f"{value - alone:+.3f} of R2"

    together = gain(_mean(found.together))
    said = f"Against being alone, taking part brings the average party {together}"
    if found.consensus:
        said += f", with a consensus basis {gain(_mean(found.consensus))}"
    return f"{said}; pooling all rows would bring {gain(found.pooled)}."


def _mean(scores: Mapping[str, float]) -> float:
    return float(np.mean(list(scores.values())))


def _what_each_role_saw(found: "Comparison") -> list[tuple[str, str, str]]:
    """Return who holds what after the round, and its shape."""
    agreement, names = found.round.agreement, tuple(found.round.analyst.uploads)
    m, size, n_anchor_rows = agreement.n_features, agreement.n_components, agreement.n_anchor_rows
    rows = sum(len(found.data.rows[name][0]) for name in names)
    images = f"{n_anchor_rows} x {size}, {len(names)} times"
    own, shared, back = "each party, of itself", "parties, together", "each party, returned"
    return [
        (own, "its raw rows and labels", f"n_i x {m}"),
        (own, "its secret basis F_i", f"{m} x {size}"),
        (shared, "the consortium secret", "32 bytes"),
        (shared, "the anchor", f"{n_anchor_rows} x {m}"),
        ("analyst", "projected rows of all parties", f"{rows} x {size}"),
        ("analyst", "each party's image of the anchor", images),
        ("analyst", "labels, in the clear", f"{rows}"),
        (back, "its change of basis G_i", f"{size} x {size}"),
        (back, "the model", agreement.model or "none"),
    ]


def as_json(found: "Comparison") -> dict[str, Any]:
    """Return the comparison as one JSON object."""
    figures, consensus = found.round.analyst.certificate.parties, found.consensus or {}
    return {
        "data": found.data.table.name,
        "metric": found.metric,
        **means(found),
        "conclusion": conclusion(found),
        "parties": len(found.alone),
        **asdict(found.settings),
        "split": found.data.split,
        "consensus_refusal": found.consensus_refusal,
        "per_party": {
            name: {
                "alone": found.alone[name],
                "alone_holds_one_class": name in found.one_class,
                "together": found.together[name],
                "together_consensus": consensus.get(name),
                "residual": figures[name].residual,
                "correlation": figures[name].correlation,
                "evidence": figures[name].evidence,
                "bytes_up": traffic.up,
                "bytes_down": traffic.down,
            }
            for name, traffic in found.round.traffic.items()
        },
        "seconds": round(found.seconds, 3),
    }


def render_audit(report: AuditReport, *, task: str, seal: str = "") -> str:
    """Render an audit, to be read, printed and signed."""
    own = next((each for each in report.distances if each.basis == THIS), None)
    told = f"{own.mean:.2f} on average, {own.worst:.2f} for those 1 %" if own else "not measured"
    return _template("audit.html").render(
        report=report,
        guarantee=report["D1"].words,
        effects=effects_chart(report.effects, task=task) if report.effects else "",
        n_compared=report.effects[0].n_rows if report.effects else 0,
        labels=any(each.accuracy is not None for each in report.effects),
        distances=distances_chart(report.distances) if report.distances else "",
        distance_words=_DISTANCES,
        own_distance=told,
        policy=POLICY,
        marks=MARKS,
        seal=seal,
    )


def render_plan(found: "Plan", *, round_id: str, task: str) -> str:
    """Render the price of each defence."""
    titles, rows, about = table_of(found, task=task)
    chart = effects_chart(found.effects, task=task)
    return _template("plan.html").render(
        plan=found, round_id=round_id, chart=chart, titles=titles, rows=rows, about=about
    )


def table_of(found: "Plan", *, task: str) -> tuple[list[str], list[list[str]], str]:
    """Return the plan's titles, its cells, and what the columns mean."""
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
    return titles, [_cells(each)[: len(titles)] for each in found.effects], about


def _cells(effect: "Effect") -> list[str]:
    alone = "-" if effect.alone is None else per_cent(effect.alone)
    worth = [effect.accuracy, effect.accuracy_least, effect.accuracy_most]
    mean, least, most = (None if each is None else round(100 * each) for each in worth)
    told = "-" if mean is None else f"{mean} % ({least} to {most})"
    return [effect.name, per_cent(effect.content), alone, per_cent(effect.leaked), told]
