"""Bootstrap confidence intervals of a metric and of the difference between two trust scores."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from neighboragg._core.checks import (
    check_correct,
    check_integer,
    check_outcomes,
    check_real,
    check_row_values,
    check_same_length,
    check_trust,
)
from neighboragg._core.types import ArrayLike, BoolArray
from neighboragg.exceptions import InvalidParameterError, TrustWarning
from neighboragg.metrics._selective import risk_coverage_curve

Metric = Callable[[BoolArray, NDArray[np.float64]], float]
RandomState = int | np.random.RandomState | None


@dataclass(frozen=True)
class Interval:
    """An estimate with its bootstrap confidence interval."""

    estimate: float
    low: float
    high: float
    confidence_level: float


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows in ascending order of trust, with the original position of each."""

    order: NDArray[np.intp]
    correct: BoolArray
    trust: NDArray[np.float64]

    @classmethod
    def of(cls, correct: BoolArray, trust: NDArray[np.float64]) -> "Sample":
        """Sort the rows by trust, then by outcome."""
        order = np.lexsort((correct, trust))
        return cls(order, correct[order], trust[order])

    @classmethod
    def reordered(cls, correct: BoolArray, trust: NDArray[np.float64]) -> "Sample":
        """Ignore the order of the input, so that a seed gives the same result for any order."""
        rows = np.lexsort((correct, trust))
        return cls(np.arange(len(rows)), correct[rows], trust[rows])

    def repeat(self, counts: NDArray[np.intp]) -> tuple[BoolArray, NDArray[np.float64]]:
        """Repeat each original row `counts` times; the result stays sorted, which makes metrics fast."""
        times = counts[self.order]
        return np.repeat(self.correct, times), np.repeat(self.trust, times)


