"""Selective prediction: keep what can be trusted, with a promise about what is kept."""

import math
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import beta, binom
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import check_random_state

from neighboragg._typing import Array, ArrayLike, BoolArray, FloatArray
from neighboragg._validation import check_labels, check_real, check_same_length, encode_labels
from neighboragg.classifier import TrustedClassifier
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, NotCalibratedError, TrustWarning

__all__ = ["SelectiveClassifier", "SelectiveThreshold", "coverage_threshold", "risk_threshold"]

N_THRESHOLDS = 200
# The first test is made where this many times the fewest rows that could pass it are expected to be kept, so that
# one unlucky error does not end the search; but within the most trusted quarter, as far as a test can pass there.
HEAD_START, LATEST_START, LEAST_START = 3.0, 0.25, 1.2
# ... and no fewer than this many rows of the grid lie above it: a quantile of fewer could be far off.
FEWEST_ABOVE = 5
# Calibration rows set aside to place the thresholds: a fifth, but no more than are needed.
SHARE_FOR_GRID, MOST_FOR_GRID = 0.2, 200


@dataclass(frozen=True)
class SelectiveThreshold:
    """A threshold on trust and what the calibration rows say of it.

    Parameters
    ----------
    threshold : float
        Keep a prediction if its trust is at least this; inf rejects all.
    promised : bool
        Whether the target is promised at the confidence level.
    n_rows, n_kept, n_errors : int
        Calibration rows, those kept, and errors among the kept.
    risk_bound : float
        Upper confidence limit for the error rate among kept rows (exact binomial); 1 if none is kept.
    """

    threshold: float
    promised: bool
    n_rows: int
    n_kept: int
    n_errors: int
    risk_bound: float

    @property
    def coverage(self) -> float:
        """Share of the calibration rows that is kept."""
        return self.n_kept / self.n_rows if self.n_rows else 0.0


def risk_threshold(
    correct: ArrayLike,
    trust: ArrayLike,
    *,
    target_risk: float,
    confidence_level: float = 0.95,
    grid: ArrayLike | None = None,
    random_state: Any = 0,
) -> SelectiveThreshold:
    """The lowest threshold for which the error rate among kept rows is promised to be at most `target_risk`.

    Parameters
    ----------
    correct : array-like of bool of shape (n,)
        Whether the classifier was right on each calibration row.
    trust : array-like of shape (n,)
        Trust in each prediction.
    target_risk : float
        Largest error rate among kept rows, in (0, 1).
    confidence_level : float, default=0.95
        Probability, over the draw of the calibration rows, with which the promise holds.
    grid : array-like of shape (m,), default=None
        Trust of rows other than the calibration rows, from whose quantiles thresholds are taken. None sets
        some of the calibration rows aside for that: a random fifth, at most 200.
    random_state : int, RandomState instance or None, default=0
        Chooses the rows set aside.

    Returns
    -------
    threshold : SelectiveThreshold
        With `promised` False and threshold inf if no threshold can promise the target.

    Notes
    -----
    Fixed-sequence testing. Candidate thresholds are fixed before the calibration rows are looked at and tested
    from high to low. At each, given the number n of rows kept, the number of errors is binomial with the true
    risk of that threshold, so P(Bin(n, target_risk) ≤ errors) is an exact p-value for "the risk exceeds the
    target". The search stops at the first threshold that is not rejected at 1 − `confidence_level`; therefore the
    probability that any accepted threshold breaks the target is at most that. The only assumption is that
    calibration rows and future rows are drawn independently from one distribution, and that calibration rows
    took no part in fitting.

    References
    ----------
    Angelopoulos, Bates, Candès, Jordan and Lei, "Learn then Test", 2021. Geifman and El-Yaniv, "Selective
    Classification for Deep Neural Networks", NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.selective import risk_threshold
    >>> rng = np.random.default_rng(0)
    >>> trust = rng.random(4000)
    >>> found = risk_threshold(rng.random(4000) < trust, trust, target_risk=0.1)
    >>> found.promised, round(found.threshold, 2)
    (True, 0.86)
    """
    hits, scores = _check_outcomes(correct, trust, "risk_threshold")
    target = check_real(target_risk, "target_risk", "risk_threshold", low=0, high=1)
    level = check_real(confidence_level, "confidence_level", "risk_threshold", low=0, high=1)
    if grid is None:
        n_aside = min(MOST_FOR_GRID, math.ceil(SHARE_FOR_GRID * len(scores)))
        aside = check_random_state(random_state).permutation(len(scores)) < n_aside
        reference, hits, scores = scores[aside], hits[~aside], scores[~aside]
    else:
        reference = _check_grid(grid)
    candidates = _candidates(reference, len(scores), target, level)
    kept = len(scores) - np.searchsorted(np.sort(scores), candidates)
    errors = (~hits).sum() - np.searchsorted(np.sort(scores[~hits]), candidates)
    passed = (kept > 0) & (binom.cdf(errors, kept, target) <= 1 - level)
    n_passed = int(np.argmin(np.append(passed, False)))  # the first failure ends the search
    if n_passed == 0:
        return SelectiveThreshold(math.inf, False, len(scores), 0, 0, 1.0)
    i = n_passed - 1
    n, wrong = int(kept[i]), int(errors[i])
    return SelectiveThreshold(float(candidates[i]), True, len(scores), n, wrong, _upper(wrong, n, level))


