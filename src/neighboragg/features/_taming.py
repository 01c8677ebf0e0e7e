"""Numbers tamed: normal scores of training quantiles."""

from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, TransformerMixin

from neighboragg._typing import Array, FloatArray
from neighboragg._validation import check_fitted
from neighboragg.persistence import Savable

__all__ = ["TamedScores"]

N_QUANTILES = 256
GRID = np.linspace(0, 1, N_QUANTILES)
LARGEST_SAMPLE = 20_000  # rows from which quantiles are taken
CLIP = 3.0
# Up to so many comparisons, all values are compared with all quantiles of their columns at once.
COMPARED_ELEMENTS = 2**17


class Columns(NamedTuple):
    """What is looked up for every batch of rows, made once."""

    binary: Any
    """Where columns of two values are."""
    numeric: Any
    """Where the others are; a slice if that is everywhere."""
    steps: FloatArray
    """Quantiles of the numeric columns; beside them, as many columns, the same from the other end."""
    slopes: FloatArray | None
    """From each step to the next, 0 where they are equal, as no value is between them; None if some overflow."""


class TamedScores(Savable, TransformerMixin, BaseEstimator):
    """Normal scores of training quantiles, so that no outlier or skewed column rules the distances.

    Parameters
    ----------
    standardize : bool, default=True
        Give every numeric column standard deviation 1; otherwise keep the scale it came with.

    Attributes
    ----------
    quantiles_ : ndarray of shape (256, n_features)
        Training quantiles of each column.
    is_binary_ : ndarray of bool of shape (n_features,)
        Columns with two values or fewer; they become 0 and `binary_weight_`.

    Notes
    -----
    A numeric column becomes Φ⁻¹(rank among the training rows), clipped at ±3, times its own standard deviation.
    Ties share their middle rank. A two-valued column becomes 0/1 times the mean standard deviation of the
    numeric columns, so that a rare value is not blown up. A missing value becomes 0, the median.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.features import TamedScores
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [1e6, 1.0]])
    >>> TamedScores().fit_transform(X).round(1)
    array([[-3. ,  0. ],
           [-0.4,  1. ],
           [ 0.4,  0. ],
           [ 3. ,  1. ]])
    """

    def __init__(self, *, standardize: bool = True) -> None:
        self.standardize = standardize

    def fit(self, X: Array, y: Any = None) -> Self:
        """Learn the quantiles of each column.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : TamedScores
        """
        X = np.asarray(X, dtype=np.float64)
        n_features = X.shape[1]
        sample = X
        if len(X) > LARGEST_SAMPLE:
            sample = X[np.random.default_rng(0).choice(len(X), LARGEST_SAMPLE, replace=False)]
        self.quantiles_ = np.zeros((N_QUANTILES, n_features))
        self.is_binary_ = np.zeros(n_features, dtype=bool)
        self.low_, self.spread_, self.weight_ = np.zeros(n_features), np.ones(n_features), np.ones(n_features)
        for j in range(n_features):
            column = X[np.isfinite(X[:, j]), j]
            if not len(column):
                self.is_binary_[j] = True
                continue
            self.low_[j], self.spread_[j] = column.min(), np.ptp(column) or 1.0
            self.is_binary_[j] = _is_binary(column)
            self.weight_[j] = 1.0 if self.standardize else column.std()
            seen = sample[np.isfinite(sample[:, j]), j]
            self.quantiles_[:, j] = np.quantile(seen if len(seen) else column, np.linspace(0, 1, N_QUANTILES))
        numeric = self.weight_[~self.is_binary_]
        self.binary_weight_ = float(numeric.mean()) if len(numeric) else 1.0
        self.n_features_in_ = n_features
        self.__dict__.pop("_columns", None)  # of an earlier fit
        return self

    def transform(self, X: Array) -> FloatArray:
        """Turn each value into its tamed score.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)

        Returns
        -------
        scores : ndarray of shape (n, n_features)
        """
        check_fitted(self, "n_features_in_")
        return self.scores_of(np.asarray(X, dtype=np.float64))

    def scores_of(self, X: FloatArray) -> FloatArray:
        """What :meth:`transform` gives, as an array and without the detour by which scikit-learn makes frames of it.

        Parameters
        ----------
        X : ndarray of float64 of shape (n, n_features)

        Returns
        -------
        scores : ndarray of shape (n, n_features)
        """
        binary, numeric, steps, slopes = self._columns
        scores = np.empty(X.shape)
        if len(binary):
            scores[:, binary] = (
                (X[:, binary] - self.low_[binary]) / self.spread_[binary] * self.binary_weight_
            )
        if steps.size:
            ranks = np.minimum(np.maximum(_middle_ranks(X[:, numeric], steps, slopes), 1e-6), 1 - 1e-6)
            scores[:, numeric] = np.minimum(np.maximum(ndtri(ranks), -CLIP), CLIP) * self.weight_[numeric]
        return scores if np.isfinite(np.vdot(scores, scores)) else np.nan_to_num(scores, nan=0.0)

    @cached_property
    def _columns(self) -> Columns:
        binary, numeric = np.flatnonzero(self.is_binary_), np.flatnonzero(~self.is_binary_)
        quantiles = self.quantiles_[:, numeric]
        steps = np.ascontiguousarray(np.hstack([quantiles, -quantiles[::-1]]))
        with np.errstate(divide="ignore", over="ignore"):
            apart = np.diff(steps, axis=0)
            slopes = np.where(apart > 0, np.diff(GRID)[:, None] / apart, 0.0)
        finite = np.isfinite(apart).all() and np.isfinite(slopes).all()
        return Columns(binary, numeric if len(binary) else slice(None), steps, slopes if finite else None)


def _middle_ranks(X: FloatArray, steps: FloatArray, slopes: FloatArray | None) -> FloatArray:
    """Where values stand among the ascending quantiles of their column, from 0 to 1; NaN for NaN.

    Interpolating from both ends gives tied quantiles their first and last rank; they get the middle.
    """
    d = X.shape[1]
    both = np.concatenate([X, -X], axis=1)
    # Few rows all at once, as most of the time is in the calls; many column by column.
    if slopes is not None and both.size * len(steps) <= COMPARED_ELEMENTS:
        found = _interpolated(both, steps, slopes)
    else:
        found = np.column_stack([np.interp(both[:, j], steps[:, j], GRID) for j in range(2 * d)])
    return np.asarray(0.5 * ((1.0 - found[:, d:]) + found[:, :d]))


def _interpolated(X: FloatArray, steps: FloatArray, slopes: FloatArray) -> FloatArray:
    """``np.interp`` of each column in its own ascending steps, bit by bit; for one row most of that is calls."""
    last, width = slopes.shape
    # Counted among all steps but the first, of which there are as many as a byte can count.
    passed = np.add.reduce((steps[1:] <= X[:, None]).view(np.uint8), axis=1, dtype=np.uint8)
    low = np.minimum(passed, last - 1).astype(np.intp)
    at = low * width + np.arange(width)
    with np.errstate(over="ignore", invalid="ignore"):  # of what is outside of the steps
        found = slopes.take(at) * (X - steps.take(at)) + GRID.take(low)
    found[passed == last] = 1.0
    found[steps[0] > X] = 0.0
    return np.asarray(found)


def _is_binary(column: FloatArray) -> bool:
    """Whether there are at most two values; most columns show more in their first rows."""
    return len(np.unique(column[:2000])) <= 2 and len(np.unique(column)) <= 2
