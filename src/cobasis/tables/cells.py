"""What a file's cells mean: its letters, separators and decimal marks, blanks, and a mapping."""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any
from unicodedata import normalize

import polars as pl

from cobasis.disk.whole import Stamp, opened
from cobasis.errors import TableError
from cobasis.features.contract import CategoryFeature, Column, day_in
from cobasis.features.mapping import AS_AGREED, ColumnMapping
from cobasis.features.mapping import Mapping as TableMapping

BLANKS = frozenset(
    ["NA", "<NA>", "#N/A", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "."]
)  # of R, pandas, spreadsheets, databases and SAS
SEPARATORS = ",;\t|"
INFERRED_ROWS = 10_000  # rows of a CSV file from which its columns' types are guessed

_SAMPLE = 2**16  # bytes that separators and decimal marks are told by
_EXPONENT = r"([eE][-+]?\d+)?$"
_MARKS = {
    ",": (r"^[-+]?\d*,\d+" + _EXPONENT, r"^[-+]?[1-9]\d{0,2}(,\d{3})+$"),
    ".": (r"^[-+]?\d*\.\d+" + _EXPONENT, r"^[-+]?[1-9]\d{0,2}(\.\d{3})+$"),
}  # a number with one, and one that may have it between thousands


@dataclass(frozen=True)
class Dialect:
    separator: str
    encoding: str

    def scan(self, path: Path, types: Mapping[str, Any] | None = None) -> pl.LazyFrame:
        """Return the file's cells; what is not in UTF-8 is held in memory in it."""
        source: Path | bytes = path.absolute()  # polars takes ~ for the home folder
        if self.encoding != "utf-8":
            source = path.read_bytes().decode(self.encoding).encode()
        told: Any = {"infer_schema_length": INFERRED_ROWS, "schema_overrides": types}
        # no glob: the name ward[1].csv is not a pattern that ward1.csv fits
        return pl.scan_csv(source, separator=self.separator, glob=False, **told)


@lru_cache(maxsize=8)
def dialect_of(path: Path, stamp: Stamp, *, what: str) -> Dialect:  # noqa: ARG001 -- a changed file is read anew
    with opened(path) as (file, _):
        head = file.read(_SAMPLE) or b""
    text = head.decode(errors="surrogateescape").removeprefix("\ufeff")
    if "\0" in text:
        raise TableError(
            f"{what} looks like a sheet, an archive or UTF-16. Save it as CSV in UTF-8."
        )
    lines = text.splitlines()[: None if len(head) < _SAMPLE else -1]
    by = {each: [row for row in csv.reader(lines, delimiter=each) if row] for each in SEPARATORS}
    found = [each for each, rows in by.items() if rows and len(rows[0]) > 1]
    if len(found) > 1:  # in quoted names another than the right one parts rows unevenly
        found = [each for each in found if len({len(row) for row in by[each]}) == 1]
        if len(found) != 1:
            raise TableError(
                f"{what} has several separators in its first line, and it cannot be told which "
                "parts the cells. Save it with one, and quote names that hold another; nothing of "
                "it was used."
            )
    separator = found[0] if found else ","
    names, *rows = by[separator] or [[]]
    if rows and rows[0] == names and len(names) > 1:
        raise TableError(f"{what} names its columns twice, in the first two lines. Leave one out.")
    for encoding in ("utf-8", "cp1252"):  # with it, Latin-1
        try:  # to its end, for one letter may be far down
            _refuse_ragged(path, dialect := Dialect(separator, encoding), what=what)
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data":
                break
        else:
            return dialect
    raise TableError(
        f"{what} has a byte that is no letter, or ends in half of one, so its letters cannot "
        "be told. Save it as CSV in UTF-8; nothing of it was used."
    )


def _refuse_ragged(path: Path, dialect: Dialect, *, what: str) -> None:
    """Raise TableError at the first line that has another number of fields, or only empty ones.

    polars takes a line that ends too early for one with empty cells, and an empty line for a row.
    """
    # only there polars ends a line; a carriage return by itself is an error of csv's then
    with path.open(newline="\n", encoding=dialect.encoding) as file:
        csv.field_size_limit(2**31 - 1)  # a cell may be longer than the module's 131,072
        rows, problem = csv.reader(file, delimiter=dialect.separator), ""
        width = ended = 0
        try:
            for row in rows:
                width = width or len(row)
                if any(row) and len(row) != width:
                    problem = "has another number of fields than the first"
                elif not any(row) and width > 1:
                    problem = "is empty"
                if problem:
                    break
                ended = rows.line_num
        except csv.Error:
            problem = "has a carriage return by itself, which ends a line to some programs alone"
        if problem:
            if rows.line_num > ended + 1:
                problem += f", and ends in line {rows.line_num}, as where a quote is not closed"
            raise TableError(
                f"{what} cannot be read: line {ended + 1} {problem}. Correct the file; "
                "nothing of it was used."
            )


