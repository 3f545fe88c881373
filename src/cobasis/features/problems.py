"""What is wrong with a party's table, found before anything is made of it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from cobasis.errors import DtypeError
from cobasis.features.contract import UNKNOWN, CategoryFeature, Column, NumericFeature, word_of
from cobasis.features.encoder import SHOWN, is_wordlike, numbers_of, words_of

if TYPE_CHECKING:
    import narwhals as nw

Problem = Literal["absent", "type", "missing", "infinite", "range", "vocabulary", "unused"]
Doubt = Literal["centre", "spread", "blanks", "words"]

_Count = tuple[Problem | Doubt, int, bool, str]

MOST_WORDS = 10_000
"""Different unknown words that are counted; a column with more of them is no category."""

FEWEST, FAR, WIDE, MANY = 10, 3.0, 10.0, 0.05
"""From how many values on a column is asked about, if most of them are more than FAR agreed scales
from the agreed centre, or MANY of them more than WIDE. Of 2,712 columns of honest sites (cancer,
wine, digits, heart disease, intensive care, diabetes; by chance, by label, by hospital) 4 are
asked about; of columns in a unit 10 or 1,000 times too small 84 to 100 %, 10 times too large 27 to
92 %, 1,000 times 65 to 100 %; of 270 shuffled tables all."""

OFF, NARROW = 1.0, 0.1
"""A column whose mean is so many scales off, and whose standard deviation is below this many, is
asked about too: what is written in a much larger unit lies all beside zero."""

_ROUNDED = 1e-9
"""Of a mean's square: below it a variance is what rounding leaves of none."""


@dataclass(frozen=True, kw_only=True)
class ColumnFinding:
    """One thing that was found in one column."""

    column: str
    problem: Problem | Doubt
    refused: bool  # whether the agreement forbids it; else it is told, or asked about
    text: str  # of column and rule alone: it may be printed, logged and sent on
    n_rows: int | None = None  # None where it is about the column
    n_all: int = 0
    # at most five: unknown words of a category, the most frequent first, or text where numbers
    # are agreed
    words: tuple[str, ...] = ()
    agreed: tuple[str, ...] = ()  # the words of a category
    dates: bool = False  # whether dates stand where numbers are agreed

    @property
    def asked(self) -> bool:
        """Whether somebody has to say that the column is right before anything is made of it."""
        return self.problem in get_args(Doubt)

    @property
    def counted(self) -> str:
        """The text with figures and words of the rows, for the party's own screen alone."""
        cells = [] if self.n_rows is None else [f"{self.n_rows:,} of {self.n_all:,} cells"]
        found = [f"found: {_quoted(self.words)}"] if self.words else []
        return f"{self.text} ({'; '.join(cells + found)})" if cells or found else self.text


def _quoted(words: tuple[str, ...]) -> str:
    more = " and others" if len(words) > SHOWN else ""
    return ", ".join(f"'{word}'" for word in words[:SHOWN]) + more


@dataclass
class _Seen:
    """What was counted of one column so far."""

    n_rows: int = 0
    missing: int = 0
    infinite: int = 0
    outside: int = 0
    below: int = 0  # more than FAR scales below the centre
    above: int = 0
    beyond: int = 0  # more than WIDE scales from it
    total: float = 0.0  # of finite values on the agreed scale
    squares: float = 0.0
    unknown: int = 0
    words: Counter[str] = field(default_factory=Counter)
    wrong_type: str = ""


