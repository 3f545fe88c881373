"""What the common model predicts, what it is made of, and why it predicts what it does.

All parties explain against one reference: those that explained against rows of their own would
find unlike reasons for one prediction.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.anchors import Anchor, draw_anchor
from cobasis.errors import OptionError, ShapeError, StepError
from cobasis.features.contract import CategoryFeature, Feature, width_of
from cobasis.features.encoder import encode, encoded_columns
from cobasis.linalg.arrays import Matrix, Places, as_matrix
from cobasis.linalg.threads import one_blas_thread
from cobasis.models.chain import ABSENT, Affine, Chain
from cobasis.models.regressions import RegressionFit
from cobasis.models.trainer import TrainedModel
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import Return, decode_labels
from cobasis.protocol.terms import others_of, places_of
from cobasis.statistics.attributions import Attributions, Surrogate, attributions, surrogate
from cobasis.statistics.coefficients import CoefficientTable, table_of
from cobasis.statistics.effect_table import EffectTable, effects_of

_MOST_ROWS = 50
"""Of the reference: each prediction is asked of all of them, for thousands of coalitions."""


def coefficients_of(
    fit: RegressionFit, agreement: Agreement, *, turn: Matrix | None = None
) -> CoefficientTable:
    """Read a fit; of aligned rows by M = F_i G_i, of sums by none."""
    return table_of(
        fit,
        features=agreement.features,
        classes=agreement.classes,
        horizons=agreement.horizons,
        turn=turn,
    )


def reference(
    agreement: Agreement, anchor: Anchor | None = None, *, public: Matrix | None = None
) -> Matrix:
    """Return encoded rows, the same at all parties: public ones, or of the anchor, if there is."""
    if agreement.map.kind != "columns":  # behind which these two are of features, not of columns
        anchor = public = None
    if public is not None:
        some = public[:: -(-len(public) // _MOST_ROWS)]
        return some[:, places_of(agreement)] if agreement.holdings and agreement.holding else some
    half, size, features = _MOST_ROWS // 2, width_of(agreement.features), agreement.features
    long = anchor is not None and agreement.anchor == "isometric"
    if anchor is None:
        anchor = draw_anchor("gaussian", key=agreement.digest(), n_rows=half, n_features=size)
    rows = anchor.apply_transposed(np.eye(anchor.shape[0], min(half, anchor.shape[0]))).T
    if long:  # columns of length 1, not cells
        rows = rows * np.sqrt(anchor.shape[0])
    # Mirrored, so that their mean is the agreed centre: what a linear model makes of a number,
    # which is of the mean, then shows nothing of the anchor.
    rows = np.vstack([rows, -rows])
    owners = owners_of(features)
    for at, feature in enumerate(features):
        if isinstance(feature, CategoryFeature):  # one word: of the largest cell, the base's is 0
            here, least = owners == at, -np.inf if feature.base is None else 0.0
            rows[:, here] = rows[:, here] == rows[:, here].max(1, keepdims=True, initial=least)
    return rows


def owners_of(features: Sequence[Feature]) -> Places:
    """Return of each encoded column the place of the feature that it is of."""
    places = {each.name: place for place, each in enumerate(features)}
    return np.array([places[each.feature.name] for each in encoded_columns(features)])


class Explained:
    """A number that a model gives of encoded rows: of a class, where there are classes."""

    def __init__(
        self,
        model: Chain | TrainedModel,
        *,
        agreement: Agreement,
        aligned: Callable[[Matrix], Matrix],  # mapped rows, as the model takes them
        of: str | int | None = None,
    ) -> None:
        if not isinstance(model, Chain):
            raise StepError("an estimator of your own is not explained here. Agree on a family.")
        self.model, self.agreement, self.aligned = model, agreement, aligned
        # the odds of a class that no row had are zero
        seen = cast("Affine", model.layers[-1]).offset > ABSENT * 1e-9
        known = {str(each): at for at, each in enumerate(agreement.classes) if seen[at]}
        word = [*known, ""][len(known) - 1] if of is None else str(of)
        if of is not None and word not in known:
            raise OptionError(
                f"no class '{of}' can be explained, of {', '.join(known) or 'none'}. Name one of "
                "these."
            )
        self.place = known.get(word, 0)
        hazard = "log hazard" if agreement.task == "survival" else "log rate"
        words = {"Exp": hazard, "Sigmoid": "log-odds of treatment"}
        told = "log-odds" if model.likely and not agreement.dp else "score"
        self.word = f"{told} of class {word}" if known else words.get(model.link, "prediction")

    def number(self, some: Matrix) -> Any:  # noqa: ANN401 -- of NumPy's reduce
        given = self.model.outputs(self.aligned(self.agreement.mapped(some))).T
        found, others = given[self.place], np.delete(given, self.place, axis=0)
        return np.subtract(found, np.logaddexp.reduce(others)) if self.model.likely else found

    def attributions(
        self,
        rows: Matrix,
        *,
        background: Matrix,
        beside: Matrix | None = None,
        report: Report = silent,
    ) -> Attributions:
        """Explain by raw columns, to which others' parts, which stand `beside`, add one."""
        last, likely = cast("Affine", self.model.layers[-1]), self.model.likely
        features, others = self.agreement.features, others_of(self.agreement)
        groups, names = owners_of(features), tuple(each.name for each in features)
        bent = len(self.model.layers) > 1 or self.agreement.turn is not None
        if bent or (likely and len(last.offset) > 2):  # noqa: PLR2004 -- one of two
            if others:
                raise OptionError(
                    f"this model is explained beside columns of {', '.join(others)}, and from "
                    "those you could read their basis, so they do not travel. Agree on a linear "
                    "model, of two classes or of numbers."
                )
            told: Any = {"groups": groups, "seed": self.agreement.digest(), "report": report}
            values, base = attributions(self.number, rows, background=background, **told)
        else:  # beta_j (x_j - mean_j), exactly
            weights = last.weights[:, self.place] - likely * last.weights[:, self.place - 1]
            beta = self.aligned(np.eye(len(groups))) @ weights
            values = (rows - background.mean(axis=0)) * beta @ np.eye(len(features))[groups]
            base = float(self.number(background).mean())
            if beside is not None:
                values = np.column_stack([values, beside @ weights])
                names = (*names, f"part_of_{'_'.join(others)}")
        return Attributions(explained=self.word, names=names, values=values, base=base)

    def surrogate(self, rows: Matrix) -> Surrogate:
        told = self.number(rows)
        return surrogate(told, rows, features=self.agreement.features, explained=self.word)


