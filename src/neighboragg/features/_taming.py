"""Numbers tamed: normal scores of training quantiles."""

from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from neighboragg._typing import Array, FloatArray
from neighboragg.persistence import Savable

__all__ = ["TamedScores"]

N_QUANTILES = 256
LARGEST_SAMPLE = 20_000  # rows from which quantiles are taken
CLIP = 3.0


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
        check_is_fitted(self)
        X = np.asarray(X, dtype=np.float64)
        scores = np.empty(X.shape)
        grid = np.linspace(0, 1, N_QUANTILES)
        for j in range(X.shape[1]):
            column = X[:, j]
            if self.is_binary_[j]:
                scores[:, j] = (column - self.low_[j]) / self.spread_[j] * self.binary_weight_
            else:
                quantiles = self.quantiles_[:, j]
                # Interpolating from both ends gives tied quantiles their first and last rank; take the middle.
                last = np.interp(column, quantiles, grid)
                first = 1.0 - np.interp(-column, -quantiles[::-1], grid)
                rank = np.clip(0.5 * (first + last), 1e-6, 1 - 1e-6)
                scores[:, j] = np.clip(ndtri(rank), -CLIP, CLIP) * self.weight_[j]
        return np.nan_to_num(scores, nan=0.0)


def _is_binary(column: FloatArray) -> bool:
    """Whether there are at most two values; most columns show more in their first rows."""
    return len(np.unique(column[:2000])) <= 2 and len(np.unique(column)) <= 2
