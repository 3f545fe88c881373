"""What a regression table needs besides a model's weights: how sure they are, and of how many rows.

Weights and covariance are in the aligned frame, which is arbitrary: without a party's basis nobody
reads a coefficient from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, SkipValidation, model_validator

from cobasis.features.outcome import EffectName, Errors
from cobasis.linalg.arrays import Array, Matrix
from cobasis.models import RegressionName

_TABLES = ("covariance", "dependent", "hazards", "party_weights", "party_covariances")
_OF_EFFECTS = "effects."

Target = Literal["ATE", "ATT", "ATO"]
"""Of all rows, of the treated, and of rows weighted by their overlap."""

Kind = tuple[EffectName, Target, Annotated[float, Field(ge=0, allow_inf_nan=False)]]
"""Estimator, target, and horizon; 0 where the outcome is a number."""

Groups = tuple[NonNegativeInt, NonNegativeInt]
Numbers = Annotated[Matrix, SkipValidation, Field(exclude=True, repr=False)]

BEFORE = "before"


class EffectFit(BaseModel):
    """Effects of a treatment, and how alike its groups are, in the frame of the aligned rows."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    kinds: Annotated[tuple[Kind, ...], Field(min_length=1)]  # of the estimates
    trimmed: Groups  # treated and control rows that were left out for their propensity
    unmatched: Groups  # of those that stayed, without another within the caliper
    # before, then each weighting and matching
    adjusted: Annotated[tuple[str, ...], Field(min_length=1)]
    means: Numbers  # (k, 3): of treated, of control; the error of their difference
    differences: Numbers  # (b, m): means of treated less those of control
    sizes: Numbers  # (b, 2): effective rows, treated and control
    spread: Numbers  # (m, m): the mean of both groups' covariances

    def tables(self) -> dict[str, Matrix]:
        return {name: getattr(self, name) for name in ("means", "differences", "sizes", "spread")}

    @model_validator(mode="after")
    def _settle(self) -> Self:
        tables, width = [*self.tables().values()], len(self.spread)
        n_kinds, n_lines = len(self.kinds), len(self.adjusted)
        shapes = [(n_kinds, 3), (n_lines, width), (n_lines, 2), (width, width)]
        once = n_kinds == len({*self.kinds}) and n_lines == len({*self.adjusted})
        good = once and self.adjusted[0] == BEFORE and [each.shape for each in tables] == shapes
        good = good and all(np.isfinite(each).all() for each in tables)
        if not good or min(self.sizes.min(), self.means[:, 2].min(), *np.diag(self.spread)) < 0:
            raise ValueError
        return self