def _plain(name: str) -> str:
    return normalize("NFC", name).strip().casefold()


def _days(day: pl.Expr, since: date) -> pl.Expr:
    # a cast to pl.Date would take UTC's day
    return (day.dt.date() - pl.lit(since)).dt.total_days().cast(pl.Float64)


def _words(column: pl.Expr, feature: CategoryFeature, step: ColumnMapping) -> pl.Expr:
    blanks = (BLANKS | {*step.blanks}) - {*feature.values, *step.words}
    known = {*feature.values, *step.words, *step.blanks}
    whole = {f"{each}.0": each for each in known if each.lstrip("-").isdigit()}
    alike = {own: each for own, each in whole.items() if own not in known}
    said = column.cast(pl.String).replace(list(alike), list(alike.values()))
    said = pl.when(~said.is_in(sorted(blanks))).then(said)
    return said.replace(list(step.words), list(step.words.values()))


def _scaled(number: pl.Expr, step: ColumnMapping, *, single: bool = False) -> pl.Expr:
    """Return numbers in the agreed unit; nothing for those that stand for no value."""
    one = [each for each in step.blanks if not re.match(_MARKS[","][1], each)]  # not 1,234
    said = pl.Series([each.replace(",", ".") for each in one], dtype=pl.String)
    found = said.cast(pl.Float64, strict=False).drop_nulls()
    blanks = found.cast(pl.Float32 if single else pl.Float64).to_list()  # rounded as the cells are
    scaled = number * step.factor if step.factor != 1 else number  # or integers would be rounded
    return pl.when(~number.cast(pl.Float64).is_in(blanks)).then(scaled)


def _seen(
    frame: pl.LazyFrame, cells: Mapping[tuple[str, str], pl.Expr]
) -> dict[tuple[str, ...], bool]:
    """Return, by mark and column, whether some number has the mark, and some as decimal only."""
    asked: dict[tuple[str, ...], pl.Expr] = {}
    for (mark, name), text in cells.items():
        number, groups = (text.str.contains(each) for each in _MARKS[mark])
        asked["some", mark, name], asked["only", mark, name] = number | groups, number & ~groups
    found = frame.select(each.any().alias(str(at)) for at, each in enumerate(asked.values()))
    rows = found.collect(engine="streaming").rows() if asked else [()]
    return dict(zip(asked, rows[0], strict=True))


Texts = dict[str, tuple[pl.Expr, date | None, ColumnMapping]]
"""Columns of text that are to be numbers: their cells, the day that is counted from, the steps."""


