"""The paper's aggregator: one hidden layer over neighbor similarities and class probabilities."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import minimize
from sklearn.utils import check_random_state

from neighboragg._core.checks import check_choice, check_integer, check_real
from neighboragg._core.stats import softmax
from neighboragg._core.threads import ONE_THREAD
from neighboragg._core.types import FloatArray, IntArray
from neighboragg._pool.evidence import Evidence, laplacian_similarity
from neighboragg._pool.experts import CLASSIFIER, NEIGHBORS, nearest_distance
from neighboragg._pool.pool import Aggregator, Contributions

Activation = tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray, FloatArray], FloatArray]]

# Each activation with its derivative, given the input and the output.
ACTIVATIONS: dict[str, Activation] = {
    "identity": (lambda a: a, lambda a, s: np.ones_like(a)),
    "relu": (lambda a: np.maximum(a, 0.0), lambda a, s: (a > 0).astype(a.dtype)),
    "sigmoid": (lambda a: 0.5 * (1.0 + np.tanh(0.5 * a)), lambda a, s: s * (1.0 - s)),
    "tanh": (np.tanh, lambda a, s: 1.0 - s**2),
}
INPUTS = ("both", "neighbors", "proba")
# The contribution of the network to a class for any row: its output for inputs that treat all classes alike.
BALANCE = "class balance"


def gcn_weights(n_classes: int, n_neighbors: int) -> tuple[FloatArray, FloatArray]:
    """W_h = (1/K) I ⊗ 1ᵀ and W_p = I, with which the hidden layer is a one-hop graph convolution (Theorem 1)."""
    return np.kron(np.eye(n_classes), np.ones((1, n_neighbors))) / n_neighbors, np.eye(n_classes)


class NetworkAggregator(Aggregator):
    """The paper's aggregator t = softmax(W σ([W_h h ‖ W_p p]))."""

    default_n_neighbors: ClassVar[int] = 5
    uses_learned_metric: ClassVar[bool] = False
    indexes_validation: ClassVar[bool] = False

    def __init__(
        self,
        *,
        bandwidth: str | float = "median",
        inputs: str = "both",
        activation: str = "tanh",
        penalty: float = 1e-4,
        max_iter: int = 200,
        random_state: Any = 0,
    ) -> None:
        self.bandwidth = bandwidth
        self.inputs = inputs
        self.activation = activation
        self.penalty = penalty
        self.max_iter = max_iter
        self.random_state = random_state

    @property
    def uses_neighbors(self) -> bool:
        """Whether it uses distances; ProbOnly does not."""
        return self.inputs != "proba"

    def fit(self, evidence: Evidence, codes: IntArray) -> Self:
        """Learn the three weight matrices from validation rows."""
        owner = type(self).__name__
        check_choice(self.inputs, "inputs", owner, choices=INPUTS)
        check_choice(self.activation, "activation", owner, choices=ACTIVATIONS)
        penalty = check_real(self.penalty, "penalty", owner, low=0, high=np.inf, closed="left")
        max_iter = check_integer(self.max_iter, "max_iter", owner, minimum=1)
        distances = evidence.feature_distances
        self.bandwidth_ = self._resolve_bandwidth(distances)
        similarities, proba = self._inputs(evidence)
        shapes, start = self._start(*distances.shape[1:])

        def objective(flat: FloatArray) -> tuple[float, FloatArray]:
            W_h, W_p, W = _unflatten(flat, shapes)
            loss, gradients = network_loss(W_h, W_p, W, similarities, proba, codes, self.activation)
            drift = flat - start
            return loss + penalty * float(drift @ drift), _flatten(gradients) + 2 * penalty * drift

        # The matrices are small: more threads than one spend their time waiting for each other.
        with ONE_THREAD:
            result = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
        self.W_h_, self.W_p_, self.W_ = _unflatten(result.x, shapes)
        self.n_iter_ = int(result.nit)
        return self

    def predict_trust(self, evidence: Evidence) -> FloatArray:
        """Trust in every class."""
        return softmax(self._activated(*self._inputs(evidence)) @ self.W_.T)

    def pre_activation(self, evidence: Evidence) -> FloatArray:
        """[W_h h ‖ W_p p] of every row, shape (n, 2 * C): with :func:`gcn_weights`, one-hop graph features."""
        return self._weighted(*self._inputs(evidence))

    def contributions(self, evidence: Evidence) -> Contributions:
        """Contributions of the neighbors and the classifier to the log trust of every class, and the constant."""
        similarities, proba = self._inputs(evidence)
        n, n_classes = proba.shape
        by_class = similarities.reshape(n, n_classes, -1)
        hidden = self._activated(similarities, proba)
        # The contribution of an input is its change relative to the same input in favor of each class in turn.
        level = np.mean(
            [
                self._activated(np.roll(by_class, turn, axis=1).reshape(n, -1), np.roll(proba, turn, axis=1))
                for turn in range(n_classes)
            ],
            axis=0,
        )
        parts = [
            (hidden - level)[:, n_classes:] @ self.W_[:, n_classes:].T,
            (hidden - level)[:, :n_classes] @ self.W_[:, :n_classes].T,
            level @ self.W_.T,
        ]
        values = np.stack(parts, axis=2)
        names = [CLASSIFIER, NEIGHBORS, BALANCE]
        return Contributions(names, names, [""] * 3, values - values.mean(axis=1, keepdims=True))

    def _resolve_bandwidth(self, distances: FloatArray) -> float:
        if isinstance(self.bandwidth, str):
            check_choice(self.bandwidth, "bandwidth", type(self).__name__, choices=("median",))
            return nearest_distance(distances) or 1.0
        return check_real(self.bandwidth, "bandwidth", type(self).__name__, low=0, high=np.inf)

    def _inputs(self, evidence: Evidence) -> tuple[FloatArray, FloatArray]:
        """h and p, with the ablated one set to zero."""
        similarities = laplacian_similarity(evidence.feature_distances, self.bandwidth_)
        similarities = similarities.reshape(len(evidence), -1)
        use_neighbors, use_proba = self.inputs != "proba", self.inputs != "neighbors"
        return similarities * use_neighbors, evidence.proba * use_proba

    def _start(self, n_classes: int, n_neighbors: int) -> tuple[list[tuple[int, int]], FloatArray]:
        rng = check_random_state(self.random_state)
        matrices = [*gcn_weights(n_classes, n_neighbors), np.tile(np.eye(n_classes), 2)]
        start = _flatten([matrix + 0.01 * rng.standard_normal(matrix.shape) for matrix in matrices])
        return [matrix.shape for matrix in matrices], start

    def _weighted(self, similarities: FloatArray, proba: FloatArray) -> FloatArray:
        return np.hstack([similarities @ self.W_h_.T, proba @ self.W_p_.T])

    def _activated(self, similarities: FloatArray, proba: FloatArray) -> FloatArray:
        return ACTIVATIONS[self.activation][0](self._weighted(similarities, proba))


def network_loss(
    W_h: FloatArray,
    W_p: FloatArray,
    W: FloatArray,
    similarities: FloatArray,
    proba: FloatArray,
    codes: IntArray,
    activation: str,
) -> tuple[float, list[FloatArray]]:
    """Mean cross-entropy, and its gradient in W_h, W_p and W."""
    apply, slope = ACTIVATIONS[activation]
    n, n_classes = proba.shape
    before = np.hstack([similarities @ W_h.T, proba @ W_p.T])
    hidden = apply(before)
    trust = softmax(hidden @ W.T)
    rows = np.arange(n)
    loss = -np.log(np.maximum(trust[rows, codes], 1e-300)).mean()
    error = trust
    error[rows, codes] -= 1.0
    error /= n
    back = (error @ W) * slope(before, hidden)
    return float(loss), [
        back[:, :n_classes].T @ similarities,
        back[:, n_classes:].T @ proba,
        error.T @ hidden,
    ]


def _flatten(matrices: list[FloatArray]) -> FloatArray:
    return np.concatenate([matrix.ravel() for matrix in matrices])


def _unflatten(flat: FloatArray, shapes: list[tuple[int, int]]) -> list[FloatArray]:
    ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes, strict=True)]
