"""What one experiment is: its cells, what a cell measures, and what the papers print for it."""

import csv
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

Settings = Mapping[str, str | int | float]
"""What tells one cell of a table from the others: ``{"data": "mnist", "condition": ...}``."""

Values = dict[str, float]
"""What a cell measured: ``{"odc/mlp": 95.9, ...}``, in the unit that the paper prints."""

CONDITIONS = ("samespan_orth", "samespan", "diffspan_orth", "diffspan")
"""Of spans, in the order of the papers' tables."""

ORTHONORMAL = ("samespan_orth", "diffspan_orth")  # those whose bases are

SEED = 20261121  # of everything: repeat r of any cell draws from ``[SEED, r]``
STUDIES = Path(__file__).parents[1] / "studies"
PAPERS = STUDIES.with_name("papers")
"""Tables as the papers print them: numbers, with half of their 95 % intervals where these stand."""

ORDER = ("table_", "fig_", "traffic", "v2_", "v1_", "")  # beginnings of names, as readers want them


@dataclass(frozen=True)
class Published:
    value: float
    margin: float | None = None  # half of its 95 % interval, where there is one


def _not_loaded(*_: Any, **__: Any) -> Values:
    raise LookupError("a STUDY has no run of its own; measure what `load` returns")


@dataclass(frozen=True, kw_only=True)
class Study:
    source: str  # which paper prints it; "ours" for what no paper has
    unit: str  # of the values: "accuracy, %"
    cells: Sequence[Settings]  # one repeat of the study
    # `load` takes the next five from the module: of its docstring what it shows, and what is fixed
    # for all cells and left open by the papers, as Markdown; its functions; what `PAPERS` has
    title: str = ""
    settings: str = ""
    run: Callable[..., Values] = _not_loaded  # ``run(**cell, repeat=r)`` measures with one core
    # lines of Markdown from ``{key: repeats}``, of the repeats that every cell has, in their order
    analysis: Callable[[Mapping[str, list[float]]], list[str]] | None = None
    published: Mapping[str, Published] = field(default_factory=dict)
    # why some of our numbers differ, by the beginning of their key; what differs and is not here
    # is listed as open
    explained: Mapping[str, str] = field(default_factory=dict)
    repeats: int = 10  # how many repeats a result that is kept should have
    # whether values are computed rather than measured, so that one repeat is all and has no error
    exact: bool = False
    # patterns (as for file names) of keys whose values no second run repeats, because they are
    # times; values with "seconds" in their name are left out of ``--check`` anyway
    times: Sequence[str] = ()
    # patterns (as for file names) of the names of values that a chart shows; none, no chart
    charted: Sequence[str] = ("*",)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines]


@cache
def printed(study: str) -> Mapping[str, Published]:
    """Return the numbers that the papers print for a study, by `key`.

    A column is a level, which stands where a row's key has ``{}``.
    """
    path = PAPERS / f"{study}.csv"
    if not path.exists():
        return {}
    (_, *levels), *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    return {
        number.replace("{}", level): Published(*map(float, text.split(" ± ")))
        for number, *texts in rows
        for level, text in zip(levels, texts, strict=False)
    }


def printed_variance(table_of: str, number: str, form: str) -> list[str]:
    """Return the F, p and Cohen's f that the papers print of an analysis, or three blanks."""
    found = [printed(table_of).get(f"{number}/{name}") for name in ("F", "p", "f")]
    return [form.format(each.value) if each else "" for each in found]


def key(settings: Settings, value: str) -> str:
    """Return what a number is called: the settings' values and its own name, with slashes."""
    return "/".join([*(f"{each}" for each in settings.values()), value])


def crossed(**levels: Iterable[str | float]) -> list[Settings]:
    """Return a cell for every combination of levels; the last one varies fastest."""
    return [dict(zip(levels, each, strict=True)) for each in product(*levels.values())]


def names() -> list[str]:
    """Return all experiments: the newest paper's, older versions', then ours."""
    found = sorted(path.stem for path in STUDIES.glob("[!_]*.py"))
    return sorted(
        found, key=lambda name: next(i for i, s in enumerate(ORDER) if name.startswith(s))
    )


def load(name: str) -> Study:
    """Return one experiment; ``{X}`` in its docstring stands for what its module calls X."""
    module = importlib.import_module(f"experiments.studies.{name}")
    title, _, settings = (module.__doc__ or "").partition("\n\n")
    told = " ".join(settings.split()).format_map(vars(module))
    study: Study = module.STUDY
    own = {each: vars(module)[each] for each in ("run", "analysis") if each in vars(module)}
    return replace(
        study,
        **own,
        title=title.removesuffix("."),
        settings=told,
        published=study.published or printed(name),
    )
