"""A new agreement's fields: from a public example, from words of a command line, and by default."""

import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, cast

import polars as pl
from pydantic import create_model

from cobasis.algorithms.bases import BASES
from cobasis.errors import FeatureError, OptionError
from cobasis.features.contract import (
    CategoryFeature,
    Feature,
    NumericFeature,
    columns_in,
    width_of,
    with_bases,
    word_of,
)
from cobasis.features.encoder import encode
from cobasis.features.maps import Columns, width_under
from cobasis.linalg.arrays import Matrix
from cobasis.models import DEFAULT_MODELS, TABULAR
from cobasis.privacy.audit.counted import BITS, bits_agreed
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.sums_terms import FEWEST_PARTIES, FOR_ROWS
from cobasis.strict_json import findings
from cobasis.tables.cells import BLANKS
from cobasis.tables.sources import source_of
from cobasis.tables.table import DAY

if TYPE_CHECKING:
    from cobasis.models import Task

Features = tuple[Feature, ...]

MAX_WORDS = 1000
FEWEST = 10
"""Rows from which on a table looks like people, and that a word of it needs to become public."""
_MOST = 240  # letters of a list
DIGITS = 3
_TOLD, _DAY = "told by the author", re.compile(r"\d{4}-\d\d-\d\d")

_WIDE = 100
_NARROW = {0.8: "0 to 4.6", 0.4: "0 to 11.2"}
_MANY = {100: "0 to 2.4", 50: "0 to 6.3", 10: "1.7 to 35.1"}
"""Points of accuracy, AUC or R2 below the best l: by its share of the columns, where 25 were
measured (study `ours_bases`, two sets of patients), or by l (`ours_choosing_l`, ten wide tasks)."""


class Example:
    """A public table, of people or a code book, which an agreement's columns are described by."""

    def __init__(self, path: Path) -> None:
        self.path, self._source = path, source_of(path, party="example")
        self.names = self._source.schema.names()

    def _column(self, name: str) -> pl.Series:
        """Return a column's values: as numbers where every text is one, as 61,5 and NA are."""
        found = self._source.collect(pl.col(name))[name]
        if found.dtype == pl.String:
            number = [NumericFeature.model_construct(name=name)]
            source = source_of(self.path, party="example", features=number)
            read = source.collect(pl.col(name))[name]
            found = read if read.dtype.is_numeric() else found.filter(~found.is_in(BLANKS))
        return found.drop_nulls()

    def require(self, name: str, *, word: str) -> None:
        if name and name not in self.names:
            some = shorten(", ".join(self.names), _MOST, placeholder=" and more")
            raise FeatureError(
                f"'{self.path.name}' has no column '{name}' to be the {word} column. It has "
                f"{some}. Name one of them as --{word}, or add the column; it may be empty."
            )

    def looks_like_people(self, id_column: str) -> bool:
        """Whether what is computed of it tells of people; a code book lists a word once."""
        return any(
            len(each) > 0
            if each.name == id_column
            else len(each) >= FEWEST and (each.dtype != pl.String or each.n_unique() < len(each))
            for each in map(self._column, self.names)
        )

    def features(
        self, leave_out: str = "none", *, known: Iterable[str], people: bool, missing: str = ""
    ) -> tuple[Features, tuple[str, ...]]:
        """Describe the other columns, and say which words are too rare to become public."""
        out = words_of(leave_out) if leave_out != "none" else ()
        for each in out:
            self.require(each, word="leave-out")
        found, names, rare = list[Feature](), [], []
        for column in (self._column(x) for x in self.names if x not in {*known, *out}):
            written = column.dtype == pl.String and len(column) > 0
            dates = written and all(map(DAY.fullmatch, column))
            apart = people and FEWEST <= len(column) == column.n_unique()
            if apart and column.dtype.is_float():  # whole numbers tell rows apart, and words
                apart = bool((column == column.round()).all())
            if dates or column.dtype.is_temporal() or apart:
                names.append(column.name)
            elif column.dtype.is_numeric():
                numbers: Any = column.cast(pl.Float64).drop_nans()
                told: dict[str, Any] = constants(numbers.mean(), numbers.std())
                if may_be_empty(column.name, missing):
                    told |= {"missing": "fill", "fill": told["centre"]}
                found.append(NumericFeature(name=column.name, **told))
            else:
                feature, left = _words(column, missing, least=FEWEST if people else 1)
                found.append(feature)
                rare += [f"{column.name}={each}" for each in left]
        if names:
            raise FeatureError(
                f"'{self.path.name}' has dates, or another value in every row, in "
                f"{', '.join(names)}, which names people more than it describes them. Say "
                f"--leave-out {','.join(names)}, or --id, or describe them by --numbers."
            )
        said = {"source": f"{'rows of' if people else 'code book'} {self.path.name}"[:200]}
        return tuple(each.model_copy(update=said) for each in found), tuple(rare)

    def labels(self, label: str) -> tuple[str, ...] | tuple[int, ...]:
        found = self._column(label).unique().to_list()
        if all(isinstance(each, int) for each in found):
            return tuple(sorted(int(each) for each in found))
        return tuple(sorted(str(word_of(each)) for each in found))

    def rows(self, features: Features) -> Matrix:
        columns = columns_in(features)
        source = source_of(self.path, party="example", features=columns)
        table = source.collect(*(pl.col(each.name) for each in columns))
        return encode(table, features, party="example")


