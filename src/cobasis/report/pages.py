"""A comparison, an audit and a plan as HTML pages that refer to nothing outside themselves."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import jinja2
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from cobasis.linalg.arrays import principal_cosines
from cobasis.privacy.audit.policy import POLICY, per_cent
from cobasis.privacy.audit.report import AuditReport
from cobasis.privacy.audit.what_if import THIS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cobasis.algorithms.images import Images
    from cobasis.privacy.audit.prices import Plan
    from cobasis.privacy.audit.what_if import Distance, Effect
    from cobasis.report.comparison import Comparison

_LEGEND: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 4}
INK, GREY = "#1f2933", "#9aa5b1"
ALONE, TOGETHER, CONSENSUS, POOLED = "#c8553d", "#2a6f97", "#3a9b78", "#1f2933"


def scores_chart(found: "Comparison") -> str:
    """Draw each party's score: alone, together, with a consensus basis; pooled as a line."""
    names = list(found.alone)
    series = [("alone", found.alone, ALONE), ("together", found.together, TOGETHER)]
    if found.consensus is not None:
        series.append(("consensus basis", found.consensus, CONSENSUS))
    figure, axes = _empty(width=max(6.0, 0.9 * len(names)))
    width = 0.8 / len(series)
    for index, (label, scores, colour) in enumerate(series):
        places = np.arange(len(names)) + (index - (len(series) - 1) / 2) * width
        axes.bar(places, [scores[name] for name in names], width, color=colour, label=label)
    axes.axhline(found.pooled, color=POOLED, linewidth=1.5, linestyle="--", label="pooled")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel(f"{found.metric} on the common test set")
    axes.set_ylim(top=1.0)
    axes.legend(frameon=False, **_LEGEND)
    return _as_svg(figure)


def angles_chart(images: "Images") -> str:
    """Draw the mean principal angle between every two parties' spans, in degrees."""
    names, spans = list(images), list(images.values())
    cosines = [[principal_cosines(one, two) for two in spans] for one in spans]
    angles = np.degrees(np.arccos(cosines)).mean(axis=2)
    figure, axes = _empty(width=1.8 + 0.55 * len(names), height=max(3.0, 1.4 + 0.5 * len(names)))
    drawn = axes.imshow(angles, cmap="Blues", vmin=0, vmax=90)
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), names)
    for (row, column), angle in np.ndenumerate(angles):
        shade = "white" if angle > 45 else INK  # noqa: PLR2004 -- half of the colour scale
        axes.text(column, row, f"{angle:.0f}", ha="center", va="center", color=shade, fontsize=8)
    figure.colorbar(drawn, ax=axes, label="degrees", shrink=0.8)
    return _as_svg(figure)


def _empty(*, width: float, height: float = 3.4) -> tuple[Figure, "Axes"]:
    """Return an empty figure in the reports' style."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _as_svg(figure: Figure) -> str:
    """Return the figure as an SVG element without prologue, date or outside references."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cobasis"}):
        figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


_SMALL = 8


def effects_chart(effects: "Sequence[Effect]", *, task: str) -> str:
    """Draw what each setting comes to: content, linkage twice, and what it is worth."""
    worth = "R2 of a\nsimple model" if task == "regression" else "Right answers of\na simple model"
    panels: dict[str, list[float | None]] = {
        "Information rebuilt,\nif one partner helps": [each.content for each in effects],
        "Right person picked\nby an analyst alone": [each.alone for each in effects],
        "Right person picked,\nif the basis leaks": [each.leaked for each in effects],
        worth: [each.accuracy for each in effects],
    }
    shown = {title: each for title, each in panels.items() if set(each) != {None}}
    figure = Figure(figsize=(8.2, 0.75 + 0.27 * len(effects)), layout="constrained")
    axes = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    colours = [INK, *["#cfd8df"] * (len(effects) - 1)]
    for panel, (title, values) in zip(axes, shown.items(), strict=True):
        lengths = [0.0 if each is None else min(max(each, 0.0), 1.0) for each in values]
        places = range(len(values))
        bars = panel.barh(places, lengths, 0.62, color=colours, edgecolor=INK, linewidth=0.6)
        told = ["not measured" if each is None else per_cent(each) for each in values]
        panel.bar_label(bars, told, padding=2, fontsize=_SMALL - 1, color=INK)
        panel.set_xlim(0, 1.4)  # a figure stands behind the longest bar, too
        panel.set_xticks([0, 0.5, 1], ["0", "50", "100 %"], fontsize=_SMALL - 1, color=GREY)
        panel.set_title(title, fontsize=_SMALL + 0.5, loc="left")
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(effects)), [each.name for each in effects], fontsize=_SMALL)
    axes[0].invert_yaxis()
    return _as_svg(figure)


def distances_chart(distances: "Sequence[Distance]") -> str:
    """Draw how far records are from what is rebuilt, by basis and number of components."""
    figure, axes = _empty(width=6.6, height=2.2)
    kinds = dict.fromkeys(each.basis for each in distances)
    shades = [INK, TOGETHER, GREY, INK, TOGETHER]
    for kind, mark, shade in zip(kinds, "osD^v", shades, strict=False):
        chosen = sorted(
            (each.n_components, each.mean, each.worst) for each in distances if each.basis == kind
        )
        places, means, worst = zip(*chosen, strict=True)
        axes.plot(places, means, label=kind, marker=mark, markersize=4, color=shade)
        axes.plot(places, worst, linestyle=":", marker=mark, markersize=4, color=shade)
    axes.set_xlabel("components", fontsize=_SMALL)
    axes.set_ylabel("distance to the truth", fontsize=_SMALL)
    axes.tick_params(labelsize=_SMALL)
    axes.set_ylim(bottom=0)
    sizes = sorted({each.n_components for each in distances})
    if len(sizes) > 1:
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.set_xticks([], minor=True)
    axes.legend(frameon=False, **_LEGEND)
    return _as_svg(figure)


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
    titles = ["setting", "content", "whole", "alone", "leaked"]
    alone = (
        "'alone' was not tried, on so few rows"
        if now.alone is None
        else "'alone': an analyst with similar records, alone, picks the right person from a list "
        f"of {round(1 / now.chance_alone):,}"
    )
    about = (
        "'content': share of the variance that is rebuilt, if one partner helps the analyst; "
        "'whole': whether enough leaves to give records back whole, counted by the values that "
        f"columns may have; {alone}; 'leaked': the same of {round(1 / now.chance):,}, if the "
        "secret basis leaks."
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
    worth = effect.accuracy, effect.accuracy_least, effect.accuracy_most
    told = [f"{100 * each:.0f}" for each in worth if each is not None]
    said = "{} % ({} to {})".format(*told) if told else "-"
    whole = {"red": "yes", "amber": "some", "green": "no"}[effect.whole]
    return [effect.name, per_cent(effect.content), whole, alone, per_cent(effect.leaked), said]