def check(
    frames: Iterable["nw.DataFrame[Any]"],
    features: Iterable[Column],
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
        known = feature.name in seen
        findings += _told(feature, seen[feature.name]) if known else [_absent(feature.name)]
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


def _count(series: "nw.Series[Any]", feature: Column, seen: _Seen) -> None:
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
    finite = numbers[np.isfinite(numbers)]
    seen.outside += int(np.count_nonzero((finite < low) | (finite > high)))
    scaled = (finite - feature.centre) / feature.scale
    seen.below += int(np.count_nonzero(scaled < -FAR))
    seen.above += int(np.count_nonzero(scaled > FAR))
    seen.beyond += int(np.count_nonzero(np.abs(scaled) > WIDE))
    seen.total += float(scaled.sum())
    seen.squares += float(scaled @ scaled)


def _count_words(series: "nw.Series[Any]", feature: CategoryFeature, seen: _Seen) -> None:
    """Count empty cells and unknown words, and keep these words."""
    codes = words_of(series, feature)
    other = len(feature.values) if feature.unknown == "other" else UNKNOWN
    unknown = np.flatnonzero(codes == other)
    seen.missing += int(np.count_nonzero(codes == feature.code(None)))
    seen.unknown += len(unknown)
    if len(unknown) and len(seen.words) < MOST_WORDS:
        cells = series.to_list()
        seen.words.update(str(word_of(cells[row])) for row in unknown)


def _told(feature: Column, seen: _Seen) -> list[ColumnFinding]:
    """Put what was counted of a column into sentences."""
    name, words = feature.name, tuple(word for word, _ in seen.words.most_common(SHOWN))
    if isinstance(feature, NumericFeature):
        needs, counts = "floats, integers or booleans", [*_number_counts(feature, seen)]
    else:
        needs, counts = "text, whole numbers or booleans", [*_word_counts(feature, seen)]
    if seen.wrong_type:
        text = f"column '{name}' is of type {seen.wrong_type}, and agreed are {needs}: convert it"
        return [ColumnFinding(column=name, problem="type", refused=True, text=text)]
    share = feature.blanks_at_most
    if seen.missing == seen.n_rows:
        text = "has no value at all: is it the right column?"
        counts.append(("blanks", seen.missing, False, text))
    elif share is not None and seen.missing > share * seen.n_rows:
        text = f"is empty in more than the agreed {share:.4g} of its cells: is that right?"
        counts.append(("blanks", seen.missing, False, text))
    findings = [
        ColumnFinding(
            column=name,
            problem=problem,
            refused=refused,
            n_rows=n_rows,
            n_all=seen.n_rows,
            words=words if problem in {"vocabulary", "words"} else (),
            agreed=getattr(feature, "values", ()),
            text=f"column '{name}' {text}",
        )
        for problem, n_rows, refused, text in counts
        if n_rows
    ]
    refused = any(each.refused for each in findings)  # it is to be corrected anyway
    return [each for each in findings if not (refused and each.asked)]


def _number_counts(feature: NumericFeature, seen: _Seen) -> Iterator[_Count]:
    """Yield the problems of a number, then its doubts: rows, whether refused, words for it."""
    unit = f" {feature.unit}" if feature.unit else ""
    filled = "" if feature.fill is None else f", and {feature.fill:g}{unit} stands for them"
    low, high = ("" if end is None else f"{end:g}" for end in (feature.low, feature.high))
    yield "missing", seen.missing, feature.missing == "refuse", f"has empty cells{filled}"
    yield "infinite", seen.infinite, True, "has infinite numbers"
    text = f"has numbers outside the agreed range {low}..{high}{unit}"
    yield "range", seen.outside, True, text
    yield from _number_doubts(feature, seen)


def _number_doubts(feature: NumericFeature, seen: _Seen) -> Iterator[_Count]:
    """Yield where most values lie, if it is far from the agreed centre in agreed scales."""
    n = seen.n_rows - seen.missing - seen.infinite
    if n < FEWEST:
        return
    unit = f" {feature.unit}" if feature.unit else ""
    right = "is the unit right, and the column?"
    mean = seen.total / n
    variance = seen.squares / n - mean**2
    side, most = ("below", seen.below) if seen.below > seen.above else ("above", seen.above)
    centre = f"the agreed centre of {feature.centre:g}{unit}"
    constant = variance < _ROUNDED * mean**2  # as an indicator may be that all patients share
    if most > n / 2:
        yield "centre", most, False, f"lies for the most part far {side} {centre}: {right}"
    elif abs(mean) > OFF and variance < NARROW**2 and not constant:
        side = "below" if mean < 0 else "above"
        yield "spread", n, False, f"lies {side} {centre}, and hardly varies: {right}"
    elif seen.beyond > MANY * n:
        scale = f"more than {WIDE:g} times the agreed scale of {feature.scale:g}{unit}"
        yield "spread", seen.beyond, False, f"has many values {scale} from the centre: {right}"


def _word_counts(feature: CategoryFeature, seen: _Seen) -> Iterator[_Count]:
    """Yield the problems of a category, and whether most words are other ones than the agreed."""
    level, other = feature.missing == "level", feature.unknown == "other"
    kept = ", and they have a level of their own" if level else ""
    agreed = _quoted(feature.values)
    counted = ", and they count as any other" if other else f"; agreed: {agreed}"
    yield "missing", seen.missing, not level, f"has empty cells{kept}"
    yield "vocabulary", seen.unknown, not other, f"has words that are not agreed{counted}"
    if seen.unknown > (seen.n_rows - seen.missing) / 2:
        text = f"has for the most part other words than the agreed {agreed}: is it spelt so?"
        yield "words", seen.unknown, False, text
