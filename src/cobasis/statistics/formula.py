"""A formula, as statisticians write it, becomes knots and interactions of an agreement's features.

Only who writes the agreement reads it, by formulaic. What all sign is what it says, in full.
"""

import ast
import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from typing import cast

from cobasis.errors import EstimateError, FeatureError, OptionError
from cobasis.features.contract import (
    CategoryFeature,
    Column,
    Feature,
    Interaction,
    NumericFeature,
    columns_in,
    interaction_problems,
)
from cobasis.models import needing

_CALL = re.compile(r"([\w.]+)\(\s*[`'\"]?(.+?)[`'\"]?\s*(?:,(.*))?\)")
_TAKEN = "age * sex + cr(bmi, knots=(20, 25, 30), lower_bound=15, upper_bound=40)"


def with_formula(features: Iterable[Feature], formula: str) -> tuple[Feature, ...]:
    """Return the columns that a formula's right side names, as they enter, and interactions."""
    known = {each.name: each for each in columns_in(features)}
    terms = [[_entering(factor, known) for factor in term] for term in _terms_of(formula)]
    used: dict[str, Column] = {}
    for each in chain(*terms):
        if used.setdefault(each.name, each) != each:
            raise EstimateError(
                f"column '{each.name}' enters the formula in two ways, and a line follows from its "
                "spline, so no coefficient of the two is determined. Leave one of them out."
            )
    alone = {term[0].name for term in terms if len(term) == 1}
    found: list[Feature] = [used[name] for name in known if name in alone]
    products = (tuple(each.name for each in term) for term in terms if len(term) > 1)
    found += (Interaction.model_construct(of=names) for names in products)
    if problems := [*interaction_problems(found)]:
        raise OptionError(
            f"the formula '{formula}' cannot be agreed on: {'; '.join(problems)}. Write a*b for a "
            "+ b + a:b, of at most four columns."
        )
    return tuple(found)


def _terms_of(formula: str) -> list[list[str]]:
    with needing("formulaic", extra="statistics", what="a formula"):
        from formulaic import Formula
        from formulaic.errors import FormulaicError
    with suppress(FormulaicError, AttributeError):  # the latter of two sides, as in y ~ x
        terms = [[str(each.expr) for each in term.factors] for term in Formula(formula)]
        if terms[:1] == [["1"]] and len(terms) > 1:
            return terms[1:]
    raise OptionError(
        f"'{formula}' is no formula that can be agreed on: it is the right side alone, names "
        f"columns, and keeps the constant. Write such as {_TAKEN}."
    )


def _entering(factor: str, known: dict[str, Column]) -> Column:
    if factor in known:
        return known[factor]
    called = _CALL.fullmatch(factor)
    function, name, words = ("", "", "") if called is None else called.groups("")
    column = known.get(name)
    if (function, words) == ("C", "") and isinstance(column, CategoryFeature):
        return column
    if column is None or function != "cr":
        raise FeatureError(
            f"the formula names '{factor}', and there is no such column. There are "
            f"{', '.join(known)}. Write such as {_TAKEN}: curves are cr with agreed knots, what is "
            "computed of rows is a column of each party's table, and --outcome takes exposures "
            "and strata."
        )
    try:
        call = cast("ast.Call", ast.parse(f"cr({words})", mode="eval").body)
        said = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
        low = said.pop("lower_bound", getattr(column, "low", None))
        high = said.pop("upper_bound", getattr(column, "high", None))
        made = said | dict(column) | {"knots": (low, *said.pop("knots"), high)}
        return NumericFeature.model_validate(made)
    except (SyntaxError, TypeError, ValueError, KeyError):
        raise FeatureError(
            f"'{factor}' is no spline of numbers: its knots, one or more, are to rise between its "
            "bounds, or the column's low and high; df would take them from rows that nobody has "
            f"together. Write such as {_TAKEN}."
        ) from None
