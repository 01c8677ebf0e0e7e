"""Recall: the share of the nearest rows that an approximate search finds, and how well a sample of queries tells it."""

import numpy as np
from scipy.special import rel_entr

from neighboragg._typing import FloatArray

__all__ = ["recall_interval", "shares_found"]

CONFIDENCE_TAIL = 0.025  # on either side: an interval of 95%
HALVINGS = 60


def shares_found(found: FloatArray, exact: FloatArray) -> FloatArray:
    """Of the exact neighbors of each query, the share that was found; a row as near as the last of them is one.

    Parameters
    ----------
    found, exact : ndarray of shape (n, K)
        Distances, ascending; those of one row have the same bits in both.
    """
    return np.mean(found <= exact[:, -1:], axis=1)


def recall_interval(shares: FloatArray) -> tuple[float, float]:
    """Where the mean share over all queries is, given those of a sample: Hoeffding's limits, without assumptions.

    A mean q of numbers in [0, 1] gives a sample of n a mean p ≥ q with a probability of at most exp(−n KL(p, q)), and
    likewise below (Hoeffding 1963, theorem 1). Neighbors of one query are found or missed together, so that queries,
    and not neighbors, are what is counted.
    """
    mean = float(np.mean(shares))
    enough = np.log(1 / CONFIDENCE_TAIL) / len(shares)
    return _farthest(mean, 0.0, enough), _farthest(mean, 1.0, enough)


def _farthest(mean: float, end: float, enough: float) -> float:
    """The number toward `end` at which KL(mean, number) is enough, by halving."""
    near, far = mean, end
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        if rel_entr(mean, middle) + rel_entr(1 - mean, 1 - middle) < enough:
            near = middle
        else:
            far = middle
    return near
