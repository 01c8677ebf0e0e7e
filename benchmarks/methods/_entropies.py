"""Scores read off the classifier's probabilities: the margin, the entropy and its generalization."""

import numpy as np
from scipy.special import entr

from neighboragg._core.checks import check_integer, check_real
from neighboragg._core.types import FloatArray
from neighboragg._pool.evidence import FitData
from neighboragg.methods import TrustMethod

__all__ = ["GeneralizedEntropy", "Margin", "NegativeEntropy"]


class _ProbabilityScore(TrustMethod):
    """A function of the probabilities alone: nothing to learn, nothing to save."""

    def _fit(self, data: FitData) -> None:
        pass


class Margin(_ProbabilityScore):
    """How much more probable the class is than any other.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Notes
    -----
    Needs nothing but probabilities; learns nothing. trust_c = p_c − max_{c' ≠ c} p_c', in [−1, 1], negative for
    every class but the most probable. With one class, trust is its probability, 1. With two classes the order of
    rows is that of :class:`MaxConfidence`.

    References
    ----------
    Scheffer, Decomain and Wrobel, "Active Hidden Markov Models for Information Extraction", IDA 2001.

    Examples
    --------
    >>> from neighboragg.methods import Margin
    >>> method = Margin().fit([[0.0], [1.0], [2.0]], [0, 1, 2], proba_val=[[0.5, 0.25, 0.25]] * 3)
    >>> method.predict_trust([[0.5]], [[0.625, 0.25, 0.125]])
    array([[ 0.375, -0.375, -0.5  ]])
    """

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        n_classes = proba.shape[1]
        if n_classes == 1:
            return proba
        second, first = np.partition(proba, n_classes - 2, axis=1)[:, -2:].T[:, :, None]
        # Where the class itself is the most probable, its opponent is the runner-up.
        opponent = np.where(np.arange(n_classes) == proba.argmax(axis=1)[:, None], second, first)
        return proba - opponent


class NegativeEntropy(_ProbabilityScore):
    """How far the probabilities are from telling nothing.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Notes
    -----
    Needs nothing but probabilities; learns nothing. trust = 1 − H(p) / log C with H(p) = −Σ_c p_c log p_c: 1 for
    a certain prediction, 0 for equal probabilities, and 1 where there is only one class. It is the same for every
    class, so that it ranks predictions, but cannot compare labels of one row.

    References
    ----------
    Shannon, "A Mathematical Theory of Communication", Bell System Technical Journal, 1948.

    Examples
    --------
    >>> from neighboragg.methods import NegativeEntropy
    >>> method = NegativeEntropy().fit([[0.0], [1.0]], [0, 1], proba_val=[[0.9, 0.1], [0.2, 0.8]])
    >>> method.score_samples([[0.5], [0.5]], [[0.9, 0.1], [0.5, 0.5]]).round(3)
    array([0.531, 0.   ])
    """

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        n_classes = proba.shape[1]
        if n_classes == 1:
            return proba
        # Rounding can carry the entropy of equal probabilities a little beyond log C.
        share = np.minimum(entr(proba).sum(axis=1) / np.log(n_classes), 1.0)
        return np.repeat(1.0 - share[:, None], n_classes, axis=1)


class GeneralizedEntropy(_ProbabilityScore):
    """How far the probabilities are from telling nothing, small probabilities counting more (GEN).

    Parameters
    ----------
    gamma : float, default=0.1
        Exponent, in (0, 1): the smaller, the more a small probability counts.
    n_largest : int, default=100
        Only that many of the largest probabilities count.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Notes
    -----
    Needs nothing but probabilities; learns nothing. trust = 1 / (1 + Σ_c p_c^γ (1 − p_c)^γ), the sum over the
    `n_largest` largest probabilities: the order of the published score, the negative sum, but 1 for a certain
    prediction and never negative. It is the same for every class, so that it ranks predictions, but cannot compare
    labels of one row.

    References
    ----------
    Liu, Lochman and Zach, "GEN: Pushing the Limits of Softmax-Based Out-of-Distribution Detection", CVPR 2023.

    Examples
    --------
    >>> from neighboragg.methods import GeneralizedEntropy
    >>> method = GeneralizedEntropy(gamma=0.5).fit([[0.0], [1.0]], [0, 1], proba_val=[[0.9, 0.1], [0.2, 0.8]])
    >>> method.score_samples([[0.5], [0.5]], [[0.9, 0.1], [0.5, 0.5]])
    array([0.625, 0.5  ])
    """

    def __init__(self, *, gamma: float = 0.1, n_largest: int = 100) -> None:
        self.gamma = gamma
        self.n_largest = n_largest

    def _fit(self, data: FitData) -> None:
        owner = type(self).__name__
        check_real(self.gamma, "gamma", owner, low=0, high=1)
        check_integer(self.n_largest, "n_largest", owner, minimum=1)

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        n_classes = proba.shape[1]
        largest = np.sort(proba, axis=1)[:, -self.n_largest :]
        # Rounding can carry the probability of a certain class a little beyond 1.
        terms = (largest * np.maximum(1.0 - largest, 0.0)) ** self.gamma
        return np.repeat(1.0 / (1.0 + terms.sum(axis=1, keepdims=True)), n_classes, axis=1)