def bootstrap_interval(
    metric: Metric,
    correct: ArrayLike,
    trust: ArrayLike,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    random_state: RandomState = None,
    groups: ArrayLike | None = None,
) -> Interval:
    """Bootstrap confidence interval of a metric.

    Parameters
    ----------
    metric : callable
        Function of ``(correct, trust)`` that returns a float and does not depend on the order of the rows, such
        as the metrics of this module. Use `functools.partial` to set its options.
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Trust in each prediction, higher for more trusted.
    confidence_level : float, default=0.95
        Nominal coverage of the interval, in (0, 1).
    n_resamples : int, default=1000
        Number of bootstrap resamples.
    random_state : int, RandomState instance or None, default=None
        Seed of the resampling. Pass an int for a reproducible interval, which does not depend on the order of
        the rows.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, such as its user or page. Whole groups are then resampled, as rows of one group are not
        independent.

    Returns
    -------
    interval : Interval
        Percentile interval with `estimate`, `low`, `high` and `confidence_level`. The limits are NaN, with a
        `TrustWarning`, if the metric is NaN on every resample.

    Notes
    -----
    Each resample draws as many rows as there are, with replacement. The limits are quantiles of the metric over
    the resamples. This assumes independent rows and is approximate: the coverage approaches the nominal level as
    the numbers of rows and errors grow, and is poor with a handful of errors. The interval reflects the random
    choice of these rows, but not the randomness of training the classifier or the trust score.

    Resamples on which the metric is NaN, for example because they contain no error, are ignored. If more than
    ``1 - confidence_level`` of them are ignored, the function issues a `TrustWarning`.

    References
    ----------
    .. [1] B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", Chapman & Hall, 1993.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.metrics import auroc, bootstrap_interval
    >>> rng = np.random.default_rng(0)
    >>> trust = rng.uniform(0.5, 1, size=500)
    >>> correct = rng.uniform(size=500) < trust
    >>> interval = bootstrap_interval(auroc, correct, trust, random_state=0)
    >>> interval.low < interval.estimate < interval.high
    True
    """
    owner = "bootstrap_interval"
    level, times = check_bootstrap(confidence_level, n_resamples, owner)
    _check_metric(metric, owner)
    outcomes = check_outcomes(correct, trust, owner)
    codes = _group_codes(groups, len(outcomes[0]), owner)
    sample = Sample.reordered(*outcomes) if codes is None else Sample.of(*outcomes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        estimate = float(metric(sample.correct, sample.trust))
        values = np.array(
            [
                metric(*sample.repeat(counts))
                for counts in resample_counts(sample, times, random_state, codes)
            ],
            dtype=np.float64,
        )
    return _percentile_interval(estimate, values, level, owner)


def bootstrap_difference(
    metric: Metric,
    correct: ArrayLike,
    trust_a: ArrayLike,
    trust_b: ArrayLike,
    *,
    correct_b: ArrayLike | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    random_state: RandomState = None,
    groups: ArrayLike | None = None,
) -> Interval:
    """Paired bootstrap confidence interval of ``metric(a) - metric(b)``.

    Parameters
    ----------
    metric : callable
        Function of ``(correct, trust)`` that returns a float and does not depend on the order of the rows.
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust_a, trust_b : array-like of shape (n_samples,)
        The two trust scores of the same rows, higher for more trusted.
    correct_b : array-like of shape (n_samples,), default=None
        Outcomes of the predictions that `trust_b` scores, if they come from another classifier. None means the
        same as `correct`.
    confidence_level : float, default=0.95
        Nominal coverage of the interval, in (0, 1).
    n_resamples : int, default=1000
        Number of bootstrap resamples.
    random_state : int, RandomState instance or None, default=None
        Seed of the resampling. Pass an int for a reproducible interval, which does not depend on the order of
        the rows.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, such as its user or page. Whole groups are then resampled, as rows of one group are not
        independent.

    Returns
    -------
    interval : Interval
        Percentile interval of the difference. The limits are NaN, with a `TrustWarning`, if the difference is NaN
        on every resample.

    See Also
    --------
    bootstrap_interval : The interval of one score, and the assumptions of the bootstrap.

    Notes
    -----
    Both scores are evaluated on the same resampled rows. Rows that are easy or hard for both scores cancel out, so
    the interval is usually much narrower than the intervals of the two scores suggest.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.metrics import auroc, bootstrap_difference
    >>> rng = np.random.default_rng(0)
    >>> trust = rng.uniform(0.5, 1, size=500)
    >>> correct = rng.uniform(size=500) < trust
    >>> blurred = trust + rng.normal(scale=0.3, size=500)
    >>> bootstrap_difference(auroc, correct, trust, blurred, random_state=0).low > 0
    True
    """
    owner = "bootstrap_difference"
    level, times = check_bootstrap(confidence_level, n_resamples, owner)
    _check_metric(metric, owner)
    outcomes_a = check_correct(correct, "correct", owner)
    outcomes_b = outcomes_a if correct_b is None else check_correct(correct_b, "correct_b", owner)
    scores_a, scores_b = check_trust(trust_a, "trust_a", owner), check_trust(trust_b, "trust_b", owner)
    check_same_length(outcomes_a, "correct", scores_a, "trust_a", owner)
    check_same_length(outcomes_a, "correct", scores_b, "trust_b", owner)
    check_same_length(outcomes_a, "correct", outcomes_b, "correct_b", owner)
    codes = _group_codes(groups, len(outcomes_a), owner)
    # One order for both, for the same reason as in Sample.reordered.
    rows = np.lexsort((outcomes_b, scores_b, outcomes_a, scores_a))
    codes = None if codes is None else codes[rows]
    a = Sample.of(outcomes_a[rows], scores_a[rows])
    b = Sample.of(outcomes_b[rows], scores_b[rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        estimate = float(metric(a.correct, a.trust) - metric(b.correct, b.trust))
        values = np.array(
            [
                metric(*a.repeat(counts)) - metric(*b.repeat(counts))
                for counts in resample_counts(a, times, random_state, codes)
            ],
            dtype=np.float64,
        )
    return _percentile_interval(estimate, values, level, owner)


def check_bootstrap(confidence_level: float, n_resamples: int, owner: str) -> tuple[float, int]:
    """Check and return both parameters."""
    level = check_real(confidence_level, "confidence_level", owner, low=0, high=1)
    return level, check_integer(n_resamples, "n_resamples", owner, minimum=1)


def resample_counts(
    sample: Sample, n_resamples: int, random_state: RandomState, groups: NDArray[np.intp] | None = None
) -> Iterator[NDArray[np.intp]]:
    """For each resample, yield how often it contains each row; all rows of a group are drawn together."""
    rng = check_random_state(random_state)
    n_rows = len(sample.trust) if groups is None else int(groups.max()) + 1
    for _ in range(n_resamples):
        counts = np.bincount(rng.randint(n_rows, size=n_rows), minlength=n_rows)
        yield counts if groups is None else counts[groups]


def _group_codes(groups: ArrayLike | None, n_rows: int, owner: str) -> NDArray[np.intp] | None:
    """Groups as numbers from 0."""
    if groups is None:
        return None
    values = check_row_values(groups, "groups", owner, n_rows=n_rows)
    return np.unique(values, return_inverse=True)[1].ravel()


def _check_metric(metric: object, owner: str) -> None:
    if not callable(metric):
        raise InvalidParameterError(
            f"The 'metric' parameter of {owner} must be a function of (correct, trust). Got {metric!r} "
            "instead.\nHint: pass the function itself, e.g. neighboragg.metrics.auroc."
        )


def _percentile_interval(estimate: float, values: NDArray[np.float64], level: float, owner: str) -> Interval:
    """Quantiles of the resampled values; warns once if too many of them are NaN."""
    defined = values[~np.isnan(values)]
    n_ignored = len(values) - len(defined)
    if n_ignored > (1.0 - level) * len(values):
        warnings.warn(
            f"{owner} ignored {n_ignored} of {len(values)} resamples on which the metric is NaN. "
            "The rows contain too few errors, or too few correct predictions, for a reliable interval.",
            TrustWarning,
            stacklevel=3,
        )
    if not len(defined):
        return Interval(estimate, math.nan, math.nan, level)
    low, high = np.quantile(defined, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Interval(estimate, float(low), float(high), level)


N_STEPS = 100


@dataclass(frozen=True, eq=False)
class RiskCoverageBand:
    """Pointwise limits of the selective risk; see `risk_coverage_band`."""

    coverage: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    confidence_level: float


def risk_coverage_band(
    correct: ArrayLike,
    trust: ArrayLike,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    random_state: RandomState = None,
) -> RiskCoverageBand:
    """Bootstrap limits of the selective risk at every percent of coverage."""
    owner = "risk_coverage_band"
    level, times = check_bootstrap(confidence_level, n_resamples, owner)
    sample = Sample.reordered(*check_outcomes(correct, trust, owner))
    grid = np.arange(N_STEPS + 1) / N_STEPS
    risks = np.array(
        [
            risk_coverage_curve(*sample.repeat(counts)).expected_risk(grid)
            for counts in resample_counts(sample, times, random_state)
        ]
    )
    low, high = np.quantile(risks, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return RiskCoverageBand(grid, low, high, level)
