"""The round as a classifier."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if

from cobasis.estimators.inputs import Array, label_column, travelling_classes
from cobasis.estimators.predictor import CollaborativePredictor, trained
from cobasis.estimators.transformer import REQUESTED
from cobasis.models import Task
from cobasis.models.chain import Chain
from cobasis.models.families import FAMILIES, default_model


def _model_has(method: str) -> Callable[["CollaborativeClassifier"], bool]:
    """Return a check whether the model, fitted or not, has `method`."""

    def check(self: "CollaborativeClassifier") -> bool:
        model = default_model(self._task) if self.estimator is None else self.estimator
        if hasattr(self, "round_"):
            fitted = trained(next(iter(self.round_.parties.values())))
            if isinstance(fitted, Chain):
                return fitted.method == method
            model = fitted.estimator
        elif isinstance(model, str) and model in FAMILIES:
            return method == ("predict_proba" if FAMILIES[model].likely else "decision_function")
        return hasattr(model, method)

    return check


class CollaborativeClassifier(
    ClassifierMixin,  # type: ignore[misc]  # scikit-learn is untyped: its classes are Any
    CollaborativePredictor,
):
    """Classify rows of several parties that do not pool them.

    Parameters
    ----------
    estimator : estimator, str or None
        Trained on the aligned rows: a scikit-learn classifier or pipeline, fitted as it is, or
        the name of a family ("logistic", "ridge", "mlp", "rff", "boosted_trees",
        "xgboost", "svm"), tuned
        by cross-validation. None is "logistic".
    n_components : int, optional
        l, columns of every secret basis; by default half the features, at least one. Fewer
        components show the analyst less, and keep less.
    aligner : str or Aligner
        "odc", "gopp", "whitened", "imakura", "kawakami", or one with other options.
    anchor : {"isometric", "gaussian", "uniform", "public", "smote"}
        The anchor's kind.
    n_anchor_rows : int, optional
        a; by default as ``simulate`` chooses it.
    basis : {"svd", "pca", "lpp", "haar", "public", "consensus", "weighted_consensus"}
        How parties choose their bases.
    public_rows : array-like of shape (n_public, n_features), optional
        For public anchors and bases; unused by others, so that a search can compare them.
    features : sequence of NumericFeature or CategoryFeature, optional
        What columns hold: centres and scales, categories, blanks. A data frame's columns are taken
        by these names, and others are left alone. By default all columns, numbers as they are.
    party_column : str or int, optional
        The column of `X` that says whose row each is, by name or, of an array, position. It is no
        feature, and takes the place of `parties` where scikit-learn cannot pass that on.
    allow_row_carrying : bool
        Accept models that store rows, such as "svm" or nearest neighbours.
    random_state : int, RandomState or None
        Fills the simulated keys; None draws fresh entropy at every fit.

    Attributes
    ----------
    round_ : Round
        The finished round; ``round_.analyst.certificate`` is of its alignment.
    classes_ : ndarray of shape (n_classes,)
        Labels that occurred, sorted, of the type of `y`.
    parties_ : ndarray of shape (n_parties,)
        Labels of the parties, sorted; in ``round_`` a party has its label as text for a name.
    n_features_in_ : int
        m, number of columns of `X`.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where `X` was a data frame with names.

    Raises
    ------
    CobasisError
        By `fit`, as ``simulate``.

    Notes
    -----
    Rows are taken as they are. Centre and scale by constants that are public, never by a
    scaler that is fitted to everybody's rows: no party has those. Labels are text, integers
    or booleans; the agreement writes booleans as 0 and 1, `predict` gives booleans back. A
    fitted estimator holds secret bases, which refuse to be pickled or copied; keep it where
    it was made, or `clone` it unfitted.

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

    __metadata_request__predict_proba: ClassVar = REQUESTED
    __metadata_request__decision_function: ClassVar = REQUESTED

    _task: ClassVar[Task] = "classification"

    _metric: ClassVar = staticmethod(accuracy_score)

    score = CollaborativePredictor.score  # the mixin's has no parties

    @available_if(_model_has("predict_proba"))  # type: ignore[untyped-decorator]  # scikit-learn
    def predict_proba(self, X: npt.ArrayLike, *, parties: npt.ArrayLike | None = None) -> Array:
        """Estimate the probability of each class, where the model can."""
        return self._scores(X, parties, "predict_proba")

    @available_if(_model_has("decision_function"))  # type: ignore[untyped-decorator]  # the same
    def decision_function(self, X: npt.ArrayLike, *, parties: npt.ArrayLike | None = None) -> Array:
        """Score each class, where the model can."""
        return self._scores(X, parties, "decision_function")

    def _labels(
        self, y: npt.ArrayLike | None, *, n_rows: int
    ) -> tuple[Array | None, dict[str, Any]]:
        """Return labels as they travel, and the classes."""
        labels = label_column(y, n_rows=n_rows, estimator=type(self).__name__)
        classes, travelling = travelling_classes(labels)
        return travelling, {"classes_": classes}

    def _as_given(self, predicted: Array) -> Array:
        """Turn the agreement's classes back into those of `y`; both are sorted."""
        found: Array = self.classes_[np.searchsorted(self.round_.agreement.classes, predicted)]
        return found
