"""Numeric features: names, units, and the centre and scale that all parties share.

Centre and scale are constants of the agreement. A party that centred by its own mean would
add an offset that no change of basis can undo. What stands for a missing number is a constant
as well, and not the mean of one party's rows.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

from cobasis.errors import FeatureError

Finite = Annotated[float, Field(allow_inf_nan=False)]
ColumnName = Annotated[str, Field(min_length=1, max_length=200)]


class NumericFeature(BaseModel):
    """One numeric column of the agreement: ``(value - centre) / scale`` goes into the round.

    Attributes
    ----------
    name : str
        The column's name.
    kind : {"number"}
        What tells it from a category.
    centre, scale : float
        Public constants, the scale above zero.
    unit : str
        What a 1 stands for, in words; nothing is converted.
    low, high : float or None
        What values lie between; the check before an upload leaves refuses others.
    missing : {"refuse", "fill"}
        Whether a party may have cells without a number.
    fill : float or None
        What stands for them, in the column's unit; given if missing is "fill", and only then.

    Notes
    -----
    **Who sees what.** Public: a field of the agreement. Take the constants from a code book, and
    not from the rows of one party.

    **Cost.** None.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    name: ColumnName
    kind: Literal["number"] = "number"
    centre: Finite = 0.0
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    unit: Annotated[str, Field(max_length=100)] = ""
    low: Finite | None = None
    high: Finite | None = None
    missing: Literal["refuse", "fill"] = "refuse"
    fill: Finite | None = None

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        """Refuse constants that contradict each other."""
        if (self.missing == "fill") != (self.fill is not None):
            raise ValueError('missing="fill" goes with a number in fill, and only with one')
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low={self.low} is above high={self.high}")
        return self

    def __repr_args__(self) -> "Iterable[tuple[str | None, Any]]":
        """Show name, centre and scale, and of the others what is not the default."""
        always = {"name", "centre", "scale"}
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if name in always or value != field.default:
                yield name, value


def numeric_features(
    names: Iterable[str], *, centre: npt.ArrayLike = 0.0, scale: npt.ArrayLike = 1.0
) -> tuple[NumericFeature, ...]:
    """Make a tuple of numeric features from names and constants.

    Parameters
    ----------
    names : iterable of str
        Column names in their order.
    centre, scale : float or array-like of shape (n_features,)
        Public constants.

    Returns
    -------
    tuple of NumericFeature
        For ``Agreement(features=...)``.

    Raises
    ------
    FeatureError
        An empty name, a scale that is not above zero, or constants of another shape.

    Notes
    -----
    **Who sees what.** The constants are public: take them from a code book or from public
    data, not from the rows of one party.

    **Cost.** None.

    Examples
    --------
    >>> numeric_features(["age"], centre=60, scale=20)
    (NumericFeature(name='age', centre=60.0, scale=20.0),)
    """
    listed = list(names)
    try:
        centres = np.broadcast_to(np.asarray(centre, dtype=np.float64), len(listed))
        scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), len(listed))
        return tuple(
            NumericFeature(name=str(name), centre=float(middle), scale=float(unit))
            for name, middle, unit in zip(listed, centres, scales, strict=True)
        )
    except ValueError as error:
        raise FeatureError(
            f"these {len(listed)} features need names, and one finite centre and one scale above "
            "zero for all or for each. Correct the constants."
        ) from error
