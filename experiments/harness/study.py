"""What one experiment is: its cells, what a cell measures, and what the papers print for it."""

import csv
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

Settings = Mapping[str, str | int | float]
"""What tells one cell of a table from the others: ``{"data": "mnist", "condition": ...}``."""

Values = dict[str, float]
"""What a cell measured: ``{"odc/mlp": 95.9, ...}``, in the unit that the paper prints."""

CONDITIONS = ("samespan_orth", "samespan", "diffspan_orth", "diffspan")
"""Of spans, in the order of the papers' tables."""

SEED = 20261121  # of everything: repeat r of any cell draws from ``[SEED, r]``
STUDIES = Path(__file__).parents[1] / "studies"
PAPERS = STUDIES.with_name("papers.csv")
"""Every number that the papers print and that a study has, with half of its 95 % interval."""

ORDER = ("table_", "fig_", "traffic", "v2_", "v1_", "")  # beginnings of names, as readers want them


@dataclass(frozen=True)
class Published:
    """A number that a paper prints."""

    value: float
    margin: float | None = None  # half of its 95 % interval, where there is one


@dataclass(frozen=True, kw_only=True)
class Study:
    """One table or figure."""

    source: str  # which paper prints it; "ours" for what no paper has
    unit: str  # of the values: "accuracy, %"
    cells: Sequence[Settings]  # one repeat of the study
    run: Callable[..., Values]  # ``run(settings, repeat=r)`` measures one cell. It has one core
    title: str = (
        ""  # `load` takes both from the module's docstring: what it shows, and, as Markdown,
    )
    settings: str = ""  # what is fixed for all cells and which of it the papers leave open
    published: Mapping[str, Published] = field(
        default_factory=dict
    )  # `load` takes it from `PAPERS`
    # why some of our numbers differ, by the beginning of their key; what differs and is not here
    # is listed as open
    explained: Mapping[str, str] = field(default_factory=dict)
    repeats: int = 10  # how many repeats a result that is kept should have
    # markdown lines from ``{key: repeats}``, for tests over many numbers; only repeats that every
    # cell has, in their order
    analysis: Callable[[Mapping[str, list[float]]], list[str]] | None = None
    # whether values are computed rather than measured, so that one repeat is all and has no error
    exact: bool = False
    # patterns (as for file names) of keys whose values no second run repeats, because they are
    # times; values with "seconds" in their name are left out of ``--check`` anyway
    times: Sequence[str] = ()
    # patterns (as for file names) of the names of values that a chart shows; none, no chart
    charted: Sequence[str] = ("*",)
    # A name for what several cells of a repeat share, as a round's uploads: one process measures
    # them one after another, and `experiments.harness.uploads.kept` keeps what they share
    round_of: Callable[[Settings], str] | None = None

    def shared(self, settings: Settings) -> str:
        """Return the name of what a cell shares with others, or nothing."""
        return self.round_of(settings) if self.round_of else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines]


@cache
def _all_printed() -> dict[str, dict[str, Published]]:
    found: dict[str, dict[str, Published]] = {}
    with PAPERS.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            margin = float(line["margin"]) if line["margin"] else None
            number = Published(float(line["value"]), margin)
            found.setdefault(line["study"], {})[line["number"]] = number
    return found


def printed(study: str) -> Mapping[str, Published]:
    """Return the numbers that the papers print for a study, by `key`."""
    return _all_printed().get(study, {})


def printed_variance(table_of: str, number: str, form: str) -> list[str]:
    """Return the F, p and Cohen's f that the papers print of an analysis, or three blanks."""
    found = [printed(table_of).get(f"{number}/{name}") for name in ("F", "p", "f")]
    return [form.format(each.value) if each else "" for each in found]


def key(settings: Settings, value: str) -> str:
    """Return what a number is called: the settings' values and its own name, with slashes."""
    return "/".join([*(f"{each}" for each in settings.values()), value])


def but(name: str) -> Callable[[Settings], str]:
    """Return the `Study.round_of` of cells that share a round where only one setting differs."""
    return lambda settings: key({k: v for k, v in settings.items() if k != name}, "")


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
    return replace(
        study,
        title=title.removesuffix("."),
        settings=told,
        published=study.published or printed(name),
    )
