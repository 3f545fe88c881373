"""scikit-learn's networks with compiled steps: the same weights to the last bit, sooner.

Much of a small network's time, and most of one on raw pixels, is Adam: NumPy goes over all weights
a dozen times for every batch, the compiled loop once. The loss of each batch, which early stopping
does not look at, is left out.
"""

from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import numba
import numpy as np
import numpy.typing as npt
from sklearn.neural_network import MLPClassifier, MLPRegressor, _multilayer_perceptron
from sklearn.neural_network._stochastic_optimizers import AdamOptimizer

Numbers = npt.NDArray[np.floating[Any]]

_compiled: Callable[[Callable[..., None]], Callable[..., None]] = numba.njit(
    cache=True, error_model="numpy"
)
"""Without fast-math: products and sums are rounded one by one, as NumPy's are."""


@_compiled
def _adam(
    weights: Numbers,
    gradient: Numbers,
    mean: Numbers,
    square: Numbers,
    factors: Sequence[float],
) -> None:
    """Move weights against a gradient, all in place."""
    beta_1, rest_1, beta_2, rest_2, epsilon, rate = factors
    for i in range(weights.size):
        slope = gradient[i]
        mean[i] = beta_1 * mean[i] + rest_1 * slope
        square[i] = beta_2 * square[i] + rest_2 * (slope * slope)
        weights[i] += rate * mean[i] / (np.sqrt(square[i]) + epsilon)


@_compiled
def _decayed(total: Numbers, weights: Numbers, decay: float, count: float) -> None:
    """Turn the sum of a batch's gradients into their mean with weight decay, in place."""
    for i in range(total.size):
        total[i] = (total[i] + decay * weights[i]) / count


class _Adam(AdamOptimizer):  # type: ignore[misc]
    """scikit-learn's optimiser with all its sums in one loop."""

    def update_params(self, params: Sequence[Numbers], grads: Sequence[Numbers]) -> None:
        self.t += 1
        beta_1, beta_2 = self.beta_1, self.beta_2
        rate = self.learning_rate_init * np.sqrt(1 - beta_2**self.t) / (1 - beta_1**self.t)
        kept = (beta_1, 1 - beta_1, beta_2, 1 - beta_2, self.epsilon)
        factors = (*map(params[0].dtype.type, kept), -rate)
        for arrays in zip(params, grads, self.ms, self.vs, strict=True):
            _adam(*(each.reshape(-1) for each in arrays), factors)


class _Sooner:
    """What both networks do differently: for dense rows, and Adam."""

    alpha: float
    coefs_: list[Numbers]
    early_stopping: bool

    def _fit_stochastic(self, *given: Any) -> None:  # noqa: ANN401
        parts: dict[str, Any] = {"AdamOptimizer": _Adam, "_safe_indexing": _rows}
        if self.early_stopping:
            losses = _multilayer_perceptron.LOSS_FUNCTIONS
            parts["LOSS_FUNCTIONS"] = dict.fromkeys(losses, _left_out)
        with patch.multiple(_multilayer_perceptron, **parts):
            super()._fit_stochastic(*given)  # type: ignore[misc]

    def _compute_loss_grad(  # noqa: PLR0917 -- scikit-learn's
        self,
        layer: int,
        count: int,
        activations: list[Numbers],
        deltas: list[Numbers],
        coef_grads: list[Numbers],
        intercept_grads: list[Numbers],
    ) -> None:
        total = activations[layer].T @ deltas[layer]
        weights = self.coefs_[layer].reshape(-1)
        decay = weights.dtype.type(self.alpha)
        _decayed(total.reshape(-1), weights, decay, total.dtype.type(count))
        coef_grads[layer] = total
        intercept_grads[layer] = deltas[layer].sum(axis=0) / count


def _rows(table: Numbers, chosen: npt.NDArray[np.intp]) -> Numbers:
    return table.take(chosen, axis=0)


def _left_out(*_: object) -> float:
    return 0.0


class FastMLPClassifier(_Sooner, MLPClassifier):  # type: ignore[misc]
    """scikit-learn's network for classes; ``loss_`` says nothing where it stops early."""


class FastMLPRegressor(_Sooner, MLPRegressor):  # type: ignore[misc]
    """The same for numbers; in single precision its last bits differ."""
