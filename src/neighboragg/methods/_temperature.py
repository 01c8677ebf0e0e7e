"""Temperature scaling: one number that makes a classifier's probabilities calibrated."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from neighboragg._typing import FloatArray, IntArray
from neighboragg.methods._base import FitData, TrustMethod

__all__ = ["TemperatureScaling"]

# Added before the logarithm: forests give probabilities of exactly zero.
TINY = 1e-12
COLDEST, HOTTEST = 0.01, 100.0


class TemperatureScaling(TrustMethod):
    """The classifier's probabilities after division of the log-probabilities by one temperature.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    temperature_ : float
        T, in [0.01, 100]; above 1 for an over-confident classifier.

    Notes
    -----
    Needs probabilities and validation rows; looks at no vectors. trust = softmax(log(p + 1e-12) / T), where T
    minimizes the negative log-likelihood of the validation labels, which is convex in 1 / T. Without a single
    validation error there is no minimum: trust would go to 1 for every row. T is then lowered from 1 only until
    trust expects half an error on the validation rows. Where nothing depends on T (one class, or all
    probabilities equal), T = 1. With two classes the order of rows is that of
    :class:`MaxConfidence`; with more it may change.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural Networks", ICML 2017.

    Examples
    --------
    Always 90 % sure, and right in 3 rows of 4:

    >>> from neighboragg.methods import TemperatureScaling
    >>> method = TemperatureScaling().fit(
    ...     [[0.0], [1.0], [2.0], [3.0]], [0, 0, 0, 1], proba_val=[[0.9, 0.1]] * 4)
    >>> round(method.temperature_, 6)
    2.0
    >>> method.score_samples([[0.5]], [[0.9, 0.1]]).round(6)
    array([0.75])
    """

    def _fit(self, data: FitData) -> None:
        self.temperature_ = best_temperature(np.log(data.proba_val + TINY), data.codes_val)

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        return softmax(np.log(proba + TINY) / self.temperature_, axis=1)


def best_temperature(logits: FloatArray, codes: IntArray) -> float:
    """Temperature in [COLDEST, HOTTEST] with the greatest likelihood of the classes `codes`."""
    if np.ptp(logits, axis=1).max() < 1e-9:
        return 1.0
    rows = np.arange(len(codes))
    chosen = logits[rows, codes]

    def slope(inverse: float) -> float:
        """Derivative of the mean negative log-likelihood in 1 / T, which never falls."""
        expected = (softmax(inverse * logits, axis=1) * logits).sum(axis=1)
        return float((expected - chosen).mean())

    def expected_errors(inverse: float) -> float:
        return float((1.0 - softmax(inverse * logits, axis=1)[rows, codes]).sum())

    low, high = 1.0 / HOTTEST, 1.0 / COLDEST
    if slope(low) >= 0:
        return HOTTEST
    if slope(high) > 0:
        return 1.0 / float(brentq(slope, low, high, xtol=1e-12))
    # Rows that tie between classes err at any temperature.
    allowed = expected_errors(high) + 0.5
    if expected_errors(1.0) <= allowed:
        return 1.0
    return 1.0 / float(brentq(lambda inverse: expected_errors(inverse) - allowed, 1.0, high))
