"""What comes back of a treatment's effects besides the propensity model: estimates and balance.

Differences and spread are in the aligned frame; each party reads them in its own columns.
"""

from typing import Annotated, Any, Literal, Self

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

    kinds: tuple[Kind, ...]  # of the estimates
    trimmed: Groups  # treated and control rows that were left out for their propensity
    unmatched: Groups  # of those that stayed, without another within the caliper
    adjusted: tuple[str, ...]  # before, then each weighting and matching
    means: Numbers  # (k, 3): of treated, of control; the error of their difference
    differences: Numbers  # (b, m): means of treated less those of control
    sizes: Numbers  # (b, 2): effective rows, treated and control
    spread: Numbers  # (m, m): the mean of both groups' covariances

    def told(self) -> dict[str, Any]:
        """Return what is no table, as JSON has it."""
        return self.model_dump(mode="json")

    def tables(self) -> dict[str, Matrix]:
        """Return every table by its name."""
        return {name: getattr(self, name) for name in ("means", "differences", "sizes", "spread")}

    @model_validator(mode="after")
    def _settle(self) -> Self:
        """Refuse tables that do not belong together."""
        n_kinds, n_lines, width = len({*self.kinds}), len({*self.adjusted}), len(self.spread)
        shapes = [(n_kinds, 3), (n_lines, width), (n_lines, 2), (width, width)]
        fits = [each.shape for each in self.tables().values()] == shapes
        if not fits or self.adjusted[:1] != (BEFORE,) or len(self.adjusted) > n_lines:
            raise ValueError("its effects have tables or words that do not belong together")
        if not all(np.isfinite(each).all() for each in self.tables().values()):
            raise ValueError("its effects are not all finite")
        if min(self.sizes.min(), self.means[:, 2].min(), np.diag(self.spread).min()) < 0:
            raise ValueError("a size, an error or a variance of its effects is below 0")
        return self
