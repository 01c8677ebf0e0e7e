"""Calibration: whether trust equals the probability that the prediction is correct."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neighboragg._core.checks import check_choice, check_integer, check_outcomes
from neighboragg._core.types import ArrayLike
from neighboragg.metrics._ranking import TieGroups, group_ties


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Mean trust and share of correct predictions in each bin, without empty bins."""

    trust: NDArray[np.float64]
    correct: NDArray[np.float64]
    n_rows: NDArray[np.intp]


def reliability_curve(correct: ArrayLike, trust: ArrayLike, *, n_bins: int = 10) -> ReliabilityCurve:
    """Share of correct predictions in bins of trust of equal width.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Probability, in [0, 1], that each prediction is correct.
    n_bins : int, default=10
        Number of bins. Each bin includes its right edge; the first also includes its left edge.

    Returns
    -------
    curve : ReliabilityCurve
        Arrays `trust`, `correct` and `n_rows`, with one entry per bin. Empty bins are omitted.

    Examples
    --------
    >>> from neighboragg.metrics import reliability_curve
    >>> curve = reliability_curve([True, True, False, True], [0.9, 1.0, 0.5, 0.5])
    >>> curve.trust.tolist(), curve.correct.tolist()
    ([0.5, 0.9, 1.0], [0.5, 1.0, 1.0])
    """
    owner = "reliability_curve"
    bins = check_integer(n_bins, "n_bins", owner, minimum=1)
    groups = group_ties(*check_outcomes(correct, trust, owner, probability=True))
    members = _equal_width_bins(groups, bins)
    n_rows = np.bincount(members, weights=groups.sizes, minlength=bins)
    used = n_rows > 0
    trusted = np.bincount(members, weights=groups.trust * groups.sizes, minlength=bins)[used]
    right = np.bincount(members, weights=groups.successes, minlength=bins)[used]
    return ReliabilityCurve(trusted / n_rows[used], right / n_rows[used], n_rows[used].astype(np.intp))


def expected_calibration_error(
    correct: ArrayLike, trust: ArrayLike, *, n_bins: int = 15, strategy: str = "uniform"
) -> float:
    r"""Mean difference between trust and the share of correct predictions, over bins of trust (ECE).

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Probability, in [0, 1], that each prediction is correct.
    n_bins : int, default=15
        Number of bins. Empty bins do not count.
    strategy : {"uniform", "quantile"}, default="uniform"
        ``"uniform"`` makes bins of equal width; each includes its right edge, and the first also its left edge.
        ``"quantile"`` makes bins with equal numbers of rows, as far as ties allow.

    Returns
    -------
    ece : float
        Between 0 and 1, lower is better.

    Notes
    -----
    With :math:`n_b` rows in bin :math:`b`,

    .. math:: \text{ECE} = \sum_b \frac{n_b}{n} \left| \text{acc}_b - \overline{\text{trust}}_b \right|.

    This is the top-label calibration error. Rows with equal trust are always in the same bin, so quantile bins can
    differ in size. Even a perfectly calibrated score has a positive ECE on finitely many rows; it grows with the
    number of bins.

    References
    ----------
    .. [1] M. P. Naeini, G. F. Cooper and M. Hauskrecht, "Obtaining well calibrated probabilities using
       Bayesian binning", AAAI 2015.
    .. [2] C. Guo et al., "On calibration of modern neural networks", ICML 2017.

    Examples
    --------
    >>> from neighboragg.metrics import expected_calibration_error
    >>> round(expected_calibration_error([True, True, False, True], [0.9, 0.9, 0.6, 0.6]), 6)
    0.1
    """
    owner = "expected_calibration_error"
    bins = check_integer(n_bins, "n_bins", owner, minimum=1)
    chosen = check_choice(strategy, "strategy", owner, choices=("uniform", "quantile"))
    groups = group_ties(*check_outcomes(correct, trust, owner, probability=True))
    return grouped_calibration_error(groups, bins, chosen)


def grouped_calibration_error(groups: TieGroups, n_bins: int, strategy: str) -> float:
    """ECE over bins that never split a group."""
    sizes = groups.sizes
    if strategy == "uniform":
        bins = _equal_width_bins(groups, n_bins)
    else:
        # The share of rows with less trust decides the bin of a group.
        rows_below = groups.n_rows - np.cumsum(sizes)
        bins = rows_below * n_bins // groups.n_rows
    gaps = np.bincount(bins, weights=groups.successes - groups.trust * sizes)
    return float(np.abs(gaps).sum() / groups.n_rows)


def _equal_width_bins(groups: TieGroups, n_bins: int) -> NDArray[np.intp]:
    """The bin of each group; bins include their right edge."""
    return np.searchsorted(np.arange(1, n_bins) / n_bins, groups.trust, side="left")


def grouped_brier_score(groups: TieGroups) -> float:
    """Mean squared difference between trust and outcome."""
    losses = groups.successes * (1.0 - groups.trust) ** 2 + groups.errors * groups.trust**2
    return float(losses.sum() / groups.n_rows)
