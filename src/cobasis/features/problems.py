"""What is wrong with a party's table, found before anything is made of it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from cobasis.errors import DtypeError
from cobasis.features.contract import UNKNOWN, CategoryFeature, Column, NumericFeature, word_of
from cobasis.features.encoder import SHOWN, is_wordlike, numbers_of, quoted, words_of

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
        found = [f"found: {quoted(self.words)}"] if self.words else []
        return f"{self.text} ({'; '.join(cells + found)})" if cells or found else self.text


@dataclass
class _Seen:
    n_rows: int = 0
    # cells that are missing, infinite, outside the range, or unknown words; and values more than
    # FAR scales below or above the centre, or more than WIDE beyond it
    counts: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    total: float = 0.0  # of finite values on the agreed scale
    squares: float = 0.0
    wrong_type: str = ""


def check(
    frames: Iterable["nw.DataFrame[Any]"],
    features: Iterable[Column],
    *,
    columns: Iterable[str],
    used: Iterable[str] = (),
) -> tuple[ColumnFinding, ...]:
    agreed = {feature.name: feature for feature in features}
    there, wanted = list(columns), [*agreed, *used]
    seen = {name: _Seen() for name in agreed if name in there}
    for frame in frames:
        for name, found in seen.items():
            _count(frame.get_column(name), agreed[name], found)
    findings: list[ColumnFinding] = []
    for name in wanted:
        if name in seen:
            findings += _told(agreed[name], seen[name])
        elif name not in there:
            text = f"column '{name}' is agreed on, and the table has none of that name"
            findings.append(ColumnFinding(column=name, problem="absent", refused=True, text=text))
    for name in there:
        if name not in wanted:
            text = f"column '{name}' is not in the agreement: it is not read, and never leaves"
            findings.append(ColumnFinding(column=name, problem="unused", refused=False, text=text))
    return tuple(findings)


def _count(series: "nw.Series[Any]", feature: Column, seen: _Seen) -> None:
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
    finite = numbers[np.isfinite(numbers)]
    scaled = (finite - feature.centre) / feature.scale
    found = {
        "missing": np.isnan(numbers),
        "infinite": np.isinf(numbers),
        "outside": (finite < low) | (finite > high),
        "below": scaled < -FAR,
        "above": scaled > FAR,
        "beyond": np.abs(scaled) > WIDE,
    }
    seen.counts.update({what: int(np.count_nonzero(rows)) for what, rows in found.items()})
    seen.total += float(scaled.sum())
    seen.squares += float(scaled @ scaled)


def _count_words(series: "nw.Series[Any]", feature: CategoryFeature, seen: _Seen) -> None:
    codes = words_of(series, feature)
    other = len(feature.values) if feature.unknown == "other" else UNKNOWN
    unknown = np.flatnonzero(codes == other)
    missing = int(np.count_nonzero(codes == feature.code(None)))
    seen.counts.update(missing=missing, unknown=len(unknown))
    if len(unknown) and len(seen.words) < MOST_WORDS:
        cells = series.to_list()
        seen.words.update(str(word_of(cells[row])) for row in unknown)


def _told(feature: Column, seen: _Seen) -> list[ColumnFinding]:
    name, words = feature.name, tuple(word for word, _ in seen.words.most_common(SHOWN))
    if isinstance(feature, NumericFeature):
        needs, counts = "floats, integers or booleans", [*_number_counts(feature, seen)]
    else:
        needs, counts = "text, whole numbers or booleans", [*_word_counts(feature, seen)]
    if seen.wrong_type:
        text = f"column '{name}' is of type {seen.wrong_type}, and agreed are {needs}: convert it"
        return [ColumnFinding(column=name, problem="type", refused=True, text=text)]
    missing, share = seen.counts["missing"], feature.blanks_at_most
    if missing == seen.n_rows:
        text = "has no value at all: is it the right column?"
        counts.append(("blanks", missing, False, text))
    elif share is not None and missing > share * seen.n_rows:
        text = f"is empty in more than the agreed {share:.4g} of its cells: is that right?"
        counts.append(("blanks", missing, False, text))
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
    """Yield the problems of a number, then its doubts: rows, whether refused, words for it.

    A doubt is where most values lie, if it is far from the agreed centre in agreed scales.
    """
    unit = f" {feature.unit}" if feature.unit else ""
    filled = ", and they are counted as blank" if feature.missing == "fill" else ""
    if feature.fill is not None:
        filled = f", and {feature.fill:g}{unit} stands for them"
    low, high = ("" if end is None else f"{end:g}" for end in (feature.low, feature.high))
    counts = seen.counts
    yield "missing", counts["missing"], feature.missing == "refuse", f"has empty cells{filled}"
    yield "infinite", counts["infinite"], True, "has infinite numbers"
    text = f"has numbers outside the agreed range {low}..{high}{unit}"
    yield "range", counts["outside"], True, text
    n = seen.n_rows - counts["missing"] - counts["infinite"]
    if n < FEWEST:
        return
    right = "is the unit right, and the column?"
    mean = seen.total / n
    variance = seen.squares / n - mean**2
    side = max(("below", "above"), key=counts.__getitem__)
    centre = f"the agreed centre of {feature.centre:g}{unit}"
    constant = variance < _ROUNDED * mean**2  # as an indicator may be that all patients share
    if counts[side] > n / 2:
        text = f"lies for the most part far {side} {centre}: {right}"
        yield "centre", counts[side], False, text
    elif abs(mean) > OFF and variance < NARROW**2 and not constant:
        side = "below" if mean < 0 else "above"
        yield "spread", n, False, f"lies {side} {centre}, and hardly varies: {right}"
    elif counts["beyond"] > MANY * n:
        scale = f"more than {WIDE:g} times the agreed scale of {feature.scale:g}{unit}"
        text = f"has many values {scale} from the centre: {right}"
        yield "spread", counts["beyond"], False, text


def _word_counts(feature: CategoryFeature, seen: _Seen) -> Iterator[_Count]:
    level, other = feature.missing == "level", feature.unknown == "other"
    kept = ", and they have a level of their own" if level else ""
    missing, unknown = seen.counts["missing"], seen.counts["unknown"]
    agreed = quoted(feature.values)
    counted = ", and they count as any other" if other else f"; agreed: {agreed}"
    yield "missing", missing, not level, f"has empty cells{kept}"
    yield "vocabulary", unknown, not other, f"has words that are not agreed{counted}"
    if unknown > (seen.n_rows - missing) / 2:
        text = f"has for the most part other words than the agreed {agreed}: is it spelt so?"
        yield "words", unknown, False, text
