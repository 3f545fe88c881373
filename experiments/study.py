"""What one experiment is: its cells, what a cell measures, and what the papers print for it."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Settings = Mapping[str, str | int | float]
"""What tells one cell of a table from the others: ``{"data": "mnist", "condition": ...}``."""

Values = dict[str, float]
"""What a cell measured: ``{"odc/mlp": 95.9, ...}``, in the unit that the paper prints."""

SEED = 20261121
"""Of everything: repeat r of any cell draws from ``[SEED, r]``."""

STUDIES = Path(__file__).parent / "studies"

ORDER = ("table_", "fig_", "traffic", "v2_", "v1_", "")
"""Beginnings of names, as readers want them."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """A number that a paper prints.

    Attributes
    ----------
    value : float
        As printed.
    margin : float or None
        Half of its 95 % interval, where there is one.
    """

    value: float
    margin: float | None = None


@dataclass(frozen=True, kw_only=True)
class Study:
    """One table or figure.

    Attributes
    ----------
    title : str
        "Table 7, images", with what it shows.
    source : str
        Which paper prints it; "ours" for what no paper has.
    settings : str
        What is fixed for all cells, and which of it the papers leave open: Markdown.
    unit : str
        Of the values: "accuracy, %".
    cells : sequence of Settings
        One repeat of the study.
    run : callable
        ``run(settings, repeat=r)`` measures one cell. It has one core.
    published : mapping of str to Published
        By ``key(settings, value's name)``.
    explained : mapping of str to str
        Why some of our numbers differ, by the beginning of their key; what differs and is not
        here is listed as open.
    repeats : int
        How many repeats a result that is kept should have.
    more : bool
        Whether larger values are better.
    analysis : callable or None
        Markdown lines from ``{key: repeats}``, for tests over many numbers; only repeats that
        every cell has, in their order.
    exact : bool
        Whether values are computed rather than measured, so that one repeat has no error.
    times : sequence of str
        Patterns (as for file names) of keys whose values no second run repeats, because they are
        times; values with "seconds" in their name are left out of ``--check`` anyway.
    charted : sequence of str
        Patterns (as for file names) of the names of values that a chart shows; none, no chart.
    round_of : callable or None
        A name for what several cells of a repeat share, as a round's uploads: one process
        measures them one after another, and `experiments.uploads.kept` keeps what they share.
    """

    title: str
    source: str
    settings: str
    unit: str
    cells: Sequence[Settings]
    run: Callable[..., Values]
    published: Mapping[str, Published] = field(default_factory=dict)
    explained: Mapping[str, str] = field(default_factory=dict)
    repeats: int = 10
    more: bool = True
    analysis: Callable[[Mapping[str, list[float]]], list[str]] | None = None
    exact: bool = False
    times: Sequence[str] = ()
    charted: Sequence[str] = ("*",)
    round_of: Callable[[Settings], str] | None = None

    def shared(self, settings: Settings) -> str:
        """Return the name of what a cell shares with others, or nothing."""
        return self.round_of(settings) if self.round_of else ""


def in_columns(
    printed: Mapping[str, Sequence[float]], columns: Sequence[str], *, start: str = ""
) -> dict[str, Published]:
    """Return the numbers of a printed table.

    Parameters
    ----------
    printed : mapping of str to sequence of float
        By row: value and margin, column after column.
    columns : sequence of str
        What stands before the row's name in a number's key.
    start : str
        What stands before the column's.
    """
    return {
        f"{start}{column}/{row}": Published(value=value, margin=margin)
        for row, numbers in printed.items()
        for column, value, margin in zip(columns, numbers[::2], numbers[1::2], strict=True)
    }


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
    """Return one experiment."""
    study: Study = importlib.import_module(f"experiments.studies.{name}").STUDY
    return study
