"""What is wrong with a party's table, found before anything is made of it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cobasis.errors import DtypeError
from cobasis.features.contract import (
    MISSING,
    UNKNOWN,
    CategoryFeature,
    Feature,
    NumericFeature,
    word_of,
)
from cobasis.features.encoder import SHOWN, is_wordlike, numbers_of, words_of

if TYPE_CHECKING:
    import narwhals as nw

Problem = Literal["absent", "type", "missing", "infinite", "range", "vocabulary", "unused"]

_Count = tuple[Problem, int, bool, str]

MOST_WORDS = 10_000
"""Different unknown words that are counted; a column with more of them is no category."""


@dataclass(frozen=True, kw_only=True)
class ColumnFinding:
    """One thing that was found in one column."""

    column: str
    problem: Problem
    refused: bool  # whether the agreement forbids it; else it is only told
    text: str  # for the party's own screen
    n_rows: int | None = None  # None where it is about the column
    # at most five unknown words of a category, the most frequent first; never a number
    words: tuple[str, ...] = ()


@dataclass
class _Seen:
    """What was counted of one column so far."""

    n_rows: int = 0
    missing: int = 0
    infinite: int = 0
    outside: int = 0
    unknown: int = 0
    words: Counter[str] = field(default_factory=Counter)
    wrong_type: str = ""


def check(
    frames: Iterable["nw.DataFrame[Any]"],
    features: Iterable[Feature],
    *,
    columns: Iterable[str],
    used: Iterable[str] = (),
) -> tuple[ColumnFinding, ...]:
    """Hold a table against features, and count what does not fit."""
    agreed, there, others = list(features), list(columns), list(used)
    seen = {feature.name: _Seen() for feature in agreed if feature.name in there}
    for frame in frames:
        for feature in agreed:
            if feature.name in seen:
                _count(frame.get_column(feature.name), feature, seen[feature.name])
    findings: list[ColumnFinding] = []
    for feature in agreed:
        if feature.name in seen:
            findings += _told(feature, seen[feature.name])
        else:
            findings.append(_absent(feature.name))
    findings += [_absent(name) for name in others if name not in there]
    named = {*others, *(feature.name for feature in agreed)}
    for name in there:
        if name not in named:
            text = f"column '{name}' is not in the agreement: it is not read, and never leaves"
            findings.append(ColumnFinding(column=name, problem="unused", refused=False, text=text))
    return tuple(findings)


def _absent(name: str) -> ColumnFinding:
    text = f"column '{name}' is agreed on, and the table has none of that name"
    return ColumnFinding(column=name, problem="absent", refused=True, text=text)


def _count(series: "nw.Series[Any]", feature: Feature, seen: _Seen) -> None:
    """Count what one batch has of one column."""
    seen.n_rows += len(series)
    if isinstance(feature, CategoryFeature):
        if series.null_count() < len(series) and not is_wordlike(series.dtype):
            seen.wrong_type = str(series.dtype)
        else:
            _count_words(series, feature, seen)
        return
    try:
        numbers = numbers_of(series, what="the table")
    except DtypeError:
        seen.wrong_type = str(series.dtype)
        return
    low = -np.inf if feature.low is None else feature.low
    high = np.inf if feature.high is None else feature.high
    seen.missing += int(np.count_nonzero(np.isnan(numbers)))
    seen.infinite += int(np.count_nonzero(np.isinf(numbers)))
    outside = np.isfinite(numbers) & ((numbers < low) | (numbers > high))
    seen.outside += int(np.count_nonzero(outside))


def _count_words(series: "nw.Series[Any]", feature: CategoryFeature, seen: _Seen) -> None:
    """Count empty cells and unknown words, and keep these words."""
    codes = words_of(series, feature)
    other = len(feature.values) if feature.unknown == "other" else UNKNOWN
    empty = len(feature.levels) - 1 if feature.missing == "level" else MISSING
    unknown = np.flatnonzero(codes == other)
    seen.missing += int(np.count_nonzero(codes == empty))
    seen.unknown += len(unknown)
    if len(unknown) and len(seen.words) < MOST_WORDS:
        cells = series.to_list()
        seen.words.update(str(word_of(cells[row])) for row in unknown)


def _told(feature: Feature, seen: _Seen) -> list[ColumnFinding]:
    """Put what was counted of a column into sentences."""
    name, words = feature.name, tuple(word for word, _ in seen.words.most_common(SHOWN))
    if isinstance(feature, NumericFeature):
        needs, counts = "numbers that float64 holds", _number_counts(feature, seen)
    else:
        needs, counts = "text, whole numbers or booleans", _word_counts(feature, seen, words)
    if seen.wrong_type:
        text = f"column '{name}' is of type {seen.wrong_type}, and {needs} are agreed on"
        return [ColumnFinding(column=name, problem="type", refused=True, text=text)]
    return [
        ColumnFinding(
            column=name,
            problem=problem,
            refused=refused,
            n_rows=n_rows,
            words=words if problem == "vocabulary" else (),
            text=f"{n_rows:,} of {seen.n_rows:,} cells of column '{name}' {text}",
        )
        for problem, n_rows, refused, text in counts
        if n_rows
    ]


def _number_counts(feature: NumericFeature, seen: _Seen) -> list[_Count]:
    """Return for each problem of a number: rows, whether it is refused, and the words for it."""
    unit = f" {feature.unit}" if feature.unit else ""
    filled = "" if feature.fill is None else f", and {feature.fill:g}{unit} stands for them"
    low, high = ("" if end is None else f"{end:g}" for end in (feature.low, feature.high))
    return [
        ("missing", seen.missing, feature.missing == "refuse", f"are empty{filled}"),
        ("infinite", seen.infinite, True, "are infinite"),
        ("range", seen.outside, True, f"are outside the agreed range {low}..{high}{unit}"),
    ]


def _word_counts(feature: CategoryFeature, seen: _Seen, words: tuple[str, ...]) -> list[_Count]:
    """Return the same for each problem of a category."""
    level, other = feature.missing == "level", feature.unknown == "other"
    kept = ", and have a level of their own" if level else ""
    counted = ", and count as any other" if other else ""
    shown = ", ".join(f"'{word}'" for word in words)
    return [
        ("missing", seen.missing, not level, f"are empty{kept}"),
        ("vocabulary", seen.unknown, not other, f"are not agreed words{counted}: {shown}"),
    ]
