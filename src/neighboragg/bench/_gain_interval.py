"""Intervals for gains over several data sets, whose splits are not independent of each other."""

from collections.abc import Sequence

import numpy as np

from neighboragg._typing import FloatArray

__all__ = ["gain_interval"]

N_RESAMPLES = 2000


def gain_interval(gains: FloatArray, sets: Sequence[str]) -> tuple[float, float]:
    """95% bootstrap interval for the mean gain: data sets are drawn with replacement, then splits of each.

    Splits of one data set share its rows. Drawn as if independent, they would give an interval that says nothing
    about another data set; drawn so, a single data set still has one that says how much its splits differ.

    Parameters
    ----------
    gains : ndarray of shape (n,)
    sets : sequence of str of shape (n,)
        Data set that each gain was seen on.

    Returns
    -------
    low, high : float
    """
    rng = np.random.default_rng(0)
    numbers = np.unique(np.asarray(sets), return_inverse=True)[1]
    groups = [gains[numbers == number] for number in range(numbers.max() + 1)]
    means = np.column_stack(
        [group[rng.integers(0, len(group), (N_RESAMPLES, len(group)))].mean(axis=1) for group in groups]
    )
    drawn = rng.integers(0, len(groups), means.shape)
    sizes = np.array([len(group) for group in groups])[drawn]
    draws = (sizes * np.take_along_axis(means, drawn, axis=1)).sum(axis=1) / sizes.sum(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)