def words_of(said: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in said.split(",") if each.strip())


def may_be_empty(name: str, missing: str) -> bool:
    """Whether a column may have empty cells, by what was said of all or by name."""
    return missing == "fill" or name in words_of(missing)


def constants(mean: float | None, spread: float | None) -> dict[str, float]:
    """Return a centre and a scale of few digits, since they become public."""
    centre, scale = (float(f"{each or 0.0:.{DIGITS}g}") for each in (mean, spread))
    return {"centre": centre, "scale": scale or 1.0}


def _words(column: pl.Series, missing: str, *, least: int) -> tuple[CategoryFeature, list[str]]:
    counts = Counter(str(each) for each in column.to_list() if each != "")
    words = sorted(each for each, count in counts.items() if count >= least)
    if not 0 < len(words) <= MAX_WORDS:
        raise FeatureError(
            f"column '{column.name}' of the example has {len(words):,} words that {least} row(s) "
            f"have, and a category has 1 to {MAX_WORDS:,}. Describe it by --numbers or "
            f"--category, or leave it out by --leave-out {column.name}."
        )
    feature = CategoryFeature(
        name=column.name,
        values=tuple(words),
        unknown="other",
        missing="level" if may_be_empty(column.name, missing) else "refuse",
    )
    return feature, sorted({*counts} - {*words})


