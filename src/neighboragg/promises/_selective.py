"""SelectiveClassifier: predict where trust is high enough for a promise, and reject the rest."""

import math
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin

from neighboragg._core.checks import (
    check_labels,
    check_real,
    check_row_values,
    check_same_kind,
    check_same_length,
    encode_labels,
)
from neighboragg._core.inputs import take_rows
from neighboragg._core.stats import upper_limit
from neighboragg._core.types import Array, ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg._store.objects import Savable
from neighboragg.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    NotCalibratedError,
    TrustWarning,
)
from neighboragg.promises._thresholds import SelectiveThreshold, coverage_threshold, risk_threshold
from neighboragg.trust import Assessment, TrustedClassifier, copies_among, without_warning

# Probability of a false alarm: calling calibration rows unfamiliar that are like the training rows.


class SelectiveClassifier(Savable, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Predict where trust is high enough for a promise, and reject the rest.

    Parameters
    ----------
    model : TrustedClassifier
        Fitted; its predictions and trust are used as they are. :func:`sklearn.base.clone` keeps it.
    target_risk : float, default=None
        Largest error rate among accepted predictions. Exactly one of `target_risk` and `target_coverage` is given.
    target_coverage : float, default=None
        Smallest share of rows to accept.
    confidence_level : float, default=0.95
        Probability, over the draw of the calibration rows, that the target is met.
    per_class : bool, default=False
        Use one threshold per predicted class, to meet the target within every predicted class simultaneously.
    min_familiarity : float, default=None
        Also reject rows whose familiarity is at most this, whatever their trust; needs a model with neighbors. None
        ignores familiarity.
    reject_label : label, default=None
        What :meth:`predict` returns for a rejected row. None means -1 for numbers and "reject" for strings.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    thresholds_ : ndarray of shape (n_classes,)
        Threshold on trust for each predicted class; all the same unless `per_class`.
    threshold_ : float
        The threshold; the largest of them if `per_class`.
    coverage_ : float
        Share of the calibration rows that is accepted.
    unfamiliar_ : float
        Share of the calibration rows that is rejected as unfamiliar; 0 without `min_familiarity`.
    promised_ : bool
        Whether the target is promised; if not, a warning was given.
    results_ : list of SelectiveThreshold
        What calibration found, one per threshold.

    Notes
    -----
    *What the target promises.* See :func:`risk_threshold` and :func:`coverage_threshold`. Calibration rows must not
    have been used to fit the classifier or the trust method. If no threshold can promise the target, all rows are
    rejected with a warning. With `min_familiarity`, the threshold of a risk comes from the familiar calibration rows,
    which are drawn like the familiar new rows: the promise is about accepted rows, as without it. A coverage
    is the share of all rows; rows rejected as unfamiliar count as rejected.

    *What `min_familiarity` promises* is different: of new rows like the validation rows of the model, at most this
    share is rejected as unfamiliar, on average over the draw of the validation rows; see
    :meth:`TrustedClassifier.familiarity <neighboragg.TrustedClassifier.familiarity>`. It does not promise to
    find rows of unknown classes or from other sources: that depends on how far they are from the training rows.

    Neither promise replaces the other: the error rate holds for rows from the source of the calibration rows, not for
    rows from other sources that pass as familiar.

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
    >>> accepted = safe.accept(X[new])
    >>> bool(model.score(X[new], y[new]) < 0.9)
    True
    >>> bool(model.score(X[new][accepted], y[new][accepted]) > 0.95)
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
        min_familiarity: float | None = None,
        reject_label: Any = None,
    ) -> None:
        self.model = model
        self.target_risk = target_risk
        self.target_coverage = target_coverage
        self.confidence_level = confidence_level
        self.per_class = per_class
        self.min_familiarity = min_familiarity
        self.reject_label = reject_label

    def calibrate(self, X: Any, y: ArrayLike, *, groups: ArrayLike | None = None) -> Self:
        """Find the threshold from rows that were not used in fitting.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)
        y : array-like of shape (n,)
        groups : array-like of shape (n,), default=None
            Group of each row, where rows come in groups and new rows will be of other groups. Rows of one group are
            not independent, so one row of each group, drawn at random, is used: the promise is about a random row
            of a new group.

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
        if not hasattr(self.model, "assess"):
            raise InvalidParameterError(
                f"The 'model' parameter of {owner} must be a fitted TrustedClassifier. Got {self.model!r} instead.\n"
                "Hint: TrustedClassifier(classifier).fit(X, y) is one."
            )
        level = check_real(self.confidence_level, "confidence_level", owner, low=0, high=1)
        labels = check_labels(y, "y", owner)
        if groups is not None:
            rows = _one_row_of_each(groups, len(labels), owner)
            X, labels = take_rows(X, rows), labels[rows]
        assessed = self._assess_unseen(X)
        predicted, trust = assessed.predicted, assessed.trust
        check_same_length(predicted, "X", labels, "y", owner)
        self.classes_ = self.model.classes_
        self.reject_label_ = self._resolve_reject_label()
        check_same_kind(labels, self.classes_, "y", owner)
        encode_labels(labels, self.classes_, "y", owner)  # refuses labels unknown to the model
        self._check_min_familiarity(assessed)
        correct, familiar = predicted == labels, self._familiar(assessed)
        self.unfamiliar_ = float((~familiar).mean())
        if self.per_class:
            # Each class may fail with an equal share of the probability of failure.
            share = 1 - (1 - level) / len(self.classes_)
            groups = [predicted == label for label in self.classes_]
        else:
            share, groups = level, [np.ones(len(trust), dtype=bool)]
        self.results_ = [self._find(correct[group], trust[group], familiar[group], share) for group in groups]
        found = np.array([result.threshold for result in self.results_])
        self.thresholds_ = np.broadcast_to(found, len(self.classes_)).copy()
        self.threshold_ = float(found.max())
        self.promised_ = all(result.promised for result in self.results_)
        self.coverage_ = float(self._accepted(assessed).mean())
        if not self.promised_:
            self._warn_of_broken_promises(groups)
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
        """Mask of the accepted predictions.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        accepted : ndarray of bool of shape (n,)
        """
        return self._assess(X)[1]

    def assess(self, X: Any) -> Assessment:
        """Predicted label, probability, trust, and whether it is accepted, from one pass through the classifier.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        assessment : Assessment
            ``print`` it, take its arrays, or turn it into a data frame with ``to_frame()``. Labels are those
            of the classifier, for rejected rows too.
        """
        assessed, accepted = self._assess(X)
        return replace(assessed, accepted=accepted)

    def predict(self, X: Any) -> Array:
        """Labels, and the reject label where trust is too low or, with `min_familiarity`, the row is unfamiliar.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        y_pred : ndarray of shape (n,)
        """
        assessed, accepted = self._assess(X)
        predicted = assessed.predicted
        kinds = predicted.dtype, np.array([self.reject_label_]).dtype
        # Numbers joined with strings, or anything with objects, would turn into strings: keep them as they are.
        mixed = len({kind.kind in "US" for kind in kinds}) == 2 or any(kind.kind == "O" for kind in kinds)
        answer = predicted.astype(object if mixed else np.result_type(*kinds))
        answer[~accepted] = self.reject_label_
        return answer

    def __sklearn_clone__(self) -> Self:
        """A copy without thresholds; a fitted model is never unfitted, as calibration could not fit it again."""
        copy = super().__sklearn_clone__()
        if hasattr(self.model, "classes_"):
            copy.model = self.model
        return copy

    def _find(
        self, correct: BoolArray, trust: FloatArray, familiar: BoolArray, level: float
    ) -> SelectiveThreshold:
        if self.target_coverage is not None:
            return self._find_coverage(correct, np.where(familiar, trust, -np.inf), level)
        return risk_threshold(
            correct[familiar],
            trust[familiar],
            target_risk=self.target_risk,  # type: ignore[arg-type]
            confidence_level=level,
        )

    def _find_coverage(self, correct: BoolArray, trust: FloatArray, level: float) -> SelectiveThreshold:
        """A threshold where unfamiliar rows have the trust -inf: one that must accept them cannot be promised."""
        target = self.target_coverage
        found = coverage_threshold(
            correct,
            trust,
            target_coverage=target,  # type: ignore[arg-type]
            confidence_level=level,
        )
        if not np.isneginf(found.threshold):
            return found
        accepted = trust > -np.inf
        n_kept, n_errors = int(accepted.sum()), int((accepted & ~correct).sum())
        bound = float(upper_limit(n_errors, n_kept, 1 - level))
        return replace(found, promised=False, n_kept=n_kept, n_errors=n_errors, risk_bound=bound)

    def _check_min_familiarity(self, assessed: Assessment) -> None:
        if self.min_familiarity is None:
            return
        owner = type(self).__name__
        level = check_real(self.min_familiarity, "min_familiarity", owner, low=0, high=1)
        if assessed.familiarity is None:
            raise InvalidParameterError(
                f"The 'min_familiarity' parameter of {owner} needs a model with neighbors; "
                f"{type(self.model.method_).__name__} does not use neighbors.\n"
                "Hint: TrustedClassifier(estimator, method=NeighborAgg())."
            )
        least = self.model.method_.familiarity_.least()
        never = least > level
        enough = math.ceil(1 / level) - 1
        hint = (
            f"Hint: a larger min_familiarity, or a model with more validation rows; {enough} can be enough."
        )
        if never.all():
            raise InvalidParameterError(
                f"{owner} got min_familiarity={level:g}, but no familiarity of its model is below {least.min():.3g}, "
                f"so no row could be rejected as unfamiliar.\n{hint}"
            )
        if never.any():
            warnings.warn(
                f"With min_familiarity={level:g} no row can be rejected as unfamiliar whose predicted class is "
                f"{', '.join(map(repr, self.classes_[never].tolist()))}.\n{hint}",
                TrustWarning,
                stacklevel=3,
            )

    def _familiar(self, assessed: Assessment) -> BoolArray:
        if self.min_familiarity is None or assessed.familiarity is None:
            return np.ones(len(assessed), dtype=bool)
        return np.asarray(assessed.familiarity > self.min_familiarity)

    def _assess(self, X: Any) -> tuple[Assessment, BoolArray]:
        if not hasattr(self, "thresholds_"):
            raise NotCalibratedError(
                f"This {type(self).__name__} is not calibrated yet.\n"
                "Hint: calibrate(X_cal, y_cal) with rows that were not used in fitting."
            )
        assessed = self.model.assess(X)
        return assessed, self._accepted(assessed)

    def _assess_unseen(self, X: Any) -> Assessment:
        """Assess calibration rows; raise if the model was fitted on them."""
        with without_warning():
            assessed = self.model.assess(X)
        for note in assessed.notes:
            warnings.warn(note, TrustWarning, stacklevel=3)
        if assessed.seen_in_fit is None or assessed.copies_by_chance:
            return assessed
        raise InvalidInputError(
            f"{type(self).__name__} cannot be calibrated on rows that its model was fitted on: "
            f"{copies_among(assessed.seen_in_fit, type(self.model).__name__)}. A promise based on them does not hold "
            "for new rows.\n"
            "Hint: calibrate(X_cal, y_cal) with rows that were not used in fitting."
        )

    def _accepted(self, assessed: Assessment) -> BoolArray:
        threshold = self.thresholds_[np.searchsorted(self.classes_, assessed.predicted)]
        return np.asarray((assessed.trust >= threshold) & self._familiar(assessed))

    def _warn_of_broken_promises(self, groups: list[BoolArray]) -> None:
        broken = [
            f"predicted class {label!r} ({int(group.sum())} calibration rows)"
            if self.per_class
            else "all rows"
            for label, group, result in zip(self.classes_.tolist(), groups, self.results_, strict=False)
            if not result.promised
        ]
        if self.target_coverage is not None:
            accepted = "all accepted" if self.min_familiarity is None else "accepted where they are familiar"
            consequence, remedy = f"these are {accepted}", "a smaller target_coverage"
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
                "Hint: pass a reject_label that is not a class."
            )
        return label


def _one_row_of_each(groups: ArrayLike, n: int, owner: str) -> IntArray:
    """Positions of one row of each group, drawn at random."""
    values = check_row_values(groups, "groups", owner, n_rows=n)
    drawn = np.random.default_rng(0).permutation(n)
    return np.sort(drawn[np.unique(values[drawn], return_index=True)[1]])
