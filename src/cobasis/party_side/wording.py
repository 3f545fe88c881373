"""An agreement's columns and terms by words of a command line."""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import ValidationError

from cobasis.errors import OptionError
from cobasis.features.category import CategoryFeature
from cobasis.features.numeric import NumericFeature
from cobasis.protocol.dp_terms import DPTerms

Missing = Literal["refuse", "fill"]
Features = tuple[NumericFeature | CategoryFeature, ...]


def features_of_words(
    numbers: Iterable[str], categories: Iterable[str], *, missing: Missing = "refuse"
) -> Features:
    """Describe columns by words of a command line.

    Examples
    --------
    >>> features_of_words(["age:centre=60,scale=20,unit=years"], [])
    (NumericFeature(name='age', centre=60.0, scale=20.0, unit='years'),)
    """
    try:
        return (
            *(each for words in numbers for each in _numbers(words, missing)),
            *(_category(words, missing) for words in categories),
        )
    except ValueError as error:
        problem = _problem(error)
    raise OptionError(
        f"a column cannot be described like that: {problem}. Write numbers as age,pulse or "
        "age:centre=60,scale=20,unit=years and categories as sex=female,male."
    )


def _problem(error: ValueError) -> str:
    """Return what is wrong, in pydantic's words where it was asked."""
    if not isinstance(error, ValidationError):
        return str(error)
    found = error.errors()[0]
    return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"


def _numbers(words: str, missing: Missing) -> list[NumericFeature]:
    """Describe the columns of one flag."""
    before, _, constants = words.partition(":")
    names = before.replace(",", " ").split()
    given: dict[str, Any] = {}
    for each in filter(None, (part.strip() for part in constants.split(","))):
        name, _, value = each.partition("=")
        if not names or not value:
            raise ValueError(
                f"'{words}' has no {'constant after a =' if names else 'column before the colon'}"
            )
        given[name.strip()] = value.strip() if name.strip() == "unit" else float(value)
    if missing == "fill":
        given.setdefault("fill", given.get("centre", 0.0))
    if "fill" in given:
        given["missing"] = "fill"
    return [NumericFeature(name=name, **given) for name in names]


def _category(words: str, missing: Missing) -> CategoryFeature:
    """Describe one column of words."""
    name, _, values = words.partition("=")
    return CategoryFeature(
        name=name.strip(),
        values=tuple(word.strip() for word in values.split(",") if word.strip()),
        missing="level" if missing == "fill" else "refuse",
    )


def dp_of_words(words: str) -> DPTerms:
    """Return the terms of noise with a guarantee by words of a command line."""
    given: dict[str, Any] = {}
    try:
        for each in filter(None, (part.strip() for part in words.split(","))):
            name, _, value = each.partition("=")
            kind = {"most_rows": int, "rows_per_person": int, "labels": str, "adjacency": str}
            given[name.strip()] = kind.get(name.strip(), float)(value.strip())
        once = given.get("epsilon", 0.0) + given.get("label_epsilon", 0.0)
        return DPTerms(**{"lifetime_epsilon": once, **given})
    except ValueError as error:
        problem = _problem(error)
    raise OptionError(
        f"--dp cannot be read: {problem}. Write it as epsilon=8,radius=2,most_rows=900,"
        "labels=public; docs/reference/agreement.md lists its terms."
    )
