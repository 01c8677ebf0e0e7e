"""Top-label calibration: how often a prediction of this class with this confidence was right."""

import numpy as np

from neighboragg._typing import BoolArray, FloatArray
from neighboragg._validation import check_integer
from neighboragg.methods._base import FitData, TrustMethod

__all__ = ["TopLabelCalibration"]

# Breaking ties must not cost calibration.
MOST_CONFIDENCE = 1e-3


class TopLabelCalibration(TrustMethod):
    """Histogram binning of the confidence, for each predicted class on its own.

    Parameters
    ----------
    points_per_bin : int, default=50
        Least number of validation rows in a bin.
    break_ties : bool, default=False
        Order rows of equal trust by their confidence, by mixing in so little of it that no other two rows change
        places.

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
    Needs probabilities and validation rows; looks at no vectors. The n validation rows that were predicted to be
    of class c are cut by confidence into ⌊n / `points_per_bin`⌋ bins of equal mass. Rows of equal confidence
    share a bin, so that ties make fewer and larger bins. Trust in class c is the accuracy of the bin that p_c
    falls into, as if c had been predicted; for a class that was not predicted, p_c mostly lies below what was
    seen, and the lowest bin answers. The trust takes few distinct values: calibrated, with many ties. Where a
    class has few rows its one bin says nothing about a single row; then break ties, or let :class:`Tuned` choose
    `points_per_bin`.

    In the authors' code a class with fewer than `points_per_bin` rows keeps its confidence as it is; here it uses
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
    return min(MOST_CONFIDENCE, float(gaps.min()) / 4.0) if len(gaps) else MOST_CONFIDENCE


def equal_mass_bins(
    confidence: FloatArray, correct: BoolArray, points_per_bin: int
) -> tuple[FloatArray, FloatArray]:
    """Lowest confidence of every bin but the first, and the accuracy in every bin.

    Every bin holds at least `points_per_bin` rows, or all rows if there are fewer.
    """
    n = len(confidence)
    order = np.argsort(confidence, kind="stable")
    ranked = confidence[order]
    size = n // max(1, n // points_per_bin)
    # A bin starts only where the confidence changes: rows that tie cannot be told apart later.
    changes = 1 + np.flatnonzero(np.diff(ranked) > 0)
    starts = [0]
    while True:
        start = changes[changes.searchsorted(starts[-1] + size) :][:1]
        if not len(start) or n - start[0] < points_per_bin:
            break
        starts.append(int(start[0]))
    sizes = np.diff([*starts, n])
    return ranked[starts[1:]], np.add.reduceat(correct[order].astype(float), starts) / sizes
