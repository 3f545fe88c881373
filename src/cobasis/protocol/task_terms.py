"""What a task asks of the other fields of an agreement: classes, models, columns of an outcome."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cobasis.features.contract import CategoryFeature
from cobasis.features.outcome import Outcome
from cobasis.models import FAMILIES, MODELLESS, TABULAR, UNLABELLED, family
from cobasis.statistics.sample import FEWEST

if TYPE_CHECKING:
    from cobasis.protocol.agreement import Agreement

_REGRESSIONS = ("classification", "regression", "count", "survival")
FOR_TASKS = {
    **dict.fromkeys(("time", "fewest_leavers"), ("table",)),
    **dict.fromkeys(("event", "horizons"), ("survival", "effect", "table")),
    **dict.fromkeys(("entry", "stratum", "strata_by_party"), ("survival",)),
    **dict.fromkeys(("weight", "errors", "compare_parties"), _REGRESSIONS),
    **dict.fromkeys(("treatment", "estimators", "trim", "caliper"), ("effect",)),
    "exposure": ("count",),
    "grid": ("survival", "table"),
}
"""The terms of an outcome, and which tasks they are for."""


def task_problems(agreement: "Agreement") -> Iterator[str]:
    task, model = agreement.task, agreement.model
    grouped = task in {"classification", "clustering"} or bool(task == "table" and agreement.label)
    if grouped != (len(agreement.classes) > 1):
        yield "classification, clustering, a table by label need at least two classes, others none"
    release = "sums" if task == "table" else "rows" if task in UNLABELLED else agreement.release
    if agreement.release != release:
        yield f"task='{task}' goes with release='{release}'"
    if (task in MODELLESS) != (model is None):
        yield "every task but representation and table names a model, and these have none"
    elif model is not None:
        family(model, task)
    for name in agreement.models:
        if task not in FAMILIES[name].tasks:
            yield f"models names '{name}', which is no family for {task}"
        if FAMILIES[name].carries_rows:
            yield f"models names '{name}', whose file is made of rows that every party could read"
    if agreement.models and model is not None and model not in agreement.models:
        yield f"model='{model}' is not among models"
    real = agreement.enrolled or agreement.analyst
    if real and model is not None and FAMILIES[model].carries_rows:
        yield f"model='{model}' carries rows and is for simulations, and somebody is enrolled here"


def outcome_problems(agreement: "Agreement", outcome: Outcome | None) -> Iterator[str]:
    task, given, usual = agreement.task, outcome or Outcome(), dict(Outcome())
    named = [agreement.label, *given.columns.values()]
    if len({*named}) < len(named):
        yield "label and what [outcome] names are not of different columns"
    for name, value in given:
        if value != usual[name] and task not in FOR_TASKS[name]:
            tasks = "', '".join(FOR_TASKS[name])
            yield f"outcome.{name} is for task='{tasks}' alone"
    for name in ("grid", "horizons"):
        if [*(times := getattr(given, name))] != sorted({*times}):
            yield f"outcome.{name} do not rise"
    if task == "table":
        yield from _curve_problems(given)
        return
    if agreement.model in TABULAR:
        yield from _table_problems(agreement)
    else:
        yield "an [outcome] table goes with a model of coefficients, as 'cox', 'ols' or 'logit'"
    yield from _effect_problems(given) if task == "effect" else _other_problems(given, agreement)
    if given.horizons and (given.stratum or given.strata_by_party):
        yield "outcome.horizons take one baseline, and with strata each has its own"


def _curve_problems(outcome: Outcome) -> Iterator[str]:
    if not (outcome.time and outcome.event and outcome.grid):
        yield "task='table' takes time, event and grid of an [outcome] table, or no such table"
    if outcome.horizons and outcome.horizons[-1] > max(outcome.grid, default=0.0):
        yield "outcome.horizons lie beyond the last time of grid, where nothing is counted"


def _other_problems(given: Outcome, agreement: "Agreement") -> Iterator[str]:
    task, model = agreement.task, agreement.model
    if model == "firth" and given.errors != "model":
        yield "model='firth' takes errors='model'"
    if model == "negative_binomial" and given.weight:
        yield "model='negative_binomial' takes no weight: 'poisson' does, with errors='robust'"
    if given.errors == "party" and 0 < len(agreement.parties) < FEWEST:
        yield f"errors='party' takes {FEWEST} parties or more: from few they are far too small"
    if task == "survival" and not given.event:
        yield "task='survival' needs an [outcome] table with event, and time as the label"


def _effect_problems(given: Outcome) -> Iterator[str]:
    if not given.treatment:
        yield "task='effect' needs an [outcome] table with treatment, a column of 0 and 1"
    if bool(given.event) != bool(given.horizons):
        yield "outcome.event and outcome.horizons of an effect go together"
    if given.event and given.estimators != ("weighting",):
        yield "outcome.event takes estimators=['weighting']: others need every row's whole time"
    if len({*given.estimators}) < len(given.estimators):
        yield "outcome.estimators name one twice"


def _table_problems(agreement: "Agreement") -> Iterator[str]:
    model, n_features = agreement.model, agreement.n_features
    if agreement.dp is not None:
        yield f"model='{model}' takes no [dp]"
    by_rows = agreement.release == "rows"
    if by_rows and agreement.n_components != n_features:
        yield f"model='{model}' takes n_components={n_features}: with fewer, coefficients are wrong"
    if by_rows and agreement.precision not in {"fp64", "fp32"}:
        yield f"model='{model}' takes precision='fp64' or 'fp32': rounding would hide dependence"
    if by_rows and agreement.outcome is not None and agreement.outcome.grid:
        yield "outcome.grid goes with release='sums': of rows times are exact"
    if by_rows and agreement.basis != "haar":
        yield f"model='{model}' takes basis='haar', which every party can make whatever its rows"
    if len(agreement.allowed_models) > 1:
        yield f"model='{model}' stands alone in models: who tries several, prints the luckiest"
    if model in {"logit", "firth"} and len(agreement.classes) != 2:  # noqa: PLR2004 -- odds are of two
        yield f"model='{model}' takes two classes, the second of which is what odds are of"
    some = [each for each in agreement.features if isinstance(each, CategoryFeature)]
    if whole := [each.name for each in some if each.base is None and len(each.levels) > 1]:
        yield f"a table compares levels with a base, and {', '.join(whole)} has none"
