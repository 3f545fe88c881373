"""The round as a regressor."""

from typing import Any, ClassVar

import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from cobasis.estimators.inputs import Array, label_column
from cobasis.estimators.predictor import CollaborativePredictor
from cobasis.models import Task


class CollaborativeRegressor(
    RegressorMixin,  # type: ignore[misc]  # scikit-learn is untyped: its classes are Any
    CollaborativePredictor,
):
    """Predict numbers for rows of several parties that do not pool them.

    Parameters
    ----------
    estimator : estimator, str or None
        Trained on the aligned rows: a scikit-learn regressor or pipeline, fitted as it is, or
        the name of a family ("ridge", "mlp", "rff", "boosted_trees", "xgboost", "svm"), tuned by
        cross-validation. None is "ridge".
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
    scaler that is fitted to everybody's rows: no party has those. A fitted estimator holds
    secret bases, which refuse to be pickled or copied; keep it where it was made, or `clone`
    it unfitted.

    **Who sees what.** A simulation: one process plays all parties and the analyst.

    **Cost.** As ``simulate``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import numpy as np
    >>> from cobasis.estimators import CollaborativeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> parties = np.array(["north", "south", "east", "west"])[np.arange(len(X)) % 4]
    >>> model = CollaborativeRegressor(n_components=7, random_state=0)
    >>> model.fit(X[:200], y[:200], parties=parties[:200]).score(
    ...     X[200:], y[200:], parties=parties[200:]) > 0.2
    True
    """

    _task: ClassVar[Task] = "regression"

    _metric: ClassVar = staticmethod(r2_score)

    score = CollaborativePredictor.score  # the mixin's has no parties

    def _labels(
        self, y: npt.ArrayLike | None, *, n_rows: int
    ) -> tuple[Array | None, dict[str, Any]]:
        """Return labels as they are; the parties check that they are finite numbers."""
        return label_column(y, n_rows=n_rows, estimator=type(self).__name__), {}