@dataclass(frozen=True, kw_only=True)
class AgreedColumns:
    features: Sequence[Column]
    mapping: TableMapping
    lenient: bool  # a bad cell is infinite, and stops nothing
    what: str
    dialect: Dialect | None  # None for Parquet, whose text is no number

    def own(self, found: Sequence[str]) -> dict[str, str]:
        """Return the file's name of each column: as mapped, the same, or but for its case."""
        by_case: dict[str, list[str]] = {}
        for name in found:
            by_case.setdefault(_plain(name), []).append(name)
        own, steps = {}, self.mapping.root
        taken = {steps.get(each.name, AS_AGREED).column or each.name for each in self.features}
        for name in (each.name for each in self.features):
            alike = by_case.get(_plain(name), [])
            same = alike[0] if len(alike) == 1 and alike[0] not in taken else name
            mapped = steps.get(name, AS_AGREED).column
            own[name] = mapped or same
            problem = f"no column '{mapped}', which your mapping takes for '{name}'"
            if f"{own[name]}_duplicated_0" in found:  # as polars calls the second
                problem = f"several columns '{own[name]}', and it cannot be told which is meant"
            elif not mapped or mapped in found:
                continue
            raise TableError(f"{self.what} has {problem}. Rename one; nothing of it was used.")
        return {name: each for name, each in own.items() if each in found}

    def of(self, frame: pl.LazyFrame, *, own: Mapping[str, str]) -> pl.LazyFrame:
        """Return a file's columns as what is agreed, under these names; others as they are.

        Numbers that a CSV file has as text become numbers where every cell is one. Of a column
        that has other cells these are kept, and nothing else.
        """
        schema = frame.collect_schema()
        made: dict[str, pl.Expr] = {}
        texts: Texts = {}
        for each in (each for each in self.features if each.name in own):
            name, step = own[each.name], self.mapping.root.get(each.name, AS_AGREED)
            column, kind = pl.col(name), schema[name]
            since = step.days_since or day_in(getattr(each, "unit", ""))  # of a column of dates
            if isinstance(each, CategoryFeature) and (
                kind == pl.String or step.words or step.blanks
            ):
                made[name] = _words(column, each, step)
            elif kind == pl.String and self.dialect:
                text, none = column.str.strip_chars(), sorted({*BLANKS, *step.blanks, ""})
                texts[name] = pl.when(~text.is_in(none)).then(text), since, step
            elif kind in (pl.Date, pl.Datetime) and since is not None:
                blank = column.dt.to_string("%Y-%m-%d").is_in(step.blanks)
                made[name] = _days(pl.when(~blank).then(column), since) * step.factor
            else:
                scaled = kind.is_numeric() and (step.factor != 1 or step.blanks)
                single = kind == pl.Float32
                made[name] = _scaled(column, step, single=single) if scaled else column
        if texts:
            made |= self._numbers(frame, texts, points=any(schema[x].is_float() for x in made))
        agreed = {name: each for each, name in own.items()}
        return frame.select(
            made.get(name, pl.col(name)).alias(agreed.get(name, name))
            for name in schema
            if name in agreed or name not in own
        )

    def _numbers(self, frame: pl.LazyFrame, texts: Texts, *, points: bool) -> dict[str, pl.Expr]:
        """Return columns of text as numbers, or days, where every cell is one.

        Among days a number is none: 2020 would be a day of 2005.
        """
        comma = self._decimal_comma(frame, texts, points=points)
        made, bad = {}, {}
        for name, (text, since, step) in texts.items():
            plain = text.str.replace(",", ".", literal=True) if comma else text
            number = plain.cast(pl.Float64, strict=False)
            wrong, made[name] = text.is_not_null() & number.is_null(), _scaled(number, step)
            if since is not None:
                days = [text.str.to_date(form, strict=False) for form in ("%Y-%m-%d", "%d.%m.%Y")]
                days.append(text.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False))
                day = pl.when(text.str.contains(r"\d{4}")).then(pl.coalesce(days))  # not 31.12.26
                wrong &= day.is_null()
                wrong |= number.is_not_null() & (day.count() > 0)
                made[name] = pl.coalesce(made[name], _days(day, since) * step.factor)
            bad[name] = pl.when(wrong).then(plain)
        if self.lenient:
            fine = {name: each.is_null() for name, each in bad.items()}
            return {x: pl.when(fine[x]).then(each).otherwise(inf) for x, each in made.items()}
        found = frame.select(each.count().alias(name) for name, each in bad.items())
        n_bad = found.collect(engine="streaming").row(0, named=True)
        return {name: bad[name] if n_bad[name] else each for name, each in made.items()}

    def _decimal_comma(self, frame: pl.LazyFrame, texts: Texts, *, points: bool) -> bool:
        """Whether numbers in columns of text have a decimal comma; TableError where it is unclear.

        Other columns have decimal `points`, or have not. Beside semicolons points may part, too.
        """
        cells = {(mark, name): text for name, (text, _, _) in texts.items() for mark in _MARKS}
        seen = _seen(frame.head(INFERRED_ROWS), cells)  # what these show is not looked for in all
        seen |= _seen(frame, {x: text for x, text in cells.items() if not seen["only", *x]})
        commas, pointed = ([x for x in texts if seen["some", mark, x]] for mark in _MARKS)
        reason, parts = "", self.dialect and self.dialect.separator == ";" and not points
        if commas and (points or pointed):
            reason = "numbers with a decimal comma, and others with a decimal point"
        elif commas and not any(seen["only", ",", name] for name in commas):
            reason = "numbers like 1,234 alone, whose comma may be decimal or part thousands"
        elif pointed and parts and not any(seen["only", ".", name] for name in pointed):
            reason = "numbers like 1.234 alone, whose point may be decimal or part thousands"
        if reason:
            where = " and ".join(f"'{name}'" for name in [*commas[:1], *pointed[:1]])
            raise TableError(
                f"{self.what} has {reason} (in {where}), so they cannot be told apart. Write all "
                "in one way, without marks between thousands, and decimals with other than three "
                "digits (1.2340); nothing of it was used."
            )
        return bool(commas)