def components_for(features: Features, *, width: int, precision: str) -> dict[int, str]:
    """Return two candidates for l, with what each lets leave and costs; the smaller one first."""
    if not features:
        return {}
    bits, record = BITS[precision], bits_agreed(columns_in(features))
    usual, under = max(1, min(100, 2 * width // 3)), max(1, ceil(record / bits) - 1)
    prices = _NARROW if width < _WIDE else {least / width: text for least, text in _MANY.items()}
    prices = prices if width == width_of(features) else {}  # of columns
    found = {}
    for size in sorted({usual, min(under, usual)}):
        price = next(
            (text for least, text in prices.items() if size >= least * width), "not measured"
        )
        found[size] = (
            f"{size} of {width} numbers carry {size * bits:,} bits, and {record:,.0f} tell a "
            f"record from all others; points lost, in our studies: {price}"
        )
    return found


def with_levels(features: Features, fields: Mapping[str, Any], *, sums: bool) -> Features:
    """Give categories their bases, and for sums numbers their centre and scale by their range."""
    table = fields.get("task") == "table"
    if sums:
        features = tuple(_ranged(each, filled=table) for each in features)
    if table:
        return features
    centred = is_table(fields) or BASES[fields.get("basis", "svd")].centred
    return with_bases(features, centred=centred)


def is_table(fields: Mapping[str, Any]) -> bool:
    model = fields.get("model") or DEFAULT_MODELS.get(cast("Task", fields.get("task")))
    return model in TABULAR


def _ranged(each: Feature, *, filled: bool) -> Feature:
    """Centre a number on its range where nobody told it a centre; a `filled` one's blanks below."""
    if not isinstance(each, NumericFeature) or each.low is None or each.high in {None, each.low}:
        return each  # the agreement says what is missing
    low, high = each.low, each.high
    told = {"fill": 2 * low - high} if filled and each.fill is not None else {}
    if (each.centre, each.scale) == (0.0, 1.0):
        told |= {"centre": (low + high) / 2, "scale": (high - low) / 2}
    return each.model_copy(update=told)


def draft_fields(given: Mapping[str, Any], *, stem: str) -> dict[str, Any]:
    fields = {name: value for name, value in given.items() if value is not None}
    fields.setdefault("round_id", f"{stem}-{secrets.token_hex(4)}")
    fields.setdefault("threat_model", "semi-honest")
    task = fields.get("task")
    if "sums" in fields:
        if told := [f"--{name.replace('_', '-')}" for name in FOR_ROWS if name in fields]:
            raise OptionError(
                f"Say --sums or {', '.join(told)}, not both: sums are of no projected rows."
            )
        model = {"model": "ridge"} if task in {"classification", "regression"} else {}
        fields = {"minimum_parties": FEWEST_PARTIES, **model, **fields, "release": "sums"}
    if task in DEFAULT_MODELS and task != "representation":
        fields.setdefault("model", DEFAULT_MODELS[cast("Task", task)])
        fields.setdefault("models", (fields["model"],))
    features = fields.get("features")
    if features and "sums" not in fields and fields.get("anchor", "isometric") == "isometric":
        width = width_under(fields.get("map", Columns()), features)
        fields.setdefault("n_anchor_rows", width)
    return fields


def field_of_words(name: str, said: object) -> Any:  # noqa: ANN401 -- as the field is
    """Return what a field of the agreement takes for what was typed; OptionError if nothing."""
    known = Agreement.model_fields[name]
    if name == "deadline" and _DAY.fullmatch(str(said)):
        said = f"{said}T23:59:59Z"  # until its end
    try:
        one = create_model("One", **{name: (known.annotation, known)})  # type: ignore[call-overload]
        return getattr(one(**{name: said}), name)
    except ValueError as error:
        problem = findings(error)[0].removeprefix(f"{name}: ")
    raise OptionError(f"{name} cannot be '{said}': {problem}. Give another.")


@contextmanager
def _reading(option: str, said: str, *, like: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        why = "; ".join(findings(error)[:3])
        raise OptionError(f"{option} {said} cannot be read: {why}. Write it as {like}.") from None


@contextmanager
def terms_of_words(option: str, words: str, *, like: str) -> Iterator[dict[str, Any]]:
    """Give terms by name to whoever makes something of them; OptionError where nothing can be."""
    with _reading(option, words, like=f"{like}; docs/reference/agreement.md lists its terms"):
        yield {**pairs_of(words)}


def numbers_of_words(words: str, missing: str) -> list[NumericFeature]:
    like = "age,pulse or age:centre=60,scale=20,unit=years"
    with _reading("--numbers", words, like=like):
        before, _, constants = words.partition(":")
        names, given = words_of(before), dict[str, Any](pairs_of(constants))
        if not names or {"name", "source"} & {*given}:
            raise ValueError("it has no column before the colon, or a name or source behind it")
        how = given.pop("missing", "fill" if "fill" in given else missing)
        fill = {"missing": "fill", "fill": given.pop("fill", given.get("centre", 0.0))}
        told = [
            {**given, "name": name, "source": _TOLD, **(fill if may_be_empty(name, how) else {})}
            for name in names
        ]
        return [NumericFeature.model_validate(each, strict=False) for each in told]


def pairs_of(words: str) -> dict[str, str]:
    """Return values by name of ``name=value,name=value``; ValueError where a name has two."""
    told = {x.strip(): y.strip() for x, _, y in (z.partition("=") for z in words_of(words))}
    if len(told) < len(words_of(words)):
        raise ValueError("a name stands there twice")
    return told


def category_of_words(words: str, missing: str) -> CategoryFeature:
    name, _, said = words.partition("=")
    with _reading("--category", words, like="sex=female,male"):
        return CategoryFeature(
            name=name.strip(),
            values=words_of(said),
            source=_TOLD,
            missing="level" if may_be_empty(name.strip(), missing) else "refuse",
        )
