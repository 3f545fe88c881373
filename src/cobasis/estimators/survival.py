"""The round as a Cox regression, with labels as scikit-survival has them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from cobasis.algorithms import BasisName
from cobasis.errors import LabelError, OptionError
from cobasis.estimators.inputs import label_column
from cobasis.estimators.transformer import REQUESTED, CollaborativeTransformer
from cobasis.features.outcome import VALUE, Outcome, record_type
from cobasis.linalg.arrays import Array, Matrix
from cobasis.models import Task
from cobasis.statistics.coefficients import CoefficientTable
from cobasis.statistics.survival import survival_figures


@dataclass(kw_only=True, eq=False, repr=False)
class CollaborativeSurvival(CollaborativeTransformer):
    """Fit one Cox regression to rows of several parties that do not pool them.

    Aligner, anchor, features and all else are as of `CollaborativeTransformer`.

    Parameters
    ----------
    horizons : sequence of float
        Times for which `predict_survival` gives the share without event.
    errors : {"model", "robust", "party"}
        Standard errors of `coefficients`.

    Attributes
    ----------
    round_, parties_, n_features_in_, feature_names_in_
        As `CollaborativeTransformer`.

    Notes
    -----
    All encoded columns are aligned, so coefficients and errors are those of all rows together.
    Labels are a structured array as of ``sksurv.util.Surv``: one field of booleans, whether the
    event was seen, and one of times.

    **Who sees what.** A simulation: one process plays all parties and the analyst.

    **Cost.** As ``simulate``.

    Examples
    --------
    >>> import numpy as np
    >>> from cobasis.estimators import CollaborativeSurvival
    >>> rng = np.random.default_rng(0)
    >>> X, parties = rng.normal(size=(300, 3)), np.arange(300) % 3
    >>> time = rng.exponential(np.exp(-X @ [1.0, 0.5, 0.0]))
    >>> y = np.array([(t < 2, min(t, 2)) for t in time], dtype=[("event", "?"), ("time", "<f8")])
    >>> model = CollaborativeSurvival(random_state=0).fit(X, y, parties=parties)
    >>> model.score(X, y, parties=parties) > 0.7
    True
    """

    __metadata_request__predict: ClassVar = REQUESTED
    __metadata_request__score: ClassVar = REQUESTED

    _task: ClassVar[Task] = "survival"

    horizons: Sequence[float] = ()
    errors: Literal["model", "robust", "party"] = "model"
    n_components: int | None = field(default=None, init=False)
    n_anchor_rows: int | None = field(default=None, init=False)
    basis: BasisName = field(default="haar", init=False)
    public_rows: npt.ArrayLike | None = field(default=None, init=False)

    def predict(self, X: npt.ArrayLike, *, parties: npt.ArrayLike | None = None) -> Array:
        """Predict each row's log hazard beside that of the agreed centre; larger is worse."""
        return self._at_parties(X, parties, lambda party, rows: party.predict(rows))

    def predict_survival(self, X: npt.ArrayLike, *, parties: npt.ArrayLike | None = None) -> Matrix:
        """Predict each row's share without event, a column for each of `horizons`."""
        return self._at_parties(
            X, parties, lambda party, rows: party.model.survival(party.transform(rows))
        )

    def coefficients(self) -> CoefficientTable:
        """Return hazard ratios with intervals, the same at every party."""
        check_is_fitted(self, "round_")
        found: CoefficientTable = next(iter(self.round_.parties.values())).coefficients()
        return found

    def score(
        self, X: npt.ArrayLike, y: npt.ArrayLike, *, parties: npt.ArrayLike | None = None
    ) -> float:
        """Return the C-index: how often, of two rows, that of larger hazard had its event first."""
        risk = self.predict(X, parties=parties)
        truth, none = self._labels(y, n_rows=len(risk)), np.empty((len(risk), 0))
        found = survival_figures(truth, risk=risk, shares=none, horizons=())
        if "C-index" not in found:
            raise LabelError(
                "of no two rows of y is it known whose event came first, so there is no C-index. "
                "Score rows of which some had the event while others were followed."
            )
        return found["C-index"].value

    def _labels(self, y: npt.ArrayLike | None, *, n_rows: int) -> Array:
        given = np.asarray(y)
        names = given.dtype.names or ()
        if "".join(given.dtype[name].kind for name in names) not in {"bf", "bi", "bu"}:
            raise LabelError(
                f"y has dtype {given.dtype}, and survival takes a structured array of two fields: "
                "booleans, whether the event was seen, and times. Make it with "
                "sksurv.util.Surv.from_arrays(event, time)."
            )
        found = np.empty(len(given), dtype=record_type({"event": ""}))
        found["event"], found[VALUE] = (given[name] for name in names)
        label_column(found[VALUE], n_rows=n_rows, estimator=type(self).__name__)
        if not np.all((found[VALUE] > 0) & (found[VALUE] < np.inf)):
            raise LabelError("y has times that are no finite number above 0. Correct or drop them.")
        return found

    def _options(self, *, n_features: int) -> dict[str, Any]:
        options = super()._options(n_features=n_features)
        try:
            outcome = Outcome(event="event", horizons=tuple(self.horizons), errors=self.errors)
        except (TypeError, ValueError):
            raise OptionError(
                f"horizons={self.horizons!r} or errors={self.errors!r} cannot stand. Give times "
                "above 0, and errors='model', 'robust' or 'party'."
            ) from None
        return {**options, "n_components": None, "model": "cox", "outcome": outcome}
