"""What a party's table is refused for, before or while it is read."""

from collections.abc import Collection, Sequence

import polars as pl

from cobasis.errors import DtypeError, LabelError, NotFiniteError
from cobasis.features.numeric import LARGEST, refuse_names
from cobasis.tables.sources import Source

EXACT = 2**53
"""Up to here float64 holds every integer."""

INTEGERS = frozenset(
    (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
)
"""The integers that NumPy has a type for."""

WORDS = frozenset((pl.String, pl.Categorical, pl.Enum, pl.Null))
"""What labels may be but for numbers; of no type at all, they are counted as missing."""

SHOWN = 5
"""How many columns a message names."""


def refuse_schema(source: Source, names: Sequence[str], *, labels: str | None, party: str) -> None:
    """Refuse a table that lacks a column, or has one that holds no numbers.

    Parameters
    ----------
    source : Source
        The table.
    names : sequence of str
        The agreed columns.
    labels : str or None
        The column of labels.
    party : str
        For the message.

    Raises
    ------
    FeatureError, LabelError
        A column is missing.
    DtypeError
        A column is text, a date, a decimal, an integer of 128 bits or the like.

    Notes
    -----
    **Who sees what.** Column names and types only.

    **Cost.** A file's header.
    """
    with source.reading():
        schema = source.frame.collect_schema()
    refuse_names([name for name in names if name in schema], names, party=party)
    if labels is not None and labels not in schema:
        msg = (
            f"{source.what} has no column '{labels}' for the labels. Give the name of one of its "
            "columns."
        )
        raise LabelError(msg)
    if labels is not None and not (_is_real(schema[labels]) or schema[labels].base_type() in WORDS):
        msg = (
            f"{source.what} has labels of type {schema[labels]} in column '{labels}'. Only text, "
            "booleans, floats and integers of up to 64 bits are read. Convert them."
        )
        raise DtypeError(msg)
    wrong = [f"'{name}' ({schema[name]})" for name in names if not _is_real(schema[name])]
    if wrong:
        msg = (
            f"{source.what} has columns that are no numbers: {_shown(wrong)}. Only integers "
            "of up to 64 bits, floats and booleans are read, and cobasis never casts silently. "
            "Encode them by a rule that all parties share."
        )
        raise DtypeError(msg)


def refuse_rounding(part: pl.DataFrame, *, what: str, integers: Collection[str] = ()) -> None:
    """Raise DtypeError for integers that float64 does not hold.

    Parameters
    ----------
    part : polars.DataFrame
        Some rows.
    what : str
        What to call the table.
    integers : collection of str
        Columns of a CSV file that look like integers and were read as float64. There 2**53 is
        refused as well: it may be what a larger one was rounded to.

    Raises
    ------
    DtypeError
        An integer is above 2**53.

    Notes
    -----
    **Who sees what.** The message shows a column's name and no value.

    **Cost.** One pass over the columns of 64-bit integers, and of a CSV file's integers.
    """
    for series in part:
        if series.dtype in {pl.Int64, pl.UInt64}:
            rounds = not series.is_between(-EXACT, EXACT).all()
        elif series.name in integers:
            rounds = (series.is_finite() & (series.abs() >= EXACT)).any()
        else:
            continue
        if rounds:
            msg = (
                f"column '{series.name}' of {what} holds integers above 2**53, which float64 "
                "would round. Convert it to float64 yourself, where you can see what happens; in "
                "a CSV file, write it with a decimal point from the first row on."
            )
            raise DtypeError(msg)


def not_finite(source: Source, names: Sequence[str], *, n_rows: int) -> NotFiniteError:
    """Return the error that says which columns are not whole.

    Parameters
    ----------
    source : Source
        The table, of which some part was found not to be finite, or too large.
    names : sequence of str
        The agreed columns.
    n_rows : int
        Of the table.

    Returns
    -------
    NotFiniteError
        To be raised.

    Notes
    -----
    **Who sees what.** The message counts cells; it shows none.

    **Cost.** One pass over the table.
    """
    with source.reading():
        schema = source.frame.collect_schema()
    bad = [
        (~pl.col(name).is_finite().fill_null(value=False)).sum()
        if schema[name].is_float()
        else pl.col(name).null_count()
        for name in names
    ]
    counts = source.collect(*bad).row(0)
    found = [f"'{name}' ({n:,} cells)" for name, n in zip(names, counts, strict=True) if n]
    if not found:
        msg = (
            f"an entry of {source.what} is above {LARGEST:.0e} after centre and scale, so sums of "
            "squares leave float64's range. Agree on scales that suit the units."
        )
        return NotFiniteError(msg)
    msg = (
        f"{source.what} is missing numbers, or has NaN or infinity, in {_shown(found)} of "
        f"{n_rows:,} rows, so no projection of it is defined. Fill or drop them by a rule that "
        "all parties share."
    )
    return NotFiniteError(msg)


def _is_real(dtype: pl.DataType) -> bool:
    """Whether every value is a number that NumPy has a type for."""
    return dtype.is_float() or dtype == pl.Boolean or dtype in INTEGERS


def _shown(listed: Sequence[str]) -> str:
    """Return the first few of a list in words."""
    more = f" and {len(listed) - SHOWN} more columns" if len(listed) > SHOWN else ""
    return ", ".join(listed[:SHOWN]) + more
