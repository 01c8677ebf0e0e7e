"""Intervals for gains over several data sets, whose splits are not independent of each other."""

from collections.abc import Sequence

import numpy as np

from neighboragg._typing import FloatArray

__all__ = ["gain_interval"]

N_RESAMPLES = 2000


def gain_interval(
    gains: FloatArray, sets: Sequence[str], weights: FloatArray | None = None
) -> tuple[float, float]:
    """95% bootstrap interval for the mean gain: data sets are drawn with replacement, then splits of each.

    Splits of one data set share its rows. Drawn as if independent, they would give an interval that says nothing
    about another data set; drawn so, a single data set still has one that says how much its splits differ.

    Parameters
    ----------
    gains : ndarray of shape (n,)
    sets : sequence of str of shape (n,)
        Data set that each gain was seen on.
    weights : ndarray of shape (n,), default=None
        What each gain counts in the mean; None means all the same.

    Returns
    -------
    low, high : float
    """
    rng = np.random.default_rng(0)
    numbers = np.unique(np.asarray(sets), return_inverse=True)[1]
    counts = np.ones(len(gains)) if weights is None else weights
    groups = [numbers == number for number in range(numbers.max() + 1)]
    means = np.column_stack([_resampled(gains[group], counts[group], rng) for group in groups])
    drawn = rng.integers(0, len(groups), means.shape)
    sizes = np.array([counts[group].sum() for group in groups])[drawn]
    draws = (sizes * np.take_along_axis(means, drawn, axis=1)).sum(axis=1) / sizes.sum(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def _resampled(gains: FloatArray, weights: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Weighted means of resamples of one data set."""
    drawn = rng.integers(0, len(gains), (N_RESAMPLES, len(gains)))
    return np.average(gains[drawn], axis=1, weights=weights[drawn])
