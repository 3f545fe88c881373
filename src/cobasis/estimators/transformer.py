"""The round as a transformer; what all estimators share: `fit`, and rows sent to their parties."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from cobasis.algorithms import AlignerName, AnchorKind, BasisName
from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS
from cobasis.algorithms.base import Aligner
from cobasis.errors import OptionError, ShapeError, UnknownPartyError
from cobasis.estimators.inputs import (
    Features,
    as_column,
    generator,
    label_column,
    members_of,
    names_of,
    open_table,
    party_labels,
    take_features,
    take_parties,
    travelling_classes,
)
from cobasis.features.encoder import column_names
from cobasis.linalg.arrays import Array, Matrix
from cobasis.models import Task
from cobasis.protocol.simulation import simulate

OF_ROWS = ("n_components", "aligner", "anchor", "n_anchor_rows", "basis", "public_rows")
_REQUESTED = {"parties": True}
"""Asked for by default when scikit-learn routes metadata; nobody has to set a request."""


@dataclass(kw_only=True, eq=False, repr=False)
class CollaborativeTransformer(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn is untyped:
    TransformerMixin,  # type: ignore[misc]  # its classes are Any
    BaseEstimator,  # type: ignore[misc]
):
    """Bring the rows of several parties into one aligned representation.

    Parameters
    ----------
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
    >>> import numpy as np
    >>> from cobasis.estimators import CollaborativeTransformer
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> parties = np.array(["north", "south", "east", "west"] * 25)
    >>> model = CollaborativeTransformer(n_components=4, basis="haar", random_state=0)
    >>> model.fit_transform(X, parties=parties).shape
    (100, 4)
    >>> model.round_.analyst.certificate.parties["north"].evidence
    'cannot tell'
    """

    __metadata_request__fit: ClassVar = _REQUESTED
    __metadata_request__transform: ClassVar = _REQUESTED
    __metadata_request__predict: ClassVar = _REQUESTED
    __metadata_request__predict_proba: ClassVar = _REQUESTED
    __metadata_request__decision_function: ClassVar = _REQUESTED
    __metadata_request__score: ClassVar = _REQUESTED

    _task: ClassVar[Task] = "representation"

    n_components: int | None = None
    aligner: AlignerName | Aligner = "odc"
    anchor: AnchorKind = "isometric"
    n_anchor_rows: int | None = None
    basis: BasisName = "svd"
    public_rows: npt.ArrayLike | None = None
    features: Features | None = None
    party_column: str | int | None = None
    random_state: int | np.random.RandomState | None = None

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        parties: npt.ArrayLike | None = None,
    ) -> Self:
        """Run a whole round: every party uploads, the analyst aligns and trains, all get returns.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            Rows of all parties, on a scale and centre that are public constants.
        y : array-like of shape (n_rows,), optional
            Labels; a transformer ignores them.
        parties : array-like of shape (n_rows,)
            The name of each row's party; there is no default, and None is refused.

        Returns
        -------
        self
            Fitted; unchanged if anything was raised.

        Raises
        ------
        CobasisError
            As ``simulate``, which warns too; `parties` is missing or not one name per row.
        """
        names = column_names(X)
        table, held = self._opened(X, parties, names=None)
        named = names_of(held)
        labels: Any = None
        if self._task != "representation":
            labels = self._labels(y, n_rows=len(held))
        sent = travelling_classes(labels) if self._task == "classification" else labels
        done = simulate(
            {
                name: (table[own], None if sent is None else sent[own])
                for name, own in members_of(held, named).items()
            },
            rng=generator(self.random_state),
            features=self.features,
            task=self._task,
            **self._options(n_features=table.shape[1]),
        )
        self.round_, self.parties_, self._named = done, as_column(named), named
        self.n_features_in_ = table.shape[1] if names is None else len(names)
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        if self._task == "classification":
            self.classes_ = np.unique(labels)
        return self

    def fit_transform(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        parties: npt.ArrayLike | None = None,
    ) -> Matrix:
        """Fit, then bring the same rows into the aligned representation.

        Parameters
        ----------
        X, y, parties : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            As of `transform`.
        """
        return self.fit(X, y, parties=parties).transform(X, parties=parties)

    def transform(self, X: npt.ArrayLike, *, parties: npt.ArrayLike | None = None) -> Matrix:
        """Bring each row into the aligned representation, by its own party's ``F_i G_i``.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            Columns as in `fit`.
        parties : array-like of shape (n_rows,)
            The name of each row's party, one of `parties_`.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            Aligned rows, in the order of `X`.

        Raises
        ------
        NotFittedError
            `fit` has not been called.
        UnknownPartyError
            A party that was not in `fit`.
        LocalError
            The rows are not as in `fit`, or `parties` is not one name per row.
        """
        return self._at_parties(X, parties, lambda party, rows: party.transform(rows))

    def _at_parties(
        self, X: npt.ArrayLike, parties: npt.ArrayLike | None, work: Callable[[Any, Any], Array]
    ) -> Array:
        """Let every party do `work` on its own rows, and put the results in the order of `X`."""
        check_is_fitted(self, "round_")
        by_name = self.features is not None or isinstance(self.party_column, str)
        names = getattr(self, "feature_names_in_", None)
        table, held = self._opened(X, parties, names=names if by_name else None)
        if unknown := {label for label in held if label not in self._named}:
            raise UnknownPartyError(
                f"parties that were not in fit: {', '.join(sorted(map(repr, unknown))[:5])} "
                f"({len(unknown)} in all). They have no basis, so nothing can be projected. Known: "
                f"{', '.join(map(repr, self._named))}. Correct the labels, or fit with their rows."
            )
        if self.features is None:
            agreed = self.round_.agreement.columns
            if table.shape[1] != len(agreed):
                raise ShapeError(
                    f"X has {table.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{len(agreed)} features as input. Give the columns that fit was given."
                )
        members = members_of(held, self._named)
        done = np.concatenate(
            [work(self.round_.parties[name], table[own]) for name, own in members.items()]
        )
        ordered = np.empty_like(done)
        ordered[np.concatenate(list(members.values()))] = done
        return ordered

    def _opened(
        self, X: npt.ArrayLike, parties: npt.ArrayLike | None, *, names: Sequence[str] | None
    ) -> tuple[Matrix | nw.DataFrame[Any], list[Hashable]]:
        cells = open_table(X, names=names)
        if self.party_column is not None:
            if parties is not None:
                raise OptionError(
                    f"parties are given, and party_column={self.party_column!r} as well. Give one."
                )
            cells, parties = take_parties(cells, self.party_column)
        table = take_features(cells, self.features)
        return table, party_labels(parties, n_rows=len(table))

    def _labels(self, y: npt.ArrayLike | None, *, n_rows: int) -> Array:
        return label_column(y, n_rows=n_rows, estimator=type(self).__name__)

    def _options(self, *, n_features: int) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in OF_ROWS}
        if self.n_components is None:
            given["n_components"] = max(1, n_features // 2)
        if self.anchor not in FROM_PUBLIC_ROWS and self.basis != "public":
            given["public_rows"] = None
        return given

    @property
    def _n_features_out(self) -> int:
        """The number of columns that `transform` gives, for ``get_feature_names_out``."""
        agreed = self.round_.agreement
        return int(agreed.n_components or agreed.n_features)  # sums have no components