def coverage_threshold(
    correct: ArrayLike, trust: ArrayLike, *, target_coverage: float, confidence_level: float = 0.95
) -> SelectiveThreshold:
    """The highest threshold for which coverage is promised to be at least `target_coverage`.

    Parameters
    ----------
    correct : array-like of bool of shape (n,)
    trust : array-like of shape (n,)
    target_coverage : float
        Smallest share of future rows to keep, in (0, 1).
    confidence_level : float, default=0.95

    Returns
    -------
    threshold : SelectiveThreshold
        `promised` is False, and the threshold keeps every row, if there are too few rows for a promise.

    Notes
    -----
    The coverage of the k-th smallest of n calibration scores is at least Beta(n − k + 1, k) distributed, whatever
    the distribution of trust; the largest k whose lower tail allows it is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.selective import coverage_threshold
    >>> trust = np.arange(1000) / 1000
    >>> found = coverage_threshold(np.ones(1000, dtype=bool), trust, target_coverage=0.8)
    >>> round(found.threshold, 2)
    0.18
    """
    hits, scores = _check_outcomes(correct, trust, "coverage_threshold")
    target = check_real(target_coverage, "target_coverage", "coverage_threshold", low=0, high=1)
    level = check_real(confidence_level, "confidence_level", "coverage_threshold", low=0, high=1)
    n = len(scores)
    ranks = np.arange(1, n + 1)
    possible = ranks[beta.sf(target, n - ranks + 1, ranks) >= level]
    promised = bool(len(possible))
    threshold = float(np.sort(scores)[possible[-1] - 1]) if promised else -math.inf
    kept = scores >= threshold
    errors = int((kept & ~hits).sum())
    return SelectiveThreshold(
        threshold, promised, n, int(kept.sum()), errors, _upper(errors, int(kept.sum()), level)
    )


class SelectiveClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Predict where trust is high enough for a promise, and reject the rest.

    Parameters
    ----------
    model : TrustedClassifier
        Fitted; its predictions and trust are used as they are.
    target_risk : float, default=None
        Largest error rate among kept predictions. Exactly one of `target_risk` and `target_coverage` is given.
    target_coverage : float, default=None
        Smallest share of rows to keep.
    confidence_level : float, default=0.95
        Probability, over the draw of the calibration rows, that the target is met.
    per_class : bool, default=False
        One threshold for each predicted class, so that the target holds within every predicted class, all at
        once.
    reject_label : label, default=None
        What :meth:`predict` says for a rejected row. None means -1 for numbers and "reject" for strings.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    thresholds_ : ndarray of shape (n_classes,)
        Threshold on trust for each predicted class; all the same unless `per_class`.
    threshold_ : float
        The threshold; the largest of them if `per_class`.
    coverage_ : float
        Share of the calibration rows that is kept.
    promised_ : bool
        Whether the target is promised; if not, a warning was given.
    results_ : list of SelectiveThreshold
        What calibration found, one per threshold.

    Notes
    -----
    See :func:`risk_threshold` for the guarantee and its assumptions. Calibration rows must not have been used to
    fit the classifier or the trust method. If no threshold can promise the target, all rows are rejected and a
    warning says so.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from neighboragg import SelectiveClassifier, TrustedClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> fit, cal, new = np.split(np.random.default_rng(0).permutation(len(y)), [700, 1300])
    >>> model = TrustedClassifier(GaussianNB(), random_state=0).fit(X[fit], y[fit])
    >>> safe = SelectiveClassifier(model, target_risk=0.05).calibrate(X[cal], y[cal])
    >>> kept = safe.accept(X[new])
    >>> bool(model.score(X[new], y[new]) < 0.9)
    True
    >>> bool(model.score(X[new][kept], y[new][kept]) > 0.95)
    True
    """

    def __init__(
        self,
        model: TrustedClassifier,
        *,
        target_risk: float | None = None,
        target_coverage: float | None = None,
        confidence_level: float = 0.95,
        per_class: bool = False,
        reject_label: Any = None,
    ) -> None:
        self.model = model
        self.target_risk = target_risk
        self.target_coverage = target_coverage
        self.confidence_level = confidence_level
        self.per_class = per_class
        self.reject_label = reject_label

    def calibrate(self, X: Any, y: ArrayLike) -> Self:
        """Find the threshold from rows that were not used in fitting.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        self : SelectiveClassifier
        """
        owner = type(self).__name__
        if (self.target_risk is None) == (self.target_coverage is None):
            raise InvalidParameterError(
                f"{owner} needs exactly one of target_risk and target_coverage. "
                f"Got {self.target_risk!r} and {self.target_coverage!r}."
            )
        level = check_real(self.confidence_level, "confidence_level", owner, low=0, high=1)
        labels = check_labels(y, "y", owner)
        predicted, trust = self.model.predict(X), self.model.score_samples(X)
        check_same_length(predicted, "X", labels, "y", owner)
        self.classes_ = self.model.classes_
        self.reject_label_ = self._resolve_reject_label()
        if (labels.dtype.kind in "US") != (self.classes_.dtype.kind in "US") and labels.dtype.kind != "O":
            raise InvalidInputError(
                f"y passed to {owner} is of type {labels.dtype}, but the classes are of type {self.classes_.dtype}, "
                "so that no label equals a prediction.\nHint: pass labels of the type that fit had."
            )
        correct = predicted == labels
        if self.per_class:
            # Each class may fail with an equal share of the probability of failure.
            share = 1 - (1 - level) / len(self.classes_)
            groups = [predicted == label for label in self.classes_]
        else:
            share, groups = level, [np.ones(len(trust), dtype=bool)]
        self.results_ = [self._find(correct[group], trust[group], share) for group in groups]
        found = np.array([result.threshold for result in self.results_])
        self.thresholds_ = np.broadcast_to(found, len(self.classes_)).copy()
        self.threshold_ = float(found.max())
        self.promised_ = all(result.promised for result in self.results_)
        self.coverage_ = float(self._kept(predicted, trust).mean())
        if not self.promised_:
            self._warn(groups)
        return self

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """The same as :meth:`calibrate`; the model itself stays as it is.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        self : SelectiveClassifier
        """
        return self.calibrate(X, y)

    def accept(self, X: Any) -> BoolArray:
        """Which predictions are kept.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        kept : ndarray of bool of shape (n,)
        """
        self._check_calibrated()
        return self._kept(self.model.predict(X), self.model.score_samples(X))

    def predict(self, X: Any) -> Array:
        """Labels, and the reject label where trust is too low.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        y_pred : ndarray of shape (n,)
        """
        self._check_calibrated()
        predicted = self.model.predict(X)
        kept = self._kept(predicted, self.model.score_samples(X))
        kinds = predicted.dtype, np.array([self.reject_label_]).dtype
        # Numbers beside strings, or anything beside objects, would turn into strings: keep them as they are.
        mixed = len({kind.kind in "US" for kind in kinds}) == 2 or any(kind.kind == "O" for kind in kinds)
        answer = predicted.astype(object if mixed else np.result_type(*kinds))
        answer[~kept] = self.reject_label_
        return answer

    def confusion_matrix(self, X: Any, y: ArrayLike) -> Array:
        """Counts of true against predicted classes, with rejected rows in a last column.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        counts : ndarray of shape (n_classes, n_classes + 1)
            Row: true class; column: predicted class, or rejected.
        """
        owner = type(self).__name__
        kept, labels = self.accept(X), check_labels(y, "y", owner)
        check_same_length(kept, "X", labels, "y", owner)
        truth = encode_labels(labels, self.classes_, "y", owner)
        said = np.where(kept, np.searchsorted(self.classes_, self.model.predict(X)), len(self.classes_))
        counts = np.zeros((len(self.classes_), len(self.classes_) + 1), dtype=np.int64)
        np.add.at(counts, (truth, said), 1)
        return counts

    def _find(self, correct: BoolArray, trust: FloatArray, level: float) -> SelectiveThreshold:
        if self.target_coverage is not None:
            return coverage_threshold(
                correct, trust, target_coverage=self.target_coverage, confidence_level=level
            )
        return risk_threshold(
            correct,
            trust,
            target_risk=self.target_risk,  # type: ignore[arg-type]
            confidence_level=level,
        )

    def _kept(self, predicted: Array, trust: FloatArray) -> BoolArray:
        return np.asarray(trust >= self.thresholds_[np.searchsorted(self.classes_, predicted)])

    def _warn(self, groups: list[BoolArray]) -> None:
        broken = [
            f"predicted class {label!r} ({int(group.sum())} calibration rows)"
            if self.per_class
            else "all rows"
            for label, group, result in zip(self.classes_.tolist(), groups, self.results_, strict=False)
            if not result.promised
        ]
        if self.target_coverage is not None:
            consequence, remedy = "these are all kept", "a smaller target_coverage"
            target = f"target_coverage={self.target_coverage:g}"
        else:
            consequence, remedy = "these are rejected", "a larger target_risk"
            target = f"target_risk={self.target_risk:g}"
        warnings.warn(
            f"No threshold was found that promises {target} with confidence_level={self.confidence_level:g} for "
            f"{', '.join(broken)}; {consequence}.\n"
            f"Hint: {remedy}, more calibration rows, or a lower confidence_level.",
            TrustWarning,
            stacklevel=3,
        )

    def _resolve_reject_label(self) -> Any:
        label = self.reject_label
        if label is None:
            label = "reject" if self.classes_.dtype.kind in "OUS" else -1
        if label in self.classes_.tolist():
            raise InvalidParameterError(
                f"The 'reject_label' parameter of {type(self).__name__} is one of the classes: {label!r}.\n"
                "Hint: reject_label=… with a value that is no class."
            )
        return label

    def _check_calibrated(self) -> None:
        if not hasattr(self, "thresholds_"):
            raise NotCalibratedError(
                f"This {type(self).__name__} has no threshold yet.\n"
                "Hint: calibrate(X_cal, y_cal) with rows that were not used in fitting."
            )


def _check_outcomes(correct: ArrayLike, trust: ArrayLike, owner: str) -> tuple[BoolArray, FloatArray]:
    hits, scores = np.asarray(correct), np.asarray(trust, dtype=np.float64)
    if hits.dtype != bool or hits.ndim != 1 or scores.ndim != 1:
        raise InvalidInputError(
            f"correct passed to {owner} must be a 1-D array of bool, and trust 1-D. "
            f"Got {hits.dtype} of shape {hits.shape}, and shape {scores.shape}."
        )
    check_same_length(hits, "correct", scores, "trust", owner)
    if np.isnan(scores).any():
        raise InvalidInputError(
            f"trust passed to {owner} contains NaN in row {int(np.isnan(scores).argmax())}."
        )
    return hits, scores


def _check_grid(grid: ArrayLike) -> FloatArray:
    reference = np.asarray(grid, dtype=np.float64)
    if reference.ndim != 1 or not len(reference) or np.isnan(reference).any():
        raise InvalidInputError(
            "grid passed to risk_threshold must be a 1-D array of at least one number, without NaN. "
            f"Got shape {reference.shape} with {int(np.isnan(reference).sum())} NaN."
        )
    return reference


def _candidates(reference: FloatArray, n: int, target: float, level: float) -> FloatArray:
    """Thresholds from high to low, from rows other than those tested."""
    if not len(reference) or not n:
        return np.empty(0)
    fewest = math.log(1 - level) / math.log1p(-target)  # rows without an error that could pass a test
    start = max(min(HEAD_START * fewest, LATEST_START * n), LEAST_START * fewest)
    first = min(1.0, max(start / n, FEWEST_ABOVE / len(reference)))
    shares = np.linspace(first, 1.0, N_THRESHOLDS)
    found = np.quantile(reference, 1.0 - shares)
    return np.unique(found)[::-1]


def _upper(errors: int, n: int, level: float) -> float:
    """Exact upper confidence limit of a binomial proportion."""
    return 1.0 if errors >= n else float(beta.ppf(level, errors + 1, n - errors))
