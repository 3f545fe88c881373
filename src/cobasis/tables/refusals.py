"""What a party's table is refused for, before or while it is read."""

from collections.abc import Sequence

import polars as pl

from cobasis.errors import DtypeError, LabelError, NotFiniteError
from cobasis.features.numeric import LARGEST, refuse_names
from cobasis.tables.sources import Source

EXACT = 2**53
"""Up to here float64 holds every integer."""

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
        A column is text, a date, a decimal or the like.

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
    wrong = [f"'{name}' ({schema[name]})" for name in names if not _is_real(schema[name])]
    if wrong:
        msg = (
            f"{source.what} has columns that are no numbers: {_shown(wrong)}. Only integers, "
            "floats and booleans are read, and cobasis never casts silently. Encode them by a "
            "rule that all parties share."
        )
        raise DtypeError(msg)


def refuse_rounding(part: pl.DataFrame, *, what: str) -> None:
    """Raise DtypeError for integers that float64 does not hold.

    Parameters
    ----------
    part : polars.DataFrame
        Some rows.
    what : str
        What to call the table.

    Raises
    ------
    DtypeError
        An integer is above 2**53.

    Notes
    -----
    **Who sees what.** The message shows a column's name and no value.

    **Cost.** One pass over the columns of 64-bit integers.
    """
    for series in part:
        if series.dtype in {pl.Int64, pl.UInt64} and not series.is_between(-EXACT, EXACT).all():
            msg = (
                f"column '{series.name}' of {what} holds integers above 2**53, which float64 "
                "would round. Convert it to float64 yourself, where you can see what happens."
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
    return dtype.is_float() or dtype == pl.Boolean or (dtype.is_integer() and dtype != pl.Int128)


def _shown(listed: Sequence[str]) -> str:
    """Return the first few of a list in words."""
    more = f" and {len(listed) - SHOWN} more columns" if len(listed) > SHOWN else ""
    return ", ".join(listed[:SHOWN]) + more
