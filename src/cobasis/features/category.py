"""Categories: a closed vocabulary of words, the same for all parties."""

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from cobasis.features.numeric import ColumnName

Word = Annotated[str, Field(min_length=1, max_length=200)]

UNKNOWN, MISSING = -1, -2
"""The codes of cells that the agreement has no place for."""


class CategoryFeature(BaseModel):
    """One column of words: each agreed word has a column of zeros and ones in the round.

    Attributes
    ----------
    name : str
        The column's name.
    kind : {"category"}
        What tells it from a number.
    values : tuple of str
        The vocabulary, from 1 to 1000 words, told apart by every letter and blank.
    unknown : {"refuse", "other"}
        Whether a party may have other words, which then share one column more.
    missing : {"refuse", "level"}
        Whether a party may have empty cells, which then have one column more.

    Notes
    -----
    **Who sees what.** Public: a field of the agreement. **Cost.** None.

    Examples
    --------
    >>> ward = CategoryFeature(name="ward", values=("icu", "surgery"), missing="level")
    >>> ward.levels, ward.code("surgery"), ward.code(""), ward.code("Surgery")
    (('icu', 'surgery', None), 1, 2, -1)
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    name: ColumnName
    kind: Literal["category"] = "category"
    values: Annotated[tuple[Word, ...], Field(min_length=1, max_length=1000)]
    unknown: Literal["refuse", "other"] = "refuse"
    missing: Literal["refuse", "level"] = "refuse"

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        """Refuse a word that stands twice: it would have two columns."""
        if len(set(self.values)) != len(self.values):
            raise ValueError("values holds a word more than once")
        return self

    @property
    def levels(self) -> tuple[str | None, ...]:
        """What each column stands for: the words, ``""`` for all others, None for empty cells."""
        other = ("",) if self.unknown == "other" else ()
        empty = (None,) if self.missing == "level" else ()
        return (*self.values, *other, *empty)

    def code(self, cell: object) -> int:
        """Return the position of a cell's level, -1 for an unknown word, -2 for an empty cell."""
        word = word_of(cell)
        if word is None:
            return len(self.levels) - 1 if self.missing == "level" else MISSING
        if word in self.values:
            return self.values.index(word)
        return len(self.values) if self.unknown == "other" else UNKNOWN


def word_of(cell: object) -> str | None:
    """Return the word that a cell stands for, or None where it is empty."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or cell == "" or cell != cell:  # noqa: PLR0124 -- only NaN is not itself
        return None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)
