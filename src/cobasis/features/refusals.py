"""What rows are refused for before they are encoded, or after."""

from collections.abc import Mapping, Sequence

from cobasis.errors import FeatureError, NotFiniteError
from cobasis.linalg.arrays import Matrix

LARGEST = 1e50
"""Above this, sums of squares and cubes over the rows would not stay finite."""

SHOWN = 5
"""How many names or words a message shows."""


def refuse_huge(table: Matrix, *, name: str) -> None:
    """Raise NotFiniteError for a scaled table whose squares would not stay finite."""
    if not max(table.max(), -table.min()) <= LARGEST:
        raise too_large(name)


def too_large(name: str) -> NotFiniteError:
    """Return the error for entries whose squares would leave float64's range."""
    msg = (
        f"an entry of {name} is above {LARGEST:.0e} after centre and scale, so sums of "
        "squares leave float64's range. Agree on scales that suit the units."
    )
    return NotFiniteError(msg)


def not_whole(name: str, cells: Mapping[str, int], *, n_rows: int) -> NotFiniteError:
    """Return the error for columns that lack numbers, or hold NaN or infinity."""
    found = [f"'{column}' ({n:,} cells)" for column, n in cells.items() if n]
    if not found:
        return too_large(name)
    more = f" and {len(found) - SHOWN} more columns" if len(found) > SHOWN else ""
    msg = (
        f"{name} is missing numbers, or has NaN or infinity, in {', '.join(found[:SHOWN])}{more} "
        f"of {n_rows:,} rows, so no projection of it is defined. Fill or drop them by a rule that "
        'all parties share: missing = "fill" in the agreement\'s feature.'
    )
    return NotFiniteError(msg)


def refuse_names(names: Sequence[str], expected: Sequence[str], *, party: str) -> None:
    """Raise FeatureError unless `names` are exactly `expected`, in that order."""
    if list(names) == list(expected):
        return
    given, agreed = set(names), set(expected)
    missing = [name for name in expected if name not in given]
    unknown = [name for name in names if name not in agreed]
    if missing or unknown:
        reason = f"missing {_short(missing)}; not agreed {_short(unknown)}"
    elif len(names) != len(expected):
        reason = f"{len(names)} columns, some of one name, where {len(expected)} are agreed"
    else:
        first = next(i for i, (a, b) in enumerate(zip(names, expected, strict=False)) if a != b)
        reason = f"column {first + 1} is '{names[first]}', agreed is '{expected[first]}'"
    raise FeatureError(
        f"the columns of party '{party}' are not the agreement's: {reason}. Every party needs the "
        "same features in the same order, or its rows mean something else. Select and order them."
    )


def _short(names: Sequence[str]) -> str:
    """Return at most five names."""
    listed = ", ".join(f"'{name}'" for name in names[:SHOWN]) or "none"
    return f"{listed} and {len(names) - SHOWN} more" if len(names) > SHOWN else listed
