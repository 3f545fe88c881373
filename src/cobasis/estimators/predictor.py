"""The round as a classifier, a regressor and a Cox regression: one model, and predictions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cobasis.algorithms import BasisName
from cobasis.errors import LabelError, OptionError
from cobasis.estimators.inputs import label_column
from cobasis.estimators.transformer import OF_ROWS, CollaborativeTransformer
from cobasis.features.maps import Columns, Mixed, RandomFourier
from cobasis.features.outcome import VALUE, Outcome, record_type
from cobasis.linalg.arrays import Array, Matrix
from cobasis.models import Estimator, ModelName, Task
from cobasis.models.chain import Chain
from cobasis.protocol.sums_terms import Release
from cobasis.statistics.coefficients import CoefficientTable
from cobasis.statistics.survival import survival_figures


@dataclass(kw_only=True, eq=False, repr=False)
class CollaborativePredictor(CollaborativeTransformer):
    """What classifier and regressor share: a model on the aligned rows of all parties."""

    estimator: ModelName | Estimator | None = None
    release: Release = "rows"
    maps: Sequence[Columns | RandomFourier | Mixed] | None = None
    allow_row_carrying: bool = False

    def predict(self, X: npt.ArrayLike, *, parties: npt.ArrayLike | None = None) -> Array:
        """Predict each row's label with its own party's basis and the common model, eq. (9).

        Parameters
        ----------
        X, parties : array-like
            As `transform`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels in the order of `X`, of the type of `y`; numbers for a regressor.
        """
        found: Array = self._at_parties(X, parties, lambda party, rows: party.predict(rows))
        if self._task == "classification":  # the agreement's, as it writes them; both are sorted
            found = self.classes_[np.searchsorted(self.round_.agreement.classes, found)]
        return found

    def score(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        parties: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Compare predictions with labels: accuracy of a classifier, R2 of a regressor.

        Parameters
        ----------
        X, y, parties, sample_weight : array-like
            As `fit`, and a weight for each row.

        Returns
        -------
        float
            One is perfect. Between organisations no single party has such a number.
        """
        predicted = self.predict(X, parties=parties)
        labels = label_column(y, n_rows=len(predicted), estimator=type(self).__name__)
        metric = accuracy_score if self._task == "classification" else r2_score
        return float(metric(labels, predicted, sample_weight=sample_weight))

    def _options(self, *, n_features: int) -> dict[str, Any]:
        """Return what `simulate` is asked for; OptionError where the estimator is no model."""
        model, task = self.estimator, self._task
        asked = (*OF_ROWS, "release", "maps", "allow_row_carrying")
        options = {"model": model, **{name: getattr(self, name) for name in asked}}
        if self.release == "sums":  # which refuses whatever says how rows are projected
            return options
        other = is_regressor if task == "classification" else is_classifier
        if not isinstance(model, str | None) and (
            isinstance(model, type)
            or not hasattr(model, "predict")
            or (hasattr(model, "__sklearn_tags__") and other(model))
        ):
            raise OptionError(
                f"estimator={model!r} is no estimator for {task}. Give one of scikit-learn's or a "
                "pipeline, the name of a family such as 'rff', or None for the default."
            )
        return options | super()._options(n_features=n_features)


def _model_has(method: str) -> Callable[["CollaborativeClassifier"], bool]:
    """Return a check whether the model, fitted or not, has `method`."""

    def check(self: "CollaborativeClassifier") -> bool:
        model = self.estimator
        if hasattr(self, "round_"):
            fitted = next(iter(self.round_.parties.values())).model
            if isinstance(fitted, Chain):
                return fitted.method == method
            model = fitted.estimator
        elif self.release == "sums" or isinstance(model, str | None):
            scored = self.release == "sums" or model == "svm"
            return method == ("decision_function" if scored else "predict_proba")
        return hasattr(model, method)

    return check


class CollaborativeClassifier(
    ClassifierMixin,  # type: ignore[misc]  # scikit-learn is untyped: its classes are Any
    CollaborativePredictor,
):
    """Classify rows of several parties that do not pool them.

    All that is not told of here is as of `CollaborativeTransformer`.

    Parameters
    ----------
    estimator : estimator, str or None
        Trained on the aligned rows: a scikit-learn classifier or pipeline, fitted as it is, or
        the name of a family ("logistic", "ridge", "mlp", "rff", "boosted_trees", "xgboost",
        "svm"), tuned by cross-validation. None is "logistic".
    release : {"rows", "sums"}
        What parties send: projected rows, or masked sums, for which `estimator` and all that says
        how rows are projected stay as they are by default.
    maps : sequence of Columns, RandomFourier or Mixed, optional
        Of which sums are made, or one that rows go through, as ``simulate`` takes them.
    allow_row_carrying : bool
        Accept models that store rows, such as "svm" or nearest neighbours.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels that occurred, sorted, of the type of `y`.
    round_, parties_, n_features_in_, feature_names_in_
        As `CollaborativeTransformer`.

    Notes
    -----
    Labels are text, integers or booleans; the agreement writes
    booleans as 0 and 1, `predict` gives booleans back.

    **Who sees what.** A simulation: one process plays all parties and the analyst.

    **Cost.** As ``simulate``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import numpy as np
    >>> from cobasis.estimators import CollaborativeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> parties = np.array(["north", "south", "east", "west"])[np.arange(600) % 4]
    >>> model = CollaborativeClassifier(n_components=24, estimator="ridge", random_state=0)
    >>> model = model.fit(X[:600] / 16, y[:600], parties=parties)
    >>> model.score(X[600:1200] / 16, y[600:1200], parties=parties) > 0.85
    True
    """

    _task: ClassVar[Task] = "classification"

    score = CollaborativePredictor.score  # the mixin's has no parties

    @available_if(_model_has("predict_proba"))  # type: ignore[untyped-decorator]  # scikit-learn
    def predict_proba(self, X: npt.ArrayLike, *, parties: npt.ArrayLike | None = None) -> Array:
        """Estimate the probability of each class, where the model can."""
        return self._scores(X, parties, "predict_proba")

    @available_if(_model_has("decision_function"))  # type: ignore[untyped-decorator]  # the same
    def decision_function(self, X: npt.ArrayLike, *, parties: npt.ArrayLike | None = None) -> Array:
        """Score each class, where the model can."""
        return self._scores(X, parties, "decision_function")

    def _scores(self, X: npt.ArrayLike, parties: npt.ArrayLike | None, method: str) -> Array:
        return self._at_parties(
            X, parties, lambda party, rows: party.model.scores(party.transform(rows), method=method)
        )


class CollaborativeRegressor(
    RegressorMixin,  # type: ignore[misc]  # scikit-learn is untyped: its classes are Any
    CollaborativePredictor,
):
    """Predict numbers for rows of several parties that do not pool them.

    All that is not told of here is as of `CollaborativeClassifier`.

    Parameters
    ----------
    estimator : estimator, str or None
        Trained on the aligned rows: a scikit-learn regressor or pipeline, fitted as it is, or
        the name of a family ("ridge", "mlp", "rff", "boosted_trees", "xgboost", "svm"), tuned by
        cross-validation. None is "ridge".

    Notes
    -----
    **Who sees what.** A simulation: one process plays all parties and the analyst.

    **Cost.** As ``simulate``.
    """

    _task: ClassVar[Task] = "regression"

    score = CollaborativePredictor.score  # the mixin's has no parties


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
