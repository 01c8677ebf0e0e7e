"""Validation rows are a sample: weights that give its classes the shares they have among all labels."""

import numpy as np
from scipy.special import chdtrc

from neighboragg._typing import FloatArray, IntArray

__all__ = ["share_weights"]

# Rows that each class is thought to have beside its own, so that the weight of a handful of rows stays near one.
EXTRA_ROWS = 10
# Rows drawn like the others have classes so unlike theirs less often than this.
CHANCE = 1e-3


def share_weights(codes: IntArray, shares: FloatArray) -> FloatArray:
    """Weights of rows under which their classes have nearly given shares.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Class of each row.
    shares : ndarray of shape (C,)
        Share of each class among all rows whose labels are known, these and others; they sum to one.

    Returns
    -------
    weights : ndarray of shape (n,)
        With a mean of one. All are one where the classes differ by more than chance: such rows were not drawn as the
        others were, and then it is theirs that count.

    Notes
    -----
    How often a classifier is right depends on the class. A few hundred validation rows have too many of one and too few
    of another by chance, and trust learned from them would be too high or too low in the mean; the shares are known
    much better. This is post-stratification, drawn toward one where a class has few rows.
    """
    counts = np.bincount(codes, minlength=len(shares))
    expected = len(codes) * shares
    possible = expected > 0
    distance = float(((counts - expected)[possible] ** 2 / expected[possible]).sum())
    if possible.sum() < 2 or counts[~possible].any() or chdtrc(possible.sum() - 1, distance) < CHANCE:
        return np.ones(len(codes))
    weights = ((expected + EXTRA_ROWS) / (counts + EXTRA_ROWS))[codes]
    return np.asarray(weights / weights.mean())
