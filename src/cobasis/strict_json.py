"""JSON that two readers cannot read in two ways, and that two writers write in one."""

import json
import math
import re
from operator import not_
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cobasis.errors import AgreementError

IF_ANY: Any = Field(exclude_if=not_)
"""Of a field that is absent, and not null, where it is empty: older digests stay as they are."""


class Strict(BaseModel):
    """Fields of exactly their types, never more of them, and never changed."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")
    passes_over: ClassVar[bool] = False  # what a newer version adds, where a text is read

    @classmethod
    def read(cls, text: bytes) -> Self:
        """Read what ``model_dump_json`` wrote; ValueError where it is something else."""
        told = json_object(text)
        return cls.model_validate_json(json.dumps(cls._known(told)) if cls.passes_over else text)

    @classmethod
    def _known(cls, told: dict[str, Any]) -> dict[str, Any]:
        out = cls.passes_over
        return {name: x for name, x in told.items() if name in cls.model_fields or not out}


def findings(error: ValueError) -> list[str]:
    """Say of each field why it cannot stand, without what it holds; another error's text."""
    if not isinstance(error, ValidationError):
        return [str(error)]
    found = error.errors(include_input=False, include_url=False)
    said = [in_words(each["msg"]) for each in found]
    places = [".".join(x for x in map(str, each["loc"]) if not _KIND.search(x)) for each in found]
    return [f"{at}: {why}" if at else why for at, why in zip(places, said, strict=True)]


_KIND = re.compile(r"^(bool|int|float|str|constrained-\w+)$|\[")  # of several that it may be of
_WORDS = {
    r"Value error, | after validation|, (unable|got|not) .*": "",
    r"Field required|Unable to extract tag.*": "it is missing",
    r"Extra inputs are not permitted": "nothing here has this name",
    r"String should match .*": "it has other letters, or another length, than it may have",
    r"Input tag .* tags:": "it has to be",
    r"[A-Z]\w+ should": "it has to",
    r"valid integer": "whole number",
    r"a valid boolean": "true or false",
    r"valid string": "text",
    r"valid (tuple|array)": "list",
}


def in_words(told: str) -> str:
    """Return what pydantic says of a value in words for people."""
    for its, ours in _WORDS.items():
        told = re.sub(its, ours, told)
    return told.replace("a valid ", "a ")


class Worded(Strict):
    """Fields whose refusal says of what they are, and what to do."""

    what: ClassVar[str]  # in words
    ask: ClassVar[str]  # where to get a good one

    if not TYPE_CHECKING:

        def __init__(self, /, **fields: object) -> None:
            try:
                super().__init__(**fields)
            except ValidationError as error:
                raise self._refusal(error) from None

    @classmethod
    def _refusal(cls, error: ValidationError) -> AgreementError:
        found = findings(error)
        told = f"{len(found)} field(s) that cannot stand: {'; '.join(found[:5])}"
        return AgreementError(f"the {cls.what} has {told}. {cls.ask}")


def json_object(text: bytes) -> dict[str, Any]:
    """Parse an object in which every name stands once; ValueError says what the text is not."""
    try:
        found: object = json.loads(
            text.decode(), object_pairs_hook=_once, parse_float=_finite, parse_constant=_refuse
        )
    except (ValueError, RecursionError):
        raise ValueError("no JSON object with every name once") from None
    if not isinstance(found, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 -- the text is wrong, not its type
    return found


def canonical_json(value: object, *, ascii_only: bool = True) -> bytes:
    """Write sorted names without spaces, as it is signed and hashed; ValueError for NaN."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=ascii_only, allow_nan=False
    ).encode()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _finite(word: str) -> float:
    """Read a number; 1e999 would be infinite, which no JSON can say again."""
    return found if math.isfinite(found := float(word)) else _refuse(word)


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)
