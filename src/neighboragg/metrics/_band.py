"""Bootstrap limits around a risk-coverage curve."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neighboragg._outcomes import check_outcomes
from neighboragg._typing import ArrayLike
from neighboragg.metrics._bootstrap import RandomState, Sample, check_bootstrap, resample_counts
from neighboragg.metrics._selective import risk_coverage_curve

__all__ = ["RiskCoverageBand", "risk_coverage_band"]

N_STEPS = 100


@dataclass(frozen=True, eq=False)
class RiskCoverageBand:
    """Pointwise limits of the selective risk; see `risk_coverage_band`.

    Attributes
    ----------
    coverage : ndarray of shape (101,)
        0, 0.01, ..., 1.
    low, high : ndarray of shape (101,)
        Limits of the selective risk at each coverage.
    confidence_level : float
        Nominal probability, at each coverage by itself, that the limits enclose the risk.

    Examples
    --------
    >>> from neighboragg.metrics import risk_coverage_band
    >>> risk_coverage_band([True, False], [0.9, 0.1], n_resamples=10, random_state=0).coverage.shape
    (101,)
    """

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
    """Bootstrap limits of the selective risk at every per cent of coverage.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Trust in each prediction, higher for more trusted. Only its order matters.
    confidence_level : float, default=0.95
        Nominal coverage of the limits at each point, in (0, 1).
    n_resamples : int, default=1000
        Number of bootstrap resamples.
    random_state : int, RandomState instance or None, default=None
        Seed of the resampling; pass an int for reproducible limits.

    Returns
    -------
    band : RiskCoverageBand
        Percentile limits at the coverages 0, 0.01, ..., 1.

    Notes
    -----
    Each resample gives its own curve, read at these coverages with tied rows kept in random order (see
    `RiskCoverageCurve.expected_risk`). The limits hold point by point, not for the curve as a whole, and
    mean little at coverages of a few rows.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.metrics import risk_coverage_band
    >>> rng = np.random.default_rng(0)
    >>> trust = rng.uniform(0.5, 1, size=500)
    >>> correct = rng.uniform(size=500) < trust
    >>> band = risk_coverage_band(correct, trust, n_resamples=200, random_state=0)
    >>> bool(band.low[-1] < 1 - correct.mean() < band.high[-1])
    True
    """
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
