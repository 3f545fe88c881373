"""The report as one HTML file that refers to nothing outside itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import jinja2
import numpy as np

from cobasis.report.charts import angles_chart, scores_chart
from cobasis.report.comparison import Comparison


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One line of the table of what each role saw."""

    role: str
    what: str
    shape: str


def render(found: Comparison) -> str:
    """Render a comparison as one self-contained page."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(
        files("cobasis.report").joinpath("page.html").read_text(encoding="utf-8")
    )
    images = {name: upload.read_image() for name, upload in found.round.analyst.uploads.items()}
    certificate = found.round.analyst.certificate
    return template.render(
        found=found,
        certificate=certificate,
        means=means(found),
        conclusion=conclusion(found),
        seen=what_each_role_saw(found),
        scores=scores_chart(found),
        angles=angles_chart(images),
    )


def means(found: Comparison) -> dict[str, float | None]:
    """Return the four numbers, each as mean over parties."""
    return {
        "alone": _mean(found.alone),
        "together": _mean(found.together),
        "together_consensus": None if found.consensus is None else _mean(found.consensus),
        "pooled": found.pooled,
    }


def conclusion(found: Comparison) -> str:
    """Return in one sentence what the four numbers say of taking part."""
    alone = _mean(found.alone)

    def gain(value: float) -> str:
        points = f"{100 * (value - alone):+.1f} points"
        return points if found.metric == "accuracy" else f"{value - alone:+.3f} of R2"

    said = (
        f"Against being alone, taking part brings the average party {gain(_mean(found.together))}"
    )
    if found.consensus:
        said += f", with a consensus basis {gain(_mean(found.consensus))}"
    return f"{said}; pooling all rows would bring {gain(found.pooled)}."


def _mean(scores: Mapping[str, float]) -> float:
    return float(np.mean(list(scores.values())))


def what_each_role_saw(found: Comparison) -> list[Seen]:
    """Return, for party, analyst and everybody, what they hold after the round."""
    agreement = found.round.agreement
    names = tuple(found.round.analyst.uploads)
    m, size = agreement.n_features, agreement.n_components
    rows = sum(len(found.data.rows[name][0]) for name in names)
    each = "each party, of itself"
    return [
        Seen(role=each, what="its raw rows and labels", shape=f"n_i x {m}"),
        Seen(role=each, what="its secret basis F_i", shape=f"{m} x {size}"),
        Seen(role="parties, together", what="the consortium secret", shape="32 bytes"),
        Seen(role="parties, together", what="the anchor", shape=f"{agreement.n_anchor_rows} x {m}"),
        Seen(role="analyst", what="projected rows of all parties", shape=f"{rows} x {size}"),
        Seen(
            role="analyst",
            what="each party's image of the anchor",
            shape=f"{agreement.n_anchor_rows} x {size}, {len(names)} times",
        ),
        Seen(role="analyst", what="labels, in the clear", shape=f"{rows}"),
        Seen(role="each party, returned", what="its change of basis G_i", shape=f"{size} x {size}"),
        Seen(role="each party, returned", what="the model", shape=agreement.model or "none"),
    ]


def as_json(found: Comparison) -> dict[str, Any]:
    """Return the comparison as one JSON object."""
    certificate = found.round.analyst.certificate
    consensus = found.consensus or {}
    return {
        "data": found.data.name,
        "metric": found.metric,
        **means(found),
        "conclusion": conclusion(found),
        "parties": len(found.alone),
        "n_components": found.settings.n_components,
        "aligner": found.settings.aligner,
        "anchor": found.settings.anchor,
        "basis": found.settings.basis,
        "model": found.settings.model,
        "split": found.data.split,
        "seed": found.settings.seed,
        "consensus_refusal": found.consensus_refusal,
        "per_party": {
            name: {
                "alone": found.alone[name],
                "alone_holds_one_class": name in found.one_class,
                "together": found.together[name],
                "together_consensus": consensus.get(name),
                "residual": certificate.parties[name].residual,
                "correlation": certificate.parties[name].correlation,
                "evidence": certificate.parties[name].evidence,
                "bytes_up": traffic.up,
                "bytes_down": traffic.down,
            }
            for name, traffic in found.round.traffic.items()
        },
        "seconds": round(found.seconds, 3),
    }
