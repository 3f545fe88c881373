"""The price of each defence as one HTML page without outside references, and as rows of a table."""

from importlib.resources import files
from typing import TYPE_CHECKING

import jinja2

from cobasis.privacy.audit.words import per_cent
from cobasis.report.charts import effects_chart

if TYPE_CHECKING:
    from cobasis.privacy.audit import Effect, Plan

_WORTH = {"classification": "right answers", "regression": "R2"}


def render_plan(found: "Plan", *, round_id: str, task: str) -> str:
    """Render the price of each defence as one self-contained page."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(
        files("cobasis.report").joinpath("plan.html").read_text(encoding="utf-8")
    )
    titles, about = columns_of(found, task=task)
    return template.render(
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
