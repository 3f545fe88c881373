"""Where a party's rows come from: a file or a frame, opened, and held against what is agreed."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from cobasis.disk.whole import Stamp, refuse_changed, stamp_of
from cobasis.errors import DtypeError, LabelError, OptionError, TableError
from cobasis.features.contract import CategoryFeature, Column
from cobasis.features.encoder import as_frame, is_wordlike, refuse_names
from cobasis.features.mapping import Mapping as TableMapping
from cobasis.tables.cells import AgreedColumns, Dialect, dialect_of

PARQUET, CSV = (".parquet", ".pq"), (".csv",)
SMALL_BYTES = 2**20  # of a CSV file that is read once: each of some twenty looks costs more
PART_ROWS, PART_CELLS = 2**18, 2**25
"""The most that is read of a Parquet file at a time.

Less costs time: a row group, in polars' files 2**18 rows, is unpacked anew for each part.
"""

SLICES, LEAST_COLUMNS = 32, 16
"""In how many slices a part's columns are read, one after the other, none of fewer columns.

polars may hold a row group's bytes of all columns that it is asked for, however few the rows.
"""

Part = tuple[int, pl.DataFrame]  # some rows, after the number of the first


@dataclass(frozen=True, kw_only=True)
class Source:
    frame: pl.LazyFrame = field(repr=False)
    what: str  # what to call it in an error, with the party's name
    path: Path | None = None  # None for a frame in memory
    stamp: Stamp | None = None  # what the file was when it was opened
    dialect: Dialect | None = None  # how a CSV file is written
    # columns of a CSV file that look like integers, and become float64
    integers: frozenset[str] = frozenset()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Say what a failure to read means, without a value from the table."""
        try:
            yield
        except (pl.exceptions.PolarsError, OSError) as error:
            self.refuse_changed()
            raise TableError(
                f"{self.what} cannot be read to its end ({type(error).__name__}): it is empty, "
                "truncated, damaged or still being written, or a cell far down is of another type "
                "than those above. Make it again; nothing of it was used."
            ) from None
        self.refuse_changed()

    @property
    def schema(self) -> pl.Schema:
        with self.reading():
            return self.frame.collect_schema()

    def refuse_changed(self) -> None:
        if self.path is not None and self.stamp is not None:
            refuse_changed(stamp_of(self.path), self.stamp, what=self.what)

    def parts(self, names: Sequence[str], *, n_rows: int, batch: int) -> Iterator[Part]:
        """Go through the table, `batch` rows at a time; of a Parquet file more are read at once."""
        chosen, start = self.frame.select(names), 0
        if self.path is None or self.dialect is not None:
            with self.reading():
                for frame in chosen.collect_batches(chunk_size=batch, lazy=True):
                    yield start, frame
                    start += frame.height
            return
        size = min(PART_ROWS, max(2**8, 2 ** int(np.log2(PART_CELLS / len(names)))))
        width = max(LEAST_COLUMNS, -(-len(names) // SLICES))
        slices = [chosen.select(names[at : at + width]) for at in range(0, len(names), width)]
        for start in range(0, n_rows, size):
            with self.reading():
                read = [some.slice(start, size).collect(engine="in-memory") for some in slices]
                part = pl.concat(read, how="horizontal")
            for at in range(0, part.height, batch):
                yield start + at, part[at : at + batch]
            del part, read  # while the next is read

    def collect(self, *columns: pl.Expr) -> pl.DataFrame:
        with self.reading():
            return self.frame.select(*columns).collect(engine="streaming")


def source_of(
    table: Any,  # noqa: ANN401 -- frames of any library
    *,
    party: str,
    features: Sequence[Column] = (),
    labels: str | None = None,
    mapping: TableMapping = TableMapping(),  # noqa: B008 -- frozen
    lenient: bool = False,
) -> Source:
    """Open a file by its ending, or take a frame; read leniently, a bad cell is infinite.

    `features` are what columns become; with `labels` among them where these are read.
    """
    if isinstance(table, (str, Path)):
        source = _of_file(Path(table), party=party)
        told: Any = {"what": source.what, "dialect": source.dialect, "lenient": lenient}
        return _as_agreed(source, AgreedColumns(features=features, mapping=mapping, **told))
    what = f"the table of party '{party}'"
    if isinstance(table, (pl.LazyFrame, pl.DataFrame)):
        source = Source(frame=table.lazy(), what=what)
        with source.reading():  # once: a plan may give other rows, or another order, the next time
            return replace(source, frame=source.frame.collect().lazy())
    wanted, frame = {feature.name for feature in features} | {labels}, as_frame(table)
    if frame is None:
        raise OptionError(
            f"{what} is a {type(table).__name__}, which has no columns by name. Give the path of "
            "a Parquet or CSV file, or a data frame; arrays go to party.prepare(rows, labels)."
        )
    found = [_as_polars(frame.get_column(name)) for name in frame.columns if name in wanted]
    return Source(frame=pl.DataFrame(found).lazy(), what=what)


def _as_polars(series: nw.Series[Any]) -> pl.Series:
    """Return another library's column as one of polars; what stands for nothing is null."""
    if series.dtype.is_numeric() or series.dtype.is_temporal():
        return pl.Series(series.name, series.to_numpy())
    empty = series.is_null().to_list()
    cells = [None if none else cell for cell, none in zip(series.to_list(), empty, strict=True)]
    try:
        return pl.Series(series.name, cells)
    except (TypeError, pl.exceptions.PolarsError):
        raise DtypeError(
            f"column '{series.name}' holds values of several types, so equal ones may be written "
            "unequally. Convert it to numbers or to text."
        ) from None


def _of_file(path: Path, *, party: str) -> Source:
    """Open a file; of a CSV file no more is known than how it is written."""
    kind = path.suffix.lower()
    what = f"the table '{path.name or path}' of party '{party}'"
    if kind not in (*PARQUET, *CSV):
        ends = "is a folder" if path.is_dir() else f"ends in '{kind}'"
        raise OptionError(
            f"{what} {ends}, and only {', '.join((*PARQUET, *CSV))} are read. Save it as "
            "one of these; a spreadsheet program saves a sheet as CSV."
        )
    stamp = stamp_of(path)
    if kind in PARQUET:
        frame = pl.scan_parquet(path.absolute(), glob=False)
        return Source(frame=frame, what=what, path=path, stamp=stamp)
    dialect = dialect_of(path, stamp, what=what)
    return Source(frame=dialect.scan(path), what=what, path=path, stamp=stamp, dialect=dialect)


def _as_agreed(source: Source, agreed: AgreedColumns) -> Source:
    schema, frame, dialect, path = source.schema, source.frame, source.dialect, source.path
    own = agreed.own(schema.names())
    if agreed.features and not own and any(re.match("-?[0-9]+$", each) for each in schema):
        raise TableError(
            f"{source.what} has numbers in its first line, and no agreed name. Write the columns' "
            "names there, and no line before them; nothing of it was used."
        )
    others = [name for name in schema if agreed.features and name not in own.values()]
    types: dict[str, Any] = dict.fromkeys(others, pl.String)  # whatever stands there
    numbers, integers = list[str](), set[str]()
    if dialect is not None and path is not None:
        for each in (each for each in agreed.features if each.name in own):
            name, kind = own[each.name], schema[own[each.name]]
            category = isinstance(each, CategoryFeature)
            if kind.is_integer() and not category:
                integers.add(each.name)
            # beside semicolons the point of a number may part thousands
            unclear = dialect.separator == ";" and kind.is_numeric()
            if agreed.lenient or kind == pl.String or category or unclear:
                types[name] = pl.String
            elif kind.is_numeric():
                numbers.append(name)
        frame = dialect.scan(path, types | dict.fromkeys(numbers, pl.Float64))
        try:
            frame.select(pl.col(numbers).count()).collect(engine="streaming")
        except pl.exceptions.PolarsError:  # some cell is no number: all are text, which is slow
            frame = dialect.scan(path, types | dict.fromkeys(numbers, pl.String))
    small = dialect and source.stamp and source.stamp.size < SMALL_BYTES
    with source.reading():
        made = agreed.of(frame.collect().lazy() if small else frame, own=own)
    return replace(source, frame=made, integers=frozenset(integers))


def row_of_text(source: Source, name: str) -> int | None:
    text = pl.col(name).is_not_null() & pl.col(name).cast(pl.Float64, strict=False).is_null()
    # arg_max counts from the beginning of a part where polars reads in parts
    found = source.collect(pl.int_range(pl.len()).filter(text).min().alias("first")).item()
    return None if found is None else int(found) + 1


def refuse_absent(source: Source, names: Sequence[str], *, labels: str | None, party: str) -> None:
    schema = source.schema
    refuse_names([name for name in names if name in schema], names, party=party)
    if labels is None:
        return
    if labels not in schema:
        raise LabelError(
            f"{source.what} has no column '{labels}' for the labels. Give the name of one of its "
            "columns."
        )
    kind = nw.from_native(source.frame).collect_schema()[labels]
    # without a value labels are counted as missing; in a frame of polars an object is anything
    if kind != nw.Unknown and (kind == nw.Object or not is_wordlike(kind)):
        raise DtypeError(
            f"{source.what} has labels of type {schema[labels]} in column '{labels}'. Only text, "
            "booleans, floats and integers of up to 64 bits are read; convert DECIMAL to DOUBLE."
        )
