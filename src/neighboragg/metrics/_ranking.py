"""Ranking metrics: how well trust separates correct predictions from errors."""

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neighboragg._core.checks import check_outcomes, check_real
from neighboragg._core.types import ArrayLike, BoolArray
from neighboragg.exceptions import TrustWarning


def warn_undefined(subject: str, *, n_rows: int, all_correct: bool) -> None:
    """Warn that a ranking is undefined, because all rows are correct or all are wrong."""
    warnings.warn(
        f"{subject} undefined because all {n_rows} rows are {'correct' if all_correct else 'wrong'}; "
        "NaN is returned.\nHint: pass both correct and wrong predictions.",
        TrustWarning,
        stacklevel=3,
    )


@dataclass(frozen=True, eq=False)
class TieGroups:
    """Counts of correct and wrong rows for each distinct trust value, most trusted first."""

    trust: NDArray[np.float64]
    successes: NDArray[np.int64]
    errors: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows in each group."""
        return self.successes + self.errors

    @property
    def n_rows(self) -> int:
        """Rows in all groups."""
        return self.n_successes + self.n_errors

    @property
    def n_successes(self) -> int:
        """Correct rows in all groups."""
        return int(self.successes.sum())

    @property
    def n_errors(self) -> int:
        """Wrong rows in all groups."""
        return int(self.errors.sum())


def group_ties(correct: BoolArray, trust: NDArray[np.float64]) -> TieGroups:
    """Group rows by trust."""
    # A stable sort takes linear time on rows that are already sorted, such as those of the bootstrap.
    order = np.argsort(trust, kind="stable")
    ascending = trust[order]
    starts = np.concatenate(([0], np.flatnonzero(ascending[1:] != ascending[:-1]) + 1))
    sizes = np.diff(starts, append=len(trust))
    successes = np.add.reduceat(correct[order], starts, dtype=np.int64)
    return TieGroups(ascending[starts][::-1], successes[::-1], (sizes - successes)[::-1])


def oracle_groups(groups: TieGroups) -> TieGroups:
    """Return the groups of the best possible order: every correct row before every wrong one."""
    successes = np.array([groups.n_successes, 0], dtype=np.int64)
    errors = np.array([0, groups.n_errors], dtype=np.int64)
    present = successes + errors > 0
    return TieGroups(np.array([1.0, 0.0])[present], successes[present], errors[present])


def auroc(correct: ArrayLike, trust: ArrayLike) -> float:
    r"""Area under the ROC curve: how often a correct prediction is trusted more than a wrong one.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Trust in each prediction, higher for more trusted. Only its order matters.

    Returns
    -------
    auroc : float
        Between 0 and 1; an uninformative score gets 0.5. NaN, with a `TrustWarning`, if all rows are correct or
        all are wrong.

    Notes
    -----
    With :math:`t^+` the trust of a random correct row and :math:`t^-` the trust of a random wrong row,

    .. math:: \text{AUROC} = P(t^+ > t^-) + \tfrac12 P(t^+ = t^-).

    A tie counts one half, which equals the area under the ROC curve by the trapezoidal rule.

    References
    ----------
    .. [1] J. A. Hanley and B. J. McNeil, "The meaning and use of the area under a receiver operating
       characteristic (ROC) curve", Radiology 143(1), 1982.
    .. [2] D. Hendrycks and K. Gimpel, "A baseline for detecting misclassified and out-of-distribution
       examples in neural networks", ICLR 2017.

    Examples
    --------
    >>> from neighboragg.metrics import auroc
    >>> auroc([True, True, False, True], [0.9, 0.8, 0.7, 0.7])
    0.8333333333333334
    """
    groups = group_ties(*check_outcomes(correct, trust, "auroc"))
    if math.isnan(value := grouped_auroc(groups)):
        warn_undefined("auroc is", n_rows=groups.n_rows, all_correct=not groups.n_errors)
    return value


def average_precision_success(correct: ArrayLike, trust: ArrayLike) -> float:
    r"""Average precision of finding the correct predictions by high trust (APC).

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Trust in each prediction, higher for more trusted. Only its order matters.

    Returns
    -------
    average_precision : float
        Between 0 and 1; an uninformative score gets about the accuracy. NaN, with a `TrustWarning`, if all rows
        are correct or all are wrong.

    See Also
    --------
    average_precision_error : The same for finding the wrong predictions by low trust.

    Notes
    -----
    The sum runs over the distinct trust values from the highest to the lowest, where :math:`P_g` and :math:`R_g`
    are the precision and the recall of the rows trusted at least that much:

    .. math:: \text{AP} = \sum_g (R_g - R_{g-1}) P_g.

    There is no interpolation. Without a wrong row the formula gives 1 for any score, so NaN is returned.

    Examples
    --------
    >>> from neighboragg.metrics import average_precision_success
    >>> average_precision_success([True, False, True], [0.9, 0.8, 0.7])
    0.8333333333333333
    """
    groups = group_ties(*check_outcomes(correct, trust, "average_precision_success"))
    if math.isnan(value := grouped_average_precision_success(groups)):
        warn_undefined("average_precision_success is", n_rows=groups.n_rows, all_correct=not groups.n_errors)
    return value


def average_precision_error(correct: ArrayLike, trust: ArrayLike) -> float:
    r"""Average precision of finding the wrong predictions by low trust (APM).

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Trust in each prediction, higher for more trusted. Only its order matters.

    Returns
    -------
    average_precision : float
        Between 0 and 1; an uninformative score gets about the error rate. NaN, with a `TrustWarning`, if all rows
        are correct or all are wrong.

    See Also
    --------
    average_precision_success : The same for finding the correct predictions by high trust.

    Notes
    -----
    Errors are the positives and ``-trust`` is their score. The sum runs over the distinct trust values from the
    lowest to the highest, where :math:`P_g` and :math:`R_g` are the precision and the recall of the rows trusted
    at most that much:

    .. math:: \text{AP} = \sum_g (R_g - R_{g-1}) P_g.

    There is no interpolation. If errors are rare, this metric is more informative than
    `average_precision_success`. Without a correct row the formula gives 1 for any score, so NaN is returned.

    Examples
    --------
    >>> from neighboragg.metrics import average_precision_error
    >>> average_precision_error([True, False, True], [0.9, 0.8, 0.7])
    0.5
    """
    groups = group_ties(*check_outcomes(correct, trust, "average_precision_error"))
    if math.isnan(value := grouped_average_precision_error(groups)):
        warn_undefined("average_precision_error is", n_rows=groups.n_rows, all_correct=not groups.n_errors)
    return value


def fpr_at_tpr(correct: ArrayLike, trust: ArrayLike, *, tpr: float = 0.95) -> float:
    """Share of wrong predictions accepted by a threshold that accepts at least a share `tpr` of the correct ones.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Trust in each prediction, higher for more trusted. Only its order matters.
    tpr : float, default=0.95
        Share of the correct predictions that the threshold must accept, in (0, 1].

    Returns
    -------
    fpr : float
        Between 0 and 1, lower is better. NaN, with a `TrustWarning`, if all rows are correct or all are wrong.

    Notes
    -----
    This is the smallest false positive rate of any rule ``trust >= threshold`` whose true positive rate is at least
    `tpr`. There is no interpolation between thresholds; tied rows are accepted together or not at all.

    Examples
    --------
    >>> from neighboragg.metrics import fpr_at_tpr
    >>> fpr_at_tpr([True, False, True, False], [0.9, 0.8, 0.7, 0.6])
    0.5
    """
    target = check_real(tpr, "tpr", "fpr_at_tpr", low=0, high=1, closed="right")
    groups = group_ties(*check_outcomes(correct, trust, "fpr_at_tpr"))
    if math.isnan(value := grouped_fpr_at_tpr(groups, target)):
        warn_undefined("fpr_at_tpr is", n_rows=groups.n_rows, all_correct=not groups.n_errors)
    return value


def grouped_auroc(groups: TieGroups) -> float:
    """AUROC, or NaN if all rows are correct or all are wrong."""
    if _one_sided(groups):
        return math.nan
    # Correct rows above each group, plus half of the correct rows in it; doubled to stay in integers.
    above = 2 * np.cumsum(groups.successes) - groups.successes
    return float((above * groups.errors).sum() / (2 * groups.n_successes * groups.n_errors))


def grouped_average_precision_success(groups: TieGroups) -> float:
    """Average precision of successes, or NaN if all rows are correct or all are wrong."""
    if _one_sided(groups):
        return math.nan
    precision = np.cumsum(groups.successes) / np.cumsum(groups.sizes)
    return float((groups.successes * precision).sum() / groups.n_successes)


def grouped_average_precision_error(groups: TieGroups) -> float:
    """Average precision of errors, or NaN if all rows are correct or all are wrong."""
    return grouped_average_precision_success(
        TieGroups(-groups.trust[::-1], groups.errors[::-1], groups.successes[::-1])
    )


def grouped_fpr_at_tpr(groups: TieGroups, tpr: float) -> float:
    """Smallest false positive rate with a true positive rate of at least `tpr`, or NaN."""
    if _one_sided(groups):
        return math.nan
    # Quotients, not products: 19 / 20 is the same double as 0.95, while 0.95 * n may miss an integer.
    reached = int(np.argmax(np.cumsum(groups.successes) / groups.n_successes >= tpr))
    return float(groups.errors[: reached + 1].sum() / groups.n_errors)


def _one_sided(groups: TieGroups) -> bool:
    return not (groups.n_successes and groups.n_errors)