Estimates: TypeAlias = tuple[Matrix, Matrix]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What is told of a regression as a whole, whatever frame its rows are in."""

    model: RegressionName
    errors: Errors
    n_rows: int  # with a weight above 0
    n_events: int  # of a Cox model; rows of class 1 where there are two; else 0
    free: int  # residual degrees of freedom; of errors by party, parties less one
    dispersion: float = 1.0  # the residuals' variance; a negative binomial model's alpha; else 1
    log_likelihood: float = 0.0
    null_log_likelihood: float = 0.0  # without any column
    left_out: tuple[str, ...] = ()  # parties of too few rows for estimates of their own


_FIGURES: Mapping[str, Any] = {
    each.name: each.type if each.type in {int, float} else str
    for each in fields(Figures)
    if each.name != "left_out"
}

_NAMES = ("parties", "left_out")


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionFit(Figures):
    """What the analyst sends back, in the frame of the aligned rows: all parties' rows together."""

    weights: Matrix = field(repr=False)  # q: the intercept first; a Cox model has none
    covariance: Matrix = field(repr=False)  # q x q
    # q x k: combinations of columns that are zero in every row; with any, weights are zeros
    dependent: Matrix = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    # Breslow's cumulative hazard at the horizons, of a row whose encoded columns are zero
    hazards: Matrix = field(default_factory=lambda: np.zeros(0), repr=False)
    # of each alone, if the agreement asks for it
    parties: Mapping[str, Estimates] = field(default_factory=dict, repr=False)
    effects: EffectFit | None = field(default=None, repr=False)  # of "effect" alone
    # False of weights between two steps by sums: there is no covariance yet, and no table
    finished: bool = True

    @classmethod
    def unfitted(
        cls, model: RegressionName, *, errors: Errors, n_rows: int, n_events: int, dependent: Matrix
    ) -> Self:
        """Return what is known before a fit, and all where columns depend on each other."""
        size = len(dependent)
        return cls(
            model=model,
            errors=errors,
            weights=np.zeros(size),
            covariance=np.zeros((size, size)),
            dependent=dependent,
            n_rows=n_rows,
            n_events=n_events if model in {"logit", "firth", "cox"} else 0,
            free=n_rows - size,
        )

    def told(self) -> dict[str, Any]:
        figures = {name: kind(getattr(self, name)) for name, kind in _FIGURES.items()}
        more: dict[str, Any] = {} if self.finished else {"finished": False}
        more |= {} if self.effects is None else {"effects": self.effects.model_dump(mode="json")}
        return {**figures, **{name: [*getattr(self, name)] for name in _NAMES}, **more}

    def tables(self) -> dict[str, Array]:
        """Return every table that has numbers, but the weights, which the model has."""
        found = {name: getattr(self, name) for name in ("covariance", "dependent", "hazards")}
        if self.parties:
            weights, covariances = zip(*self.parties.values(), strict=True)
            found |= {"party_weights": np.array(weights)}
            found |= {"party_covariances": np.vstack(covariances)}
        effects = {} if self.effects is None else self.effects.tables()
        found |= {f"{_OF_EFFECTS}{name}": table for name, table in effects.items()}
        return {name: table for name, table in found.items() if table.size}

    @classmethod
    def of(cls, told: Mapping[str, Any], *, weights: Matrix, tables: Mapping[str, Array]) -> Self:
        """Read what `told` and `tables` gave; ValueError where it is something else."""
        # What is of another type, or nothing reads, is written otherwise, and so is refused.
        effects, size = told.get("effects"), len(weights)
        theirs: Any = {
            name.removeprefix(_OF_EFFECTS): table
            for name, table in tables.items()
            if name.startswith(_OF_EFFECTS)
        }
        given: dict[str, Any] = {name: tables[name] for name in {*_TABLES} & {*tables}}
        own = given.pop("party_weights", np.zeros((0, size)))
        spreads = given.pop("party_covariances", np.zeros((0, size)))
        try:
            given |= {name: kind(told[name]) for name, kind in _FIGURES.items()}
            names, given["left_out"] = (tuple(map(str, told[each])) for each in _NAMES)
            given["finished"] = told.get("finished", True)
            spreads = spreads.reshape(-1, size, size)
            given["parties"] = dict(zip(names, zip(own, spreads, strict=True), strict=True))
            given["effects"] = None if effects is None else EffectFit(**effects, **theirs)
            made = cls(weights=weights, **given)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError("its fit lacks tables or words, or has more of them") from error
        made.check()
        return made

    def check(self) -> None:
        size, tables = len(self.weights), self.tables()
        own = [self.covariance, *(covariance for _, covariance in self.parties.values())]
        fits = all(each.shape == (size, size) for each in own) and self.hazards.ndim == 1
        fits = fits and all(weights.shape == (size,) for weights, _ in self.parties.values())
        fits = fits and (not self.dependent.size or self.dependent.shape[0] == size)
        named = self.model in get_args(RegressionName) and self.errors in get_args(Errors)
        whole = (self.effects is None) == (self.model != "effect" or bool(self.dependent.size))
        whole = whole and (self.effects is None or len(self.effects.spread) == size - 1)
        if not fits or not named or not whole or min(self.n_rows, self.n_events, self.free) < 0:
            raise ValueError("its fit has tables or words that do not belong together")
        figures = np.array([self.dispersion, self.log_likelihood, self.null_log_likelihood])
        if not all(np.isfinite(each).all() for each in (*tables.values(), self.weights, figures)):
            raise ValueError("its fit is not all finite")
        for each in own:
            if (each != each.T).any() or (np.diag(each) < 0).any():
                raise ValueError(
                    "a covariance of its fit is not symmetric, or has a negative variance"
                )
        if (self.hazards < 0).any():
            raise ValueError("a hazard of its fit is below 0")

    def kept(self) -> Self:
        """Return it with symmetric covariances, as a file keeps them."""
        halves = {name: (one, (two + two.T) / 2) for name, (one, two) in self.parties.items()}
        return replace(self, covariance=(self.covariance + self.covariance.T) / 2, parties=halves)
