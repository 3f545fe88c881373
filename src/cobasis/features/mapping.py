"""A mapping: what a party says of its own columns, so that they become the agreed ones."""

import hashlib
import tomllib
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, RootModel

from cobasis.errors import OptionError
from cobasis.features.contract import ColumnName, Word
from cobasis.strict_json import canonical_json, findings

Factor = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ColumnMapping(BaseModel):
    """How one column of a party's table becomes an agreed one; each step may be left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: str = ""  # what the party calls it
    words: dict[Word, Word] = {}  # each agreed word by the party's own
    blanks: tuple[Word, ...] = ()  # what stands for no value
    factor: Factor = 1.0  # what the party's numbers are multiplied by
    days_since: date | None = None  # a column of dates becomes days since this one

    def in_words(self) -> Iterator[str]:
        if self.column:
            yield f"from '{self.column}'"
        yield from (f"'{own}' is '{agreed}'" for own, agreed in self.words.items())
        yield from (f"'{each}' is no value" for each in self.blanks)
        if self.factor != 1:
            yield f"times {self.factor:g}"
        if self.days_since:
            yield f"days since {self.days_since}"


AS_AGREED = ColumnMapping()


class Mapping(RootModel[dict[ColumnName, ColumnMapping]]):
    """What a party says of its columns, by the agreed name; columns that fit are not in it."""

    model_config = ConfigDict(frozen=True)

    root: dict[ColumnName, ColumnMapping] = {}

    @classmethod
    def of_toml(cls, text: str, *, what: str) -> Self:
        try:
            return cls(tomllib.loads(text))
        except ValueError as error:
            raise OptionError(
                f"{what} is no mapping: {findings(error)[0]}. Write a table for each agreed "
                'column, such as [sex] with words = { F = "female", M = "male" }; it has column, '
                "words, blanks, factor and days_since."
            ) from None

    def digest(self) -> str:
        return hashlib.sha256(canonical_json(self.model_dump(mode="json"))).hexdigest()

    def adding(self, name: str, **steps: Any) -> "Mapping":  # noqa: ANN401 -- as the fields are
        """Return this with more steps of a column; OptionError for what no step can be."""
        old = self.root.get(name, AS_AGREED)
        more = {"words": old.words | steps.get("words", {})}
        more["blanks"] = (*old.blanks, *steps.get("blanks", ()))
        try:
            step = ColumnMapping.model_validate({**dict(old), **steps, **more})
        except ValueError as error:
            raise OptionError(
                f"column '{name}' cannot be mapped so: {findings(error)[0]}. Write another."
            ) from None
        return Mapping({**self.root, name: step})

    def in_words(self) -> tuple[str, ...]:
        return tuple(f"{name}: {', '.join(each.in_words())}" for name, each in self.root.items())
