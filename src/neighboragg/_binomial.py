"""Exact confidence limits of a binomial proportion."""

from typing import Any

import numpy as np
from scipy.stats import beta

from neighboragg._typing import FloatArray

__all__ = ["lower_limit", "upper_limit"]


def lower_limit(successes: Any, trials: Any, tail: float) -> FloatArray:
    """The proportion under which so many successes, or more, have the probability `tail`; 0 without any."""
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    # The clipped parameter belongs to an end that is replaced.
    return np.where(k == 0, 0.0, beta.ppf(tail, np.maximum(k, 1.0), n - k + 1.0))


def upper_limit(successes: Any, trials: Any, tail: float) -> FloatArray:
    """The proportion under which so few successes, or fewer, have the probability `tail`; 1 if all are."""
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    return np.where(k == n, 1.0, beta.isf(tail, k + 1.0, np.maximum(n - k, 1.0)))
