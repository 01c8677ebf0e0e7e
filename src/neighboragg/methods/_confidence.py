"""Baselines from probabilities alone: confidence, temperature scaling, top-label calibration."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from neighboragg._core.checks import check_integer
from neighboragg._core.types import BoolArray, FloatArray, IntArray
from neighboragg._pool.evidence import FitData
from neighboragg.methods._method import TrustMethod


class MaxConfidence(TrustMethod):
    """Maximum class probability (max-softmax): trust is the classifier's own probability.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Notes
    -----
    Needs only probabilities; does not learn.

    References
    ----------
    Hendrycks and Gimpel, "A Baseline for Detecting Misclassified and Out-of-Distribution Examples in Neural
    Networks", ICLR 2017.

    Examples
    --------
    >>> from neighboragg.methods import MaxConfidence
    >>> method = MaxConfidence().fit([[0.0], [1.0]], [0, 1], proba_val=[[0.9, 0.1], [0.2, 0.8]])
    >>> method.score_samples([[0.5]], [[0.3, 0.7]])
    array([0.7])
    """

    def _fit(self, data: FitData) -> None:
        pass

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        return proba


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
    Needs probabilities and validation rows, not vectors. trust = softmax(log(p + 1e-12) / T), where T
    minimizes the negative log-likelihood of the validation labels, which is convex in 1 / T. Without a single
    validation error there is no minimum: trust would go to 1 for every row. T is then lowered from 1 only until
    trust expects half an error on the validation rows. If T has no effect (one class, or all
    probabilities equal), T = 1. With two classes, rows have the same order as under :class:`MaxConfidence`; with more
    classes it may change.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural Networks", ICML 2017.

    Examples
    --------
    A classifier that is always 90% sure and right in 3 of 4 rows:

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
    # Rows with tied classes count as errors at any temperature.
    allowed = expected_errors(high) + 0.5
    if expected_errors(1.0) <= allowed:
        return 1.0
    return 1.0 / float(brentq(lambda inverse: expected_errors(inverse) - allowed, 1.0, high))


# Breaking ties must not cost calibration.
MAX_CONFIDENCE = 1e-3


class TopLabelCalibration(TrustMethod):
    """Histogram binning of the confidence, for each predicted class on its own.

    Parameters
    ----------
    points_per_bin : int, default=50
        Smallest number of validation rows in a bin.
    break_ties : bool, default=False
        Order rows of equal trust by their confidence, mixing in too little of it to reorder any other rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    edges_ : ndarray of shape (n_classes, n_bins - 1)
        Lowest confidence of every bin but the first; inf for bins that a class does not have.
    accuracy_ : ndarray of shape (n_classes, n_bins)
        Share of validation rows in the bin that were predicted correctly; 0 for bins that do not exist.
    pooled_ : ndarray of bool of shape (n_classes,)
        Classes predicted for fewer than `points_per_bin` validation rows; they use the bins of all classes
        together.
    confidence_weight_ : float
        Share of the confidence in the trust; 0 unless ties are broken.

    Notes
    -----
    Needs probabilities and validation rows, not vectors. The n validation rows with predicted class c are cut by
    confidence into ⌊n / `points_per_bin`⌋ bins of equal mass. Rows of equal confidence
    share a bin, so ties make fewer and larger bins. Trust in class c is the accuracy of the bin that p_c
    falls into, as if c had been predicted; for a class that was not predicted, p_c is mostly below the
    range of the bins, and the lowest bin applies. Trust takes few distinct values: it is calibrated, with many ties. If
    a class has few rows, its single bin cannot rank them; then break ties, or let :class:`Tuned` choose
    `points_per_bin`.

    In the authors' code a class with fewer than `points_per_bin` rows keeps its confidence; here it uses
    the bins of all classes together, which are calibrated.

    References
    ----------
    Gupta and Ramdas, "Distribution-free calibration guarantees for histogram binning without sample splitting",
    ICML 2021.

    Gupta and Ramdas, "Top-label calibration and multiclass-to-binary reductions", ICLR 2022.

    Examples
    --------
    >>> from neighboragg.methods import TopLabelCalibration
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1, 0, 0, 0]
    >>> P = [[0.6, 0.4], [0.7, 0.3], [0.8, 0.2], [0.9, 0.1]]
    >>> method = TopLabelCalibration(points_per_bin=2).fit(X, y, proba_val=P)
    >>> method.score_samples([[0.5], [0.5]], [[0.65, 0.35], [0.85, 0.15]])
    array([0.5, 1. ])
    """

    def __init__(self, *, points_per_bin: int = 50, break_ties: bool = False) -> None:
        self.points_per_bin = points_per_bin
        self.break_ties = break_ties

    def _fit(self, data: FitData) -> None:
        least = check_integer(self.points_per_bin, "points_per_bin", type(self).__name__, minimum=1)
        predicted, confidence = data.proba_val.argmax(axis=1), data.proba_val.max(axis=1)
        correct = predicted == data.codes_val
        self.pooled_ = np.bincount(predicted, minlength=data.n_classes) < least
        everything = equal_mass_bins(confidence, correct, least)
        bins = []
        for c, pooled in enumerate(self.pooled_):
            own = predicted == c
            bins.append(everything if pooled else equal_mass_bins(confidence[own], correct[own], least))
        width = max(len(accuracy) for _, accuracy in bins)
        self.edges_ = np.full((data.n_classes, width - 1), np.inf)
        self.accuracy_ = np.zeros((data.n_classes, width))
        for c, (edges, accuracy) in enumerate(bins):
            self.edges_[c, : len(edges)] = edges
            self.accuracy_[c, : len(accuracy)] = accuracy
        self.confidence_weight_ = tie_breaking_weight(self.accuracy_) if self.break_ties else 0.0

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        trust = np.empty_like(proba)
        for c, (edges, accuracy) in enumerate(zip(self.edges_, self.accuracy_, strict=True)):
            trust[:, c] = accuracy[np.searchsorted(edges, proba[:, c], side="right")]
        return (1.0 - self.confidence_weight_) * trust + self.confidence_weight_ * proba


def tie_breaking_weight(values: FloatArray) -> float:
    """w with which (1 − w) · value + w · p never changes the order of two different values, for p in [0, 1]."""
    gaps = np.diff(np.unique(values))
    return min(MAX_CONFIDENCE, float(gaps.min()) / 4.0) if len(gaps) else MAX_CONFIDENCE


def equal_mass_bins(
    confidence: FloatArray, correct: BoolArray, points_per_bin: int
) -> tuple[FloatArray, FloatArray]:
    """Lowest confidence of every bin but the first, and the accuracy in every bin."""
    n = len(confidence)
    order = np.argsort(confidence, kind="stable")
    ranked = confidence[order]
    size = n // max(1, n // points_per_bin)
    # A bin starts only where the confidence changes, because tied rows cannot be separated later.
    changes = 1 + np.flatnonzero(np.diff(ranked) > 0)
    starts = [0]
    while True:
        start = changes[changes.searchsorted(starts[-1] + size) :][:1]
        if not len(start) or n - start[0] < points_per_bin:
            break
        starts.append(int(start[0]))
    sizes = np.diff([*starts, n])
    return ranked[starts[1:]], np.add.reduceat(correct[order].astype(float), starts) / sizes
