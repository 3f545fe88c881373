"""What classifier and regressor share: a model on the aligned rows, and predictions."""

from collections.abc import Callable
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier, is_regressor

from cobasis.algorithms import AlignerName, AnchorKind, BasisName
from cobasis.algorithms.base import Aligner
from cobasis.errors import OptionError
from cobasis.estimators.inputs import Array, Features, label_column
from cobasis.estimators.transformer import REQUESTED, CollaborativeTransformer
from cobasis.models import Estimator, ModelName
from cobasis.models.chain import Chain
from cobasis.models.trainer import TrainedModel
from cobasis.protocol.party import Party


def trained(party: Party) -> Chain | TrainedModel:
    """Return the common model as it came back to a party."""
    return cast("Chain | TrainedModel", party.returned.model)


class CollaborativePredictor(CollaborativeTransformer):
    """Train a model on the aligned rows of all parties.

    Parameters
    ----------
    estimator, allow_row_carrying
        As `CollaborativeClassifier` says.
    n_components, aligner, anchor, n_anchor_rows, basis, public_rows, features, party_column,
    random_state
        As `CollaborativeTransformer` says.

    Notes
    -----
    **Who sees what.** As ``simulate``.

    **Cost.** As ``simulate``.
    """

    _metric: ClassVar[Callable[..., float]]

    __metadata_request__predict: ClassVar = REQUESTED
    __metadata_request__score: ClassVar = REQUESTED

    def __init__(
        self,
        *,
        estimator: ModelName | Estimator | None = None,
        n_components: int | None = None,
        aligner: AlignerName | Aligner = "odc",
        anchor: AnchorKind = "isometric",
        n_anchor_rows: int | None = None,
        basis: BasisName = "svd",
        public_rows: npt.ArrayLike | None = None,
        features: Features | None = None,
        party_column: str | int | None = None,
        allow_row_carrying: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            n_components=n_components,
            aligner=aligner,
            anchor=anchor,
            n_anchor_rows=n_anchor_rows,
            basis=basis,
            public_rows=public_rows,
            features=features,
            party_column=party_column,
            random_state=random_state,
        )
        self.estimator = estimator
        self.allow_row_carrying = allow_row_carrying

    def predict(self, X: npt.ArrayLike, *, parties: npt.ArrayLike | None = None) -> Array:
        """Predict each row's label with its own party's basis and the common model, eq. (9).

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            Columns as in `fit`.
        parties : array-like of shape (n_rows,)
            The name of each row's party, one of `parties_`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels in the order of `X`, of the type of `y`; numbers for a regressor.

        Raises
        ------
        NotFittedError
            `fit` has not been called.
        UnknownPartyError
            A party that was not in `fit`.
        LocalError
            The rows are not as in `fit`, or `parties` is not one name per row.

        Notes
        -----
        **Who sees what.** Every row stays at its party.

        **Cost.** Two products and the model.
        """
        return self._as_given(self._at_parties(X, parties, Party.predict))

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
        X : array-like or data frame of shape (n_rows, n_features)
            Columns as in `fit`.
        y : array-like of shape (n_rows,)
            True labels.
        parties : array-like of shape (n_rows,)
            The name of each row's party, one of `parties_`.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        float
            One is perfect.

        Raises
        ------
        NotFittedError, UnknownPartyError, LocalError
            As `predict`; `y` is not one label per row.

        Notes
        -----
        **Who sees what.** Every row stays at its party, in a simulation: a score over the rows
        of several parties is a number that no single party has.

        **Cost.** As `predict`.
        """
        predicted = self.predict(X, parties=parties)
        labels = label_column(y, n_rows=len(predicted), estimator=type(self).__name__)
        return float(self._metric(labels, predicted, sample_weight=sample_weight))

    def _as_given(self, predicted: Array) -> Array:
        """Return predictions in the type of `y`."""
        return predicted

    def _scores(self, X: npt.ArrayLike, parties: npt.ArrayLike | None, method: str) -> Array:
        """Call `method` of the model on aligned rows."""
        return self._at_parties(
            X,
            parties,
            lambda party, rows: trained(party).scores(party.transform(rows), method=method),
        )

    def _options(self, *, n_features: int) -> dict[str, Any]:
        """Return what `simulate` is asked for, the model included."""
        self._refuse_estimator()
        return {
            **super()._options(n_features=n_features),
            "model": self.estimator,
            "allow_row_carrying": self.allow_row_carrying,
        }

    def _refuse_estimator(self) -> None:
        """Refuse what is no model, or one for the other task."""
        model, task = self.estimator, self._task
        if model is None or isinstance(model, str):
            return
        other = is_regressor if task == "classification" else is_classifier
        if isinstance(model, type) or not {"fit", "predict"} <= set(dir(type(model))):
            reason = "has no fit and predict to call"
        elif hasattr(model, "__sklearn_tags__") and other(model):
            reason = f"is not for {task}"
        else:
            return
        raise OptionError(
            f"estimator={model!r} {reason}. Give a scikit-learn estimator or pipeline for {task}, "
            "the name of a family such as 'rff', or None for the default."
        )
