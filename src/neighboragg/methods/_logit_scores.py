"""Scores read off the classifier's probabilities: margin, entropy, logit."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import entr

from neighboragg._typing import FloatArray
from neighboragg.methods._base import FitData, TrustMethod

__all__ = ["Margin", "MaxLogit", "NegativeEntropy"]

# Added before the logarithm: forests give probabilities of exactly zero.
TINY = 1e-12


class _ProbabilityScore(TrustMethod):
    """A function of the probabilities alone: nothing to learn, nothing to save."""

    def _fit(self, data: FitData) -> None:
        pass

    def _state_to_record(self) -> dict[str, Any]:
        return {}

    def _state_from_record(self, state: Mapping[str, Any], trusted: tuple[str, ...]) -> None:
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
        # Where the class itself is the most probable, its rival is the runner-up.
        rival = np.where(np.arange(n_classes) == proba.argmax(axis=1)[:, None], second, first)
        return proba - rival


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


class MaxLogit(_ProbabilityScore):
    """Centered log-probability of the class, in the place of its logit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Notes
    -----
    Needs nothing but probabilities; learns nothing. trust_c = log(p_c + 1e-12) − mean_c' log(p_c' + 1e-12), not
    bounded. A softmax forgets a constant that is added to all logits of a row, so that the true logits, and the
    published score with them, cannot be had from probabilities; this is the score of logits that add up to zero.
    Unlike the probability it does not saturate for confident predictions, and it rewards that *all* other classes
    are ruled out. With one class it is 0; with two the order of rows is that of :class:`MaxConfidence`.

    References
    ----------
    Hendrycks et al., "Scaling Out-of-Distribution Detection for Real-World Settings", ICML 2022.

    Examples
    --------
    >>> from neighboragg.methods import MaxLogit
    >>> method = MaxLogit().fit([[0.0], [1.0]], [0, 1], proba_val=[[0.9, 0.1], [0.2, 0.8]])
    >>> method.predict_trust([[0.5]], [[0.9, 0.1]]).round(3)
    array([[ 1.099, -1.099]])
    """

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        logits = np.log(proba + TINY)
        return logits - logits.mean(axis=1, keepdims=True)
