"""True class probability: a small network that predicts the probability of the right class."""

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state

from neighboragg._core.checks import check_integer, check_real
from neighboragg._core.threads import ONE_THREAD
from neighboragg._core.types import FloatArray
from neighboragg._pool.evidence import FitData
from neighboragg.methods._method import TrustMethod

BATCH_ROWS = 128
LEARNING_RATE, FIRST_DECAY, SECOND_DECAY = 3e-3, 0.9, 0.999
# Epochs without progress on the rows held out, and the fewest rows of which some can be spared for that.
PATIENCE, ENOUGH_ROWS = 20, 20
# Inputs are clipped to this many standard deviations.
LARGEST_INPUT = 10.0

Weights = list[FloatArray]


class TrueClassProbability(TrustMethod):
    """Predicted probability of the true class (TCP, ConfidNet), for any classifier.

    Parameters
    ----------
    n_hidden : int, default=64
        Units of the hidden layer.
    penalty : float, default=1e-3
        Weight of the squared weights against the mean squared error.
    max_epochs : int, default=200
        Passes over the validation rows.
    random_state : int, RandomState instance or None, default=0
        Seeds the first weights, the batches and the rows held out.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    weights_ : list of ndarray
        Matrix and offset of the hidden layer, vector and offset of the output.
    center_, scale_ : ndarray of shape (n_inputs,)
        Center and scale of the inputs.

    Notes
    -----
    Needs vectors, probabilities and validation rows. For a row of class y the target is p_y, the probability that
    the classifier gives to the true class: large for correct predictions, below ½ for wrong ones. A network
    q = σ(w'·relu(Wz + b) + b') is fitted to it by mean squared error; its inputs z are the vector, the
    probabilities, and the two largest of them. Trust in the most probable class is q; other classes share 1 − q
    in proportion to their probabilities.

    ConfidNet continues the layers of a neural classifier and learns from its training rows. Here the network learns
    from validation rows: on its training rows a classifier is over-confident and makes few of the errors that the
    network has to learn. A fifth of the validation rows is held out for early stopping (none of fewer than 20).

    References
    ----------
    Corbière, Thome, Bar-Hen, Cord and Pérez, "Addressing Failure Prediction by Learning Model Confidence",
    NeurIPS 2019.

    Examples
    --------
    A classifier that is always right for x > 0 and guesses for x < 0, equally confident in both:

    >>> import numpy as np
    >>> from neighboragg.methods import TrueClassProbability
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=600), rng.integers(0, 2, 600)
    >>> predicted = np.where((x > 0) | (rng.random(600) < 0.5), y, 1 - y)
    >>> proba = np.where(predicted[:, None] == [0, 1], 0.9, 0.1)
    >>> method = TrueClassProbability().fit(x[:, None], y, proba_val=proba)
    >>> method.score_samples([[-1.0], [1.0]], [[0.9, 0.1], [0.9, 0.1]]).round(1)
    array([0.5, 0.9])
    """

    def __init__(
        self, *, n_hidden: int = 64, penalty: float = 1e-3, max_epochs: int = 200, random_state: Any = 0
    ) -> None:
        self.n_hidden = n_hidden
        self.penalty = penalty
        self.max_epochs = max_epochs
        self.random_state = random_state

    def _fit(self, data: FitData) -> None:
        owner = type(self).__name__
        n_hidden = check_integer(self.n_hidden, "n_hidden", owner, minimum=1)
        penalty = check_real(self.penalty, "penalty", owner, low=0, high=np.inf, closed="left")
        max_epochs = check_integer(self.max_epochs, "max_epochs", owner, minimum=1)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        raw = network_inputs(data.X_val, data.proba_val)
        self.center_, spread = raw.mean(axis=0), raw.std(axis=0)
        # The spread of a constant column is rounding error.
        self.scale_ = np.where(spread > 1e-9 * np.abs(self.center_), spread, 1.0)
        inputs = self._standardized(raw)
        target = data.proba_val[np.arange(len(raw)), data.codes_val]
        # Products this small gain nothing from a second thread, and one thread always adds in one order.
        with ONE_THREAD:
            start = first_weights(inputs.shape[1], n_hidden, rng)
            self.weights_ = fit_network(start, inputs, target, penalty, max_epochs, rng)

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        if proba.shape[1] == 1:
            return np.ones_like(proba)
        top = network_output(self.weights_, self._standardized(network_inputs(X, proba)))
        return spread_trust(top, proba)

    def _standardized(self, raw: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            inputs = (raw - self.center_) / self.scale_
        return np.clip(inputs, -LARGEST_INPUT, LARGEST_INPUT)


def network_inputs(X: FloatArray, proba: FloatArray) -> FloatArray:
    """Vector, probabilities, and the two largest probabilities in order."""
    largest = np.sort(proba, axis=1)[:, ::-1][:, :2]
    return np.hstack([X.astype(np.float64), proba, largest])


def spread_trust(top: FloatArray, proba: FloatArray) -> FloatArray:
    """Give the most probable class a trust, and the others the rest in proportion to their probabilities."""
    n, n_classes = proba.shape
    best = (np.arange(n), proba.argmax(axis=1))
    others = proba.copy()
    others[best] = 0.0
    total = others.sum(axis=1, keepdims=True)
    even = np.full_like(proba, 1.0 / (n_classes - 1))
    trust = (1.0 - top)[:, None] * np.where(total > 0, others / np.where(total > 0, total, 1.0), even)
    trust[best] = top
    return trust


def first_weights(n_inputs: int, n_hidden: int, rng: np.random.Generator) -> Weights:
    """Random weights of a size that keeps the variance of a unit, and no offsets."""
    return [
        rng.normal(0.0, np.sqrt(2.0 / n_inputs), (n_inputs, n_hidden)),
        np.zeros(n_hidden),
        rng.normal(0.0, np.sqrt(1.0 / n_hidden), n_hidden),
        np.zeros(1),
    ]


def network_output(weights: Weights, inputs: FloatArray) -> FloatArray:
    """σ(w'·relu(Wz + b) + b') of every row."""
    hidden = np.maximum(inputs @ weights[0] + weights[1], 0.0)
    return expit(hidden @ weights[2] + weights[3])


def network_gradient(weights: Weights, inputs: FloatArray, target: FloatArray, penalty: float) -> Weights:
    """Gradient of the mean squared error plus `penalty` times the squared weights, offsets left out."""
    before = inputs @ weights[0] + weights[1]
    hidden = np.maximum(before, 0.0)
    output = expit(hidden @ weights[2] + weights[3])
    error = 2.0 * (output - target) * output * (1.0 - output) / len(target)
    back = np.outer(error, weights[2]) * (before > 0)
    return [
        inputs.T @ back + 2.0 * penalty * weights[0],
        back.sum(axis=0),
        hidden.T @ error + 2.0 * penalty * weights[2],
        error.sum(keepdims=True),
    ]


def fit_network(
    weights: Weights,
    inputs: FloatArray,
    target: FloatArray,
    penalty: float,
    max_epochs: int,
    rng: np.random.Generator,
) -> Weights:
    """Adam on mini-batches; the weights with the least error on a fifth of the rows, held out."""
    n = len(target)
    order = rng.permutation(n)
    held, used = (order[: n // 5], order[n // 5 :]) if n >= ENOUGH_ROWS else (order, order)
    first = [np.zeros_like(w) for w in weights]
    second = [np.zeros_like(w) for w in weights]
    best, least, step, waited = weights, np.inf, 0, 0
    for _ in range(max_epochs):
        for rows in np.array_split(rng.permutation(used), -(-len(used) // BATCH_ROWS)):
            step += 1
            gradient = network_gradient(weights, inputs[rows], target[rows], penalty)
            first = [FIRST_DECAY * m + (1 - FIRST_DECAY) * g for m, g in zip(first, gradient, strict=True)]
            second = [
                SECOND_DECAY * v + (1 - SECOND_DECAY) * g**2 for v, g in zip(second, gradient, strict=True)
            ]
            rate = LEARNING_RATE * np.sqrt(1 - SECOND_DECAY**step) / (1 - FIRST_DECAY**step)
            weights = [
                w - rate * m / (np.sqrt(v) + 1e-8) for w, m, v in zip(weights, first, second, strict=True)
            ]
        loss = float(((network_output(weights, inputs[held]) - target[held]) ** 2).mean())
        waited += 1
        if loss < least:
            best, least, waited = weights, loss, 0
        elif waited >= PATIENCE:
            break
    return best
