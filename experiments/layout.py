"""How a study's numbers are laid out: what goes across, what goes down, what goes apart."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from experiments.comparing import Number
from experiments.study import Settings

FOR_ALL = ("any", "none", "all", "pooled", "none: pooled")
"""Levels that say that a setting does not matter for a cell."""

CURVE = 3
"""So many levels make a curve."""

ACROSS = 8
"""Levels that still fit side by side in a table."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which settings go where.

    Attributes
    ----------
    apart : tuple of str
        Each combination of these is a table, or a part of the chart, of its own.
    across : str
        The setting whose levels are columns, or the horizontal axis; "" where there is none.
    levels : tuple
        Of the latter, in the order of the cells.
    down : str
        A setting with more levels than fit side by side; each is a row, and values are columns.
    """

    apart: tuple[str, ...]
    across: str
    levels: tuple[str | int | float, ...]
    down: str = ""

    def heading(self, settings: Settings) -> str:
        """Say which part it is."""
        return ", ".join(_said(name, settings[name]) for name in self.apart if name in settings)


def levels(cells: Iterable[Settings]) -> dict[str, tuple[str | int | float, ...]]:
    """Return the levels of every setting that varies, in their order."""
    found: dict[str, dict[str | int | float, None]] = {}
    for settings in cells:
        for name, value in settings.items():
            found.setdefault(name, {})[value] = None
    return {name: tuple(values) for name, values in found.items() if len(values) > 1}


def layout(cells: Iterable[Settings], *, n_names: float = 1, most: int = ACROSS) -> Layout:
    """Lay cells out in tables: the last setting that varies over few enough levels goes across.

    Where one has more levels, each is a row instead, and a cell's `n_names` values go across; if
    these are too many as well, each level is a table of its own.
    """
    varied = levels(cells)
    fitting = [name for name, values in varied.items() if len(values) <= most]
    many = [name for name in varied if name not in fitting]
    if many and (n_names <= most or not fitting):
        return replace(_layout(varied, many[-1]), across="", down=many[-1])
    return _layout(varied, fitting[-1] if fitting else "")


def charted(cells: Sequence[Settings]) -> Layout:
    """Lay cells out in a chart: numbers that vary are an axis before words are."""
    varied = levels(each for each in cells if not holds_for_all(each))
    varied = varied or levels(cells)
    numeric = [
        name
        for name, values in varied.items()
        if len(values) >= CURVE and not any(isinstance(value, str) for value in values)
    ]
    return _layout(varied, [*varied, *numeric][-1] if varied else "")


def _layout(varied: Mapping[str, tuple[str | int | float, ...]], across: str) -> Layout:
    apart = tuple(name for name in varied if name != across)
    return Layout(apart=apart, across=across, levels=varied.get(across, ()))


def holds_for_all(settings: Settings) -> bool:
    """Tell whether a cell is beside the others, as pooled rows are under any span condition."""
    return any(value in FOR_ALL for value in settings.values())


def parts(found: Sequence[Number], laid: Layout) -> dict[str, list[Number]]:
    """Return the numbers of each table, by its heading."""
    apart: dict[str, list[Number]] = {}
    for each in found:
        apart.setdefault(laid.heading(each.settings), []).append(each)
    return apart


def _said(name: str, value: str | float) -> str:
    """Words stand for themselves, numbers need to be told what they are."""
    return value if isinstance(value, str) else f"{name} = {value:,}"
