"""What a party's table is refused for, before or while it is read."""

from collections.abc import Collection, Sequence

import polars as pl

from cobasis.errors import DtypeError, LabelError, NotFiniteError
from cobasis.features.category import CategoryFeature
from cobasis.features.numeric import NumericFeature
from cobasis.features.reading import rounded
from cobasis.features.refusals import SHOWN, not_whole, refuse_names
from cobasis.linalg.arrays import EXACT_INTEGER
from cobasis.tables.sources import Source

INTEGERS = frozenset(
    (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
)
"""The integers that NumPy has a type for."""

WORDS = frozenset((pl.String, pl.Categorical, pl.Enum, pl.Null))
"""What labels may be but for numbers; of no type at all, they are counted as missing."""


def refuse_schema(
    source: Source,
    features: Sequence[NumericFeature | CategoryFeature],
    *,
    labels: str | None,
    party: str,
) -> None:
    """Refuse a table that lacks a column, or has one of another kind than agreed."""
    with source.reading():
        schema = source.frame.collect_schema()
    names = [feature.name for feature in features]
    refuse_names([name for name in names if name in schema], names, party=party)
    if labels is not None and labels not in schema:
        raise LabelError(
            f"{source.what} has no column '{labels}' for the labels. Give the name of one of its "
            "columns."
        )
    if labels is not None and not (_is_real(schema[labels]) or schema[labels].base_type() in WORDS):
        raise DtypeError(
            f"{source.what} has labels of type {schema[labels]} in column '{labels}'. Only text, "
            "booleans, floats and integers of up to 64 bits are read. Convert them."
        )
    wrong = [f"'{each.name}' ({schema[each.name]})" for each in features if not fits(schema, each)]
    if wrong:
        raise DtypeError(
            f"{source.what} has columns that are no numbers: {_shown(wrong)}. Only integers "
            "of up to 64 bits, floats and booleans are read, and cobasis never casts silently. "
            "Convert them; what has no number belongs into the agreement as a category, which "
            "may also be text."
        )


def fits(schema: pl.Schema, feature: NumericFeature | CategoryFeature) -> bool:
    """Whether a column's type is one that the feature is read from."""
    dtype = schema[feature.name]
    if isinstance(feature, CategoryFeature):
        return _is_real(dtype) or dtype.base_type() in WORDS
    return _is_real(dtype) or (dtype == pl.Null and feature.missing == "fill")


def refuse_csv_rounding(part: pl.DataFrame, *, what: str, integers: Collection[str]) -> None:
    """Raise DtypeError for integers of a CSV file that may have been rounded."""
    for name in integers:
        series = part[name]
        if (series.is_finite() & (series.abs() >= EXACT_INTEGER)).any():
            raise rounded(name, what=what)


def not_finite(
    source: Source, features: Sequence[NumericFeature | CategoryFeature], *, n_rows: int
) -> NotFiniteError:
    """Return the error that says which columns are not whole."""
    with source.reading():
        schema = source.frame.collect_schema()
    numbers = [each for each in features if isinstance(each, NumericFeature)]
    counts = source.collect(*(_bad(each, schema[each.name]) for each in numbers)).row(0)
    cells = {each.name: n for each, n in zip(numbers, counts, strict=True)}
    return not_whole(source.what, cells, n_rows=n_rows)


def _bad(feature: NumericFeature, dtype: pl.DataType) -> pl.Expr:
    """Return the expression that counts the cells for which no number stands."""
    column, fills = pl.col(feature.name), feature.missing == "fill"
    if dtype.is_float():
        fine = column.is_finite() | column.is_nan() if fills else column.is_finite()
        return (~fine.fill_null(value=fills)).sum()
    return pl.lit(0).alias(feature.name) if fills else column.null_count()


def _is_real(dtype: pl.DataType) -> bool:
    """Whether every value is a number that NumPy has a type for."""
    return dtype.is_float() or dtype == pl.Boolean or dtype in INTEGERS


def _shown(listed: Sequence[str]) -> str:
    """Return the first few of a list in words."""
    more = f" and {len(listed) - SHOWN} more columns" if len(listed) > SHOWN else ""
    return ", ".join(listed[:SHOWN]) + more
