"""What the three estimators share: the round behind `fit`, and rows sent to their parties."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS, AnchorKind
from cobasis.algorithms.base import Aligner
from cobasis.algorithms.bases import BasisName
from cobasis.algorithms.registry import AlignerName
from cobasis.errors import ShapeError, UnknownPartyError
from cobasis.estimators.inputs import (
    Array,
    as_table,
    generator,
    party_column,
    whole_number,
)
from cobasis.features.numeric import numeric_features
from cobasis.features.reading import column_names, refuse_names
from cobasis.linalg.arrays import Matrix
from cobasis.models.families import Task
from cobasis.protocol.party import Party
from cobasis.protocol.simulation import simulate

REQUESTED = {"parties": True}
"""Asked for by default when scikit-learn routes metadata; nobody has to set a request."""


class CollaborativeBase(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn is untyped:
    TransformerMixin,  # type: ignore[misc]  # its classes are Any
    BaseEstimator,  # type: ignore[misc]
):
    """Fit by a simulated round, and send each row to the party that holds it.

    Parameters
    ----------
    n_components, aligner, anchor, n_anchor_rows, basis, public_rows, random_state
        As `CollaborativeTransformer` says.

    Notes
    -----
    **Who sees what.** As ``simulate``.

    **Cost.** As ``simulate``.
    """

    __metadata_request__fit: ClassVar = REQUESTED
    __metadata_request__transform: ClassVar = REQUESTED

    _task: ClassVar[Task] = "representation"

    def __init__(
        self,
        *,
        n_components: int | None = None,
        aligner: AlignerName | Aligner = "odc",
        anchor: AnchorKind = "isometric",
        n_anchor_rows: int | None = None,
        basis: BasisName = "svd",
        public_rows: npt.ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.aligner = aligner
        self.anchor = anchor
        self.n_anchor_rows = n_anchor_rows
        self.basis = basis
        self.public_rows = public_rows
        self.random_state = random_state

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
            As ``simulate``; `parties` is missing or not one name per row.

        Warns
        -----
        PrivacyWarning
            For uniform and public anchors, once a party.

        Notes
        -----
        **Who sees what.** As ``simulate``: one process plays all roles.

        **Cost.** As ``Round.run``.
        """
        table, names = as_table(X), column_names(X)
        held = party_column(parties, n_rows=len(table))
        labels, learned = self._labels(y, n_rows=len(table))
        members = {str(name): np.flatnonzero(held == name) for name in np.unique(held)}
        done = simulate(
            {
                name: (table[own], None if labels is None else labels[own])
                for name, own in members.items()
            },
            rng=generator(self.random_state),
            features=None if names is None else numeric_features(names),
            task=self._task,
            **self._options(n_features=table.shape[1]),
        )
        self.round_, self.parties_ = done, np.array(list(members))
        self.n_features_in_ = table.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        for name, value in learned.items():
            setattr(self, name, value)
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
            Aligned rows, in the order of `X`.

        Raises
        ------
        CobasisError
            As `fit`.

        Notes
        -----
        **Who sees what.** As `fit` and `transform`.

        **Cost.** As `fit` and `transform`.
        """
        aligned: Matrix = self.fit(X, y, parties=parties).transform(X, parties=parties)
        return aligned

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

        Notes
        -----
        **Who sees what.** Every row stays at its party.

        **Cost.** Two products.
        """
        return self._at_parties(X, parties, Party.transform)

    def _at_parties(
        self,
        X: npt.ArrayLike,
        parties: npt.ArrayLike | None,
        work: Callable[[Party, Matrix], Array],
    ) -> Array:
        """Let every party do `work` on its own rows, and put the results in the order of `X`."""
        check_is_fitted(self, "round_")
        table = as_table(X)
        held = party_column(parties, n_rows=len(table))
        self._refuse_columns(X, n_columns=table.shape[1], party=str(held[0]))
        unknown = sorted(set(held.tolist()) - set(self.parties_.tolist()))
        if unknown:
            raise UnknownPartyError(
                f"{len(unknown)} parties were not in fit: {', '.join(unknown[:5])}. They have no "
                f"basis, so nothing can be projected. Known: {', '.join(self.parties_)}. Correct "
                "the names, or fit with their rows."
            )
        members = [(name, np.flatnonzero(held == name)) for name in np.unique(held)]
        done = np.concatenate(
            [work(self.round_.parties[str(name)], table[own]) for name, own in members]
        )
        ordered = np.empty_like(done)
        ordered[np.concatenate([own for _, own in members])] = done
        return ordered

    def _refuse_columns(self, X: npt.ArrayLike, *, n_columns: int, party: str) -> None:
        """Refuse other columns than those of `fit`."""
        names, fitted = column_names(X), getattr(self, "feature_names_in_", None)
        if names is not None and fitted is not None:
            refuse_names(names, fitted.tolist(), party=party)
        if n_columns != self.n_features_in_:
            raise ShapeError(
                f"X has {n_columns} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input. Give the columns that fit was given."
            )

    def _labels(
        self,
        y: npt.ArrayLike | None,  # noqa: ARG002 -- a representation needs no labels
        *,
        n_rows: int,  # noqa: ARG002
    ) -> tuple[Array | None, dict[str, Any]]:
        """Return labels as they travel, and the attributes that fit learns from them."""
        return None, {}

    def _options(self, *, n_features: int) -> dict[str, Any]:
        """Return what `simulate` is asked for."""
        size = max(1, n_features // 2) if self.n_components is None else self.n_components
        rows = self.n_anchor_rows
        asked = self.anchor in FROM_PUBLIC_ROWS or self.basis == "public"
        return {
            "n_components": whole_number(size, name="n_components"),
            "aligner": self.aligner,
            "anchor": self.anchor,
            "n_anchor_rows": None if rows is None else whole_number(rows, name="n_anchor_rows"),
            "basis": self.basis,
            "public_rows": self.public_rows if asked else None,
        }

    @property
    def _n_features_out(self) -> int:
        """The number of columns that `transform` gives, for ``get_feature_names_out``."""
        return int(self.round_.agreement.n_components)
