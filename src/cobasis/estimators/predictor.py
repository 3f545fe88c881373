"""What classifier and regressor share: a model on the aligned rows, and predictions."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier, is_regressor

from cobasis.algorithms.anchors import AnchorKind
from cobasis.algorithms.base import Aligner
from cobasis.algorithms.bases import BasisName
from cobasis.algorithms.registry import AlignerName
from cobasis.errors import OptionError
from cobasis.estimators.base import CollaborativeBase
from cobasis.estimators.inputs import Array
from cobasis.models.families import Estimator, ModelName
from cobasis.protocol.party import Party

_BY_DEFAULT = {"parties": True}


class CollaborativePredictor(CollaborativeBase):
    """Train a model on the aligned rows of all parties.

    Parameters
    ----------
    estimator, allow_row_carrying
        As `CollaborativeClassifier` says.
    n_components, aligner, anchor, n_anchor_rows, basis, public_rows, random_state
        As `CollaborativeTransformer` says.

    Notes
    -----
    **Who sees what.** As ``simulate``.

    **Cost.** As ``simulate``.
    """

    __metadata_request__predict: ClassVar = _BY_DEFAULT
    __metadata_request__score: ClassVar = _BY_DEFAULT

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
            random_state=random_state,
        )
        self.estimator = estimator
        self.allow_row_carrying = allow_row_carrying

    def predict(self, X: npt.ArrayLike, *, parties: npt.ArrayLike) -> Array:
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
        return self._at_parties(X, parties, Party.predict)

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
        if isinstance(model, type) or not (hasattr(model, "fit") and hasattr(model, "predict")):
            reason = "has no fit and predict to call"
        elif hasattr(model, "__sklearn_tags__") and other(model):
            reason = f"is not for {task}"
        else:
            return
        msg = (
            f"estimator={model!r} {reason}. Give a scikit-learn estimator or pipeline for {task}, "
            "the name of a family such as 'rff', or None for the default."
        )
        raise OptionError(msg)
