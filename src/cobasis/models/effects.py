"""What comes back of a treatment's effects besides the propensity model: estimates and balance.

Differences and spread are in the aligned frame; each party reads them in its own columns.
"""

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, SkipValidation, model_validator

from cobasis.features.outcome import EffectName
from cobasis.linalg.arrays import Matrix

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
    adjusted: Annotated[
        tuple[str, ...], Field(min_length=1)
    ]  # before, then each weighting and matching
    means: Numbers  # (k, 3): of treated, of control; the error of their difference
    differences: Numbers  # (b, m): means of treated less those of control
    sizes: Numbers  # (b, 2): effective rows, treated and control
    spread: Numbers  # (m, m): the mean of both groups' covariances

    def tables(self) -> dict[str, Matrix]:
        """Return every table by its name."""
        return {name: getattr(self, name) for name in ("means", "differences", "sizes", "spread")}

    @model_validator(mode="after")
    def _settle(self) -> Self:
        """Refuse tables and words that do not belong together."""
        tables, width = [*self.tables().values()], len(self.spread)
        n_kinds, n_lines = len(self.kinds), len(self.adjusted)
        shapes = [(n_kinds, 3), (n_lines, width), (n_lines, 2), (width, width)]
        once = n_kinds == len({*self.kinds}) and n_lines == len({*self.adjusted})
        good = once and self.adjusted[0] == BEFORE and [each.shape for each in tables] == shapes
        good = good and all(np.isfinite(each).all() for each in tables)
        if not good or min(self.sizes.min(), self.means[:, 2].min(), *np.diag(self.spread)) < 0:
            raise ValueError
        return self