class ModelUser:
    """A party as it uses the common model: to predict, and to say why."""

    name: str
    agreement: Agreement
    _return: Return | None = None

    @property
    def finished(self) -> bool:
        """Whether a return was accepted, so that the party can predict."""
        return self._return is not None

    @property
    def returned(self) -> Return:
        """What was accepted; StepError before."""
        if self._return is None:
            raise StepError(
                f"party '{self.name}' has no return yet. Call accept() with the analyst's."
            )
        return self._return

    @property
    def model(self) -> Chain | TrainedModel:
        """The common model; StepError where there is none."""
        if self.returned.model is None:
            raise StepError(
                "this round was for a representation and trained no model. Call transform(rows), "
                "or agree on a task."
            )
        return self.returned.model

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}'>"

    def transform(self, rows: npt.ArrayLike) -> Matrix:
        """Bring rows into the aligned representation, ``Y_i F_i G_i``.

        Parameters
        ----------
        rows : array-like or data frame of shape (n_rows, n_features)
            Columns as agreed.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            Aligned rows; LocalError before `accept`.
        """
        table = encode(rows, self.agreement.features, party=self.name)
        return self._aligned(self.agreement.mapped(table))

    def predict(
        self, rows: npt.ArrayLike, *, beside: npt.ArrayLike | None = None
    ) -> npt.NDArray[np.generic]:
        """Predict labels with the common model and the party's own basis, eq. (9).

        Parameters
        ----------
        rows : array-like or data frame of shape (n_rows, n_features)
            Columns as agreed.
        beside : array-like of shape (n_rows, n_components), optional
            Of a party of a block: the sum of what the others' `transform` gives of these people.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes of the agreement, or numbers; LocalError where the round trained no model.
        """
        aligned = self.transform(rows)
        if beside is not None or self.agreement.holdings:
            others = self._others(beside, n_rows=len(aligned))
            aligned = aligned if others is None else aligned + others
        return decode_labels(self.model.predict(aligned), self.agreement)

    def coefficients(self) -> CoefficientTable:
        """Return the common regression's table, in units of the party's own columns.

        Returns
        -------
        CoefficientTable
            The same at every party; LocalError where the model is no regression, or columns
            depend on each other.

        Notes
        -----
        **Who sees what.** Made here, of the party's own change of basis. **Cost.** None.
        """
        fit, turn = self._fitted()
        return coefficients_of(fit, self.agreement, turn=turn)

    def effects(self) -> EffectTable:
        """Return a treatment's effects and its groups' balance, the same at every party."""
        fit, turn = self._fitted()
        return effects_of(fit, turn=turn, features=self.agreement.features)

    def _fitted(self) -> tuple[RegressionFit, Matrix]:
        """Return the common fit, and M = F_i G_i, by which it is read; of sums no turn at all."""
        fit = self.model.fit if isinstance(self.model, Chain) else None
        if fit is None or not fit.finished:
            raise StepError(
                f"model='{self.agreement.model}' has no coefficients, or has not taken its last "
                "step. Agree on one that has, such as 'ols', and wait for the last return."
            )
        return fit, self._aligned(np.eye(self.agreement.n_features))

    def attributions(
        self,
        rows: npt.ArrayLike,
        *,
        of: str | int | None = None,
        beside: npt.ArrayLike | None = None,
    ) -> Attributions:
        """Say what each raw column adds to predictions, beside the same reference at all parties.

        Parameters
        ----------
        rows : array-like or data frame of shape (n_rows, n_features)
            Columns as agreed.
        of : str or int, optional
            The class whose log-odds, or score, are explained; by default the last agreed one.
        beside : array-like of shape (n_rows, n_components), optional
            As of `Party.predict`. It counts as one column more, beside the agreed centres; of a
            linear model alone.

        Returns
        -------
        Attributions
            ``values`` of shape (n_rows, n_features), each row's sum being what is explained minus
            ``base``; LocalError before `accept`.

        Notes
        -----
        **Who sees what.** They stay here, and say as much of people as rows do. **Cost.** Of a
        linear model one product, else some 200,000 predictions a row. DC-SHAP, arXiv:2212.03373.
        """
        agreed, common = self.agreement, self._reference()
        table = encode(rows, agreed.features, party=self.name)
        others = self._others(beside, n_rows=len(table))
        with one_blas_thread():
            asked = Explained(self.model, agreement=agreed, aligned=self._aligned, of=of)
            return asked.attributions(table, background=common, beside=others)

    def surrogate(self, rows: npt.ArrayLike, *, of: str | int | None = None) -> Surrogate:
        """Fit a line in raw columns that gives nearly what the model gives.

        Parameters
        ----------
        rows : array-like or data frame of shape (n_rows, n_features)
            Columns as agreed: the people for whom it is to hold.
        of : str or int, optional
            As of `attributions`.

        Returns
        -------
        Surrogate
            With its R2 in five folds, each of rows that it was not fitted to; LocalError before
            `accept`, of fewer than 20 rows, or at a party of a block.

        Notes
        -----
        **Who sees what.** It stays here, as the rows that it is made of do. **Cost.** One
        prediction a row, and six small fits. arXiv:2011.04437.
        """
        agreed = self.agreement
        if others := others_of(agreed):
            raise OptionError(
                f"what stands for a model is of all columns, and {', '.join(others)} hold some of "
                f"them for party '{self.name}'. Ask for attributions, which take beside=."
            )
        table = encode(rows, agreed.features, party=self.name)
        with one_blas_thread():
            asked = Explained(self.model, agreement=agreed, aligned=self._aligned, of=of)
            return asked.surrogate(table)

    def _others(self, beside: npt.ArrayLike | None, *, n_rows: int) -> Matrix | None:
        others = others_of(self.agreement)
        if (beside is None) == bool(others):
            raise OptionError(
                f"party '{self.name}' {'needs' if others else 'takes no'} beside=, aligned rows of "
                "its block's other parties. Ask them for transform(rows) of these people."
            )
        if beside is None:
            return None
        found = as_matrix(beside, name="beside", columns=self.agreement.n_inputs)
        if len(found) != n_rows:
            raise ShapeError(
                f"beside has {len(found)} rows for {n_rows} rows of party '{self.name}'. Give one "
                "for each, in the same order."
            )
        return found

    def _aligned(self, table: Matrix) -> Matrix:
        """Bring encoded rows into what the model takes; of sums it takes them as they are."""
        return table

    def _reference(self) -> Matrix:
        return reference(self.agreement)
