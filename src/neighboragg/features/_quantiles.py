"""Numbers turned into normal scores of their training quantiles."""

from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, TransformerMixin

from neighboragg._core.checks import check_fitted
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg._store.objects import Savable

N_QUANTILES = 256
GRID = np.linspace(0, 1, N_QUANTILES)
LARGEST_SAMPLE = 20_000  # rows from which quantiles are taken
CLIP = 3.0
# Up to so many are looked up together.
FEW_ROWS = 64
# The value and its mirror image.
SIGNS = np.array([[1.0], [-1.0]])


class Segments(NamedTuple):
    """All steps of all columns in one ascending table, each with the line that begins there."""

    lowest: FloatArray
    """Just below the first step of each column, shape (2, n)."""
    highest: FloatArray
    """The last step."""
    place: IntArray
    """Number of the column."""
    keys: Array
    """Number of the column and step, as one complex number: these are ordered by both."""
    lines: FloatArray
    """Slope, step and rank, for each number of keys passed; level below the first step and from the last on."""


class Columns(NamedTuple):
    """Lookup tables for all batches of rows, made once."""

    binary: IntArray
    """Where columns of two values are."""
    numeric: IntArray
    """Where the others are."""
    steps: FloatArray
    """Ascending quantiles of the numeric columns, and the same from the other end, shape (256, 2, n)."""
    segments: Segments | None
    """What lies between them; None if a slope overflows."""


class QuantileScores(Savable, TransformerMixin, BaseEstimator):
    """Normal scores of training quantiles, to keep outliers and skewed columns from dominating distances."""

    def __init__(self, *, standardize: bool = True) -> None:
        self.standardize = standardize

    def fit(self, X: Array, y: Any = None) -> Self:
        """Learn the quantiles of each column."""
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
        """Return the normal score of each value."""
        check_fitted(self, "n_features_in_")
        return self.scores_of(np.asarray(X, dtype=np.float64))

    def scores_of(self, X: FloatArray) -> FloatArray:
        """The array of :meth:`transform`, without the output wrapper of scikit-learn."""
        binary, numeric, steps, segments = self._columns
        if not len(binary):
            scores = _tamed(X, steps, segments) * self.weight_
        else:
            scores = np.empty(X.shape)
            scores[:, binary] = (
                (X[:, binary] - self.low_[binary]) / self.spread_[binary] * self.binary_weight_
            )
            scores[:, numeric] = _tamed(X[:, numeric], steps, segments) * self.weight_[numeric]
        return scores if isfinite(np.vdot(scores, scores)) else np.nan_to_num(scores, nan=0.0)

    @cached_property
    def _columns(self) -> Columns:
        numeric = np.flatnonzero(~self.is_binary_)
        quantiles = self.quantiles_[:, numeric]
        steps = np.stack([quantiles, -quantiles[::-1]], axis=1)
        return Columns(np.flatnonzero(self.is_binary_), numeric, steps, _segments(steps))


def _segments(steps: FloatArray) -> Segments | None:
    """A table of the steps of shape (256, 2, n)."""
    with np.errstate(divide="ignore", over="ignore"):
        apart = np.diff(steps, axis=0)
        # No value is between equal steps.
        slopes = np.where(apart > 0, np.diff(GRID)[:, None, None] / apart, 0.0)
    lowest = np.nextafter(steps[:1], -np.inf)
    if not all(np.isfinite(found).all() for found in (apart, slopes, lowest)):
        return None
    level = np.zeros_like(lowest)
    ranks = np.broadcast_to(GRID[:, None, None], steps.shape)
    lines = np.stack(
        [np.concatenate(line) for line in ((level, slopes, level), (lowest, steps), (level, ranks))]
    )
    table = np.moveaxis(lines, 1, -1).reshape(3, -1)
    place = np.arange(lowest.size).reshape(lowest.shape[1:])
    keys = np.repeat(place.ravel(), len(steps) + 1) + 1j * table[1]
    # Every value passes at least one key, and NaN passes all.
    return Segments(lowest[0], steps[-1], place, keys, np.concatenate([table[:, :1], table], axis=1))


def _tamed(X: FloatArray, steps: FloatArray, segments: Segments | None) -> FloatArray:
    """Clipped normal scores; NaN for NaN."""
    ranks = np.minimum(np.maximum(_middle_ranks(X, steps, segments), 1e-6), 1 - 1e-6)
    return np.asarray(np.minimum(np.maximum(ndtri(ranks), -CLIP), CLIP))


def _middle_ranks(X: FloatArray, steps: FloatArray, segments: Segments | None) -> FloatArray:
    """Position of values among the quantiles of their column, from 0 to 1; NaN for NaN."""
    both = X[:, None] * SIGNS
    # Few rows all at once, as most of the time is in the calls; many column by column.
    if segments is not None and len(X) <= FEW_ROWS:
        found = _interpolated(both, segments)
    else:
        found = np.empty(both.shape)
        for end, j in np.ndindex(found.shape[1:]):
            found[:, end, j] = np.interp(both[:, end, j], steps[:, end, j], GRID)
    return np.asarray(0.5 * ((1.0 - found[:, 1]) + found[:, 0]))


def _interpolated(X: FloatArray, segments: Segments) -> FloatArray:
    """``np.interp`` of each column in its own steps, bit by bit, by one search for all columns."""
    lowest, highest, place, keys, lines = segments
    inside = np.minimum(np.maximum(X, lowest), highest)
    slope, step, rank = lines.take(keys.searchsorted(1j * inside + place, side="right"), axis=1)
    return np.asarray(slope * (inside - step) + rank)


def _is_binary(column: FloatArray) -> bool:
    """Whether there are at most two values; most columns show more in their first rows."""
    return len(np.unique(column[:2000])) <= 2 and len(np.unique(column)) <= 2
