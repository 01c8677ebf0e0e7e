"""Thresholds on trust that promise a risk or a coverage, as pure functions of outcomes and trust."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta, binom
from sklearn.utils import check_random_state

from neighboragg._core.checks import check_outcomes, check_real
from neighboragg._core.stats import upper_limit
from neighboragg._core.types import ArrayLike, FloatArray
from neighboragg._store.objects import Stored
from neighboragg.exceptions import InvalidInputError

N_THRESHOLDS = 200
# The first test accepts about HEAD_START times the fewest rows that could pass, so that one unlucky error does not end
# the search. It stays within the most trusted quarter of the rows if a test can pass there.
HEAD_START, LATEST_START, MIN_START = 3.0, 0.25, 1.2
# At least this many rows of the grid lie above the first threshold: a quantile of fewer would be inaccurate.
MIN_ABOVE = 5
# Calibration rows set aside to choose the candidate thresholds: a fifth, but at most 200.
SHARE_FOR_GRID, MAX_FOR_GRID = 0.2, 200


@dataclass(frozen=True)
class SelectiveThreshold(Stored):
    """A threshold on trust, with its counts and its risk bound on the calibration rows."""

    threshold: float
    promised: bool
    n_rows: int
    n_kept: int
    n_errors: int
    risk_bound: float

    @property
    def coverage(self) -> float:
        """Share of the calibration rows that the threshold accepts."""
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
    """Lowest threshold that promises an error rate of at most `target_risk` among accepted rows.

    Parameters
    ----------
    correct : array-like of bool of shape (n,)
        Whether the classifier was right on each calibration row.
    trust : array-like of shape (n,)
        Trust in each prediction.
    target_risk : float
        Largest allowed error rate among accepted rows, in (0, 1).
    confidence_level : float, default=0.95
        Probability, over the draw of the calibration rows, that the promise holds.
    grid : array-like of shape (m,), default=None
        Trust of rows other than the calibration rows. Candidate thresholds are its quantiles. None sets aside a
        random fifth of the calibration rows for this purpose, at most 200.
    random_state : int, RandomState instance or None, default=0
        Chooses the rows that are set aside.

    Returns
    -------
    threshold : SelectiveThreshold
        Its attributes are `threshold`, `promised`, `n_rows`, `n_kept`, `n_errors`, `risk_bound` and `coverage`. If
        no threshold can promise the target, `promised` is False and `threshold` is inf.

    Notes
    -----
    This is fixed-sequence testing. The candidate thresholds do not depend on the calibration rows and are tested from
    high to low. Given the number n of accepted rows, the number of errors is binomial with the true risk of the
    threshold, so P(Bin(n, target_risk) ≤ errors) is an exact p-value for "the risk exceeds the target". The search
    stops at the first threshold whose p-value is above 1 − `confidence_level`. The probability that any earlier
    threshold exceeds the target is therefore at most 1 − `confidence_level`. The promise assumes that calibration rows
    and future rows are drawn independently from one distribution, and that no calibration row was used in fitting.

    References
    ----------
    Angelopoulos, Bates, Candès, Jordan and Lei, "Learn then Test", 2021. Geifman and El-Yaniv, "Selective
    Classification for Deep Neural Networks", NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.promises import risk_threshold
    >>> rng = np.random.default_rng(0)
    >>> trust = rng.random(4000)
    >>> found = risk_threshold(rng.random(4000) < trust, trust, target_risk=0.1)
    >>> found.promised, round(found.threshold, 2)
    (True, 0.86)
    """
    hits, scores = check_outcomes(correct, trust, "risk_threshold", minimum=0)
    target = check_real(target_risk, "target_risk", "risk_threshold", low=0, high=1)
    level = check_real(confidence_level, "confidence_level", "risk_threshold", low=0, high=1)
    if grid is None:
        n_aside = min(MAX_FOR_GRID, math.ceil(SHARE_FOR_GRID * len(scores)))
        aside = check_random_state(random_state).permutation(len(scores)) < n_aside
        reference, hits, scores = scores[aside], hits[~aside], scores[~aside]
    else:
        reference = _check_grid(grid)
    candidates = _candidates(reference, len(scores), target, level)
    kept = len(scores) - np.searchsorted(np.sort(scores), candidates)
    errors = (~hits).sum() - np.searchsorted(np.sort(scores[~hits]), candidates)
    passed = binom.cdf(errors, kept, target) <= 1 - level  # never true if nothing is accepted
    n_passed = int(np.argmin(np.append(passed, False)))  # the first failure ends the search
    if n_passed == 0:
        return SelectiveThreshold(math.inf, False, len(scores), 0, 0, 1.0)
    i = n_passed - 1
    n, wrong = int(kept[i]), int(errors[i])
    bound = float(upper_limit(wrong, n, 1 - level))
    return SelectiveThreshold(float(candidates[i]), True, len(scores), n, wrong, bound)


def coverage_threshold(
    correct: ArrayLike, trust: ArrayLike, *, target_coverage: float, confidence_level: float = 0.95
) -> SelectiveThreshold:
    """Highest threshold that promises to accept at least a share `target_coverage` of future rows.

    Parameters
    ----------
    correct : array-like of bool of shape (n,)
        Whether the classifier was right on each calibration row.
    trust : array-like of shape (n,)
        Trust in each prediction.
    target_coverage : float
        Smallest share of future rows to accept, in (0, 1).
    confidence_level : float, default=0.95
        Probability, over the draw of the calibration rows, that the promise holds.

    Returns
    -------
    threshold : SelectiveThreshold
        If there are too few rows for a promise, `promised` is False and the threshold accepts every row.

    Notes
    -----
    For any distribution of trust, the coverage of the k-th smallest of n calibration scores is stochastically at least
    as large as a Beta(n − k + 1, k) variable. The threshold is the score with the largest k whose lower quantile still
    reaches the target.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.promises import coverage_threshold
    >>> trust = np.arange(1000) / 1000
    >>> found = coverage_threshold(np.ones(1000, dtype=bool), trust, target_coverage=0.8)
    >>> round(found.threshold, 2)
    0.18
    """
    hits, scores = check_outcomes(correct, trust, "coverage_threshold", minimum=0)
    target = check_real(target_coverage, "target_coverage", "coverage_threshold", low=0, high=1)
    level = check_real(confidence_level, "confidence_level", "coverage_threshold", low=0, high=1)
    n = len(scores)
    ranks = np.arange(1, n + 1)
    possible = ranks[beta.sf(target, n - ranks + 1, ranks) >= level]
    promised = bool(len(possible))
    threshold = float(np.sort(scores)[possible[-1] - 1]) if promised else -math.inf
    kept = scores >= threshold
    n_kept, errors = int(kept.sum()), int((kept & ~hits).sum())
    bound = float(upper_limit(errors, n_kept, 1 - level))
    return SelectiveThreshold(threshold, promised, n, n_kept, errors, bound)


def _check_grid(grid: ArrayLike) -> FloatArray:
    reference = np.asarray(grid, dtype=np.float64)
    if reference.ndim != 1 or not len(reference) or np.isnan(reference).any():
        raise InvalidInputError(
            "grid passed to risk_threshold must be a 1-D array with at least one number and without NaN. "
            f"Got shape {reference.shape} with {int(np.isnan(reference).sum())} NaN."
        )
    return reference


def _candidates(reference: FloatArray, n: int, target: float, level: float) -> FloatArray:
    """Candidate thresholds from high to low; the reference rows are not among the rows tested."""
    if not len(reference) or not n:
        return np.empty(0)
    fewest = math.log(1 - level) / math.log1p(-target)  # fewest rows that pass a test if none is an error
    start = max(min(HEAD_START * fewest, LATEST_START * n), MIN_START * fewest)
    first = min(1.0, max(start / n, MIN_ABOVE / len(reference)))
    shares = np.linspace(first, 1.0, N_THRESHOLDS)
    found = np.quantile(reference, 1.0 - shares)
    return np.unique(found)[::-1]
