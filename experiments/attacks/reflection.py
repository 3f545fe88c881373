"""Working out another party's own span from the consensus span that all parties get.

**Who.** All parties of a consensus but one, who put their own spans together; with two parties
either of them. **What stops it.** One party among the others that does not help (two parties are
refused for having none); basis ``public`` or ``haar``, which no rows shape. **What does not.** The
anchor, which every party has; the rotation E_i; angles above 45 degrees between the last span and
the consensus, which blur the result and do not hide it. The weighted consensus was not attacked.

What is found is the span of the party's leading directions: with rows hardly more than components
it tells who is among them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix


@dataclass(frozen=True, kw_only=True, repr=False)
class Reflection(Hidden):
    """Parties that got the consensus and put together what each of them proposed."""

    consensus: Matrix
    proposed: Sequence[Matrix]

    def last_span(self) -> Matrix:
        """Return the span of the one party whose span is missing.

        Z is an invariant span of the sum of all projectors ``V_i V_i'``, so the missing one's
        part between Z and its complement is minus the sum of the others'. A projector whose
        principal angles to Z are t has singular values ``sin(2 t) / 2`` there, which gives t
        where it is below 45 degrees. With two parties this is ``2 Z Z' V_1 - V_1``.
        """
        span = as_matrix(self.consensus, name="consensus")
        if not self.proposed:
            raise ShapeError(
                "no party helps, so there is nothing to subtract. Give one proposed span at least."
            )
        between = np.zeros_like(span)
        for columns in self.proposed:
            own = np.linalg.qr(as_matrix(columns, name="a proposed span"))[0]
            if len(own) != len(span):
                raise ShapeError(
                    f"a proposed span has {len(own)} features and the consensus {len(span)}. Give "
                    "spans of one round."
                )
            between -= own @ (own.T @ span)
        between -= span @ (span.T @ between)
        out, values, right = np.linalg.svd(between, full_matrices=False)
        angles = np.arcsin(np.clip(2 * values, 0.0, 1.0)) / 2
        last: Matrix = span @ right.T * np.cos(angles) + out * np.sin(angles)
        return last
