"""Have rows like this been seen: conformal p-values of how unusual a row is for its predicted class."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import entr, ndtri
from scipy.stats import betabinom

from neighboragg._core.types import BoolArray, FloatArray, IntArray
from neighboragg._pool.evidence import FitData
from neighboragg._pool.spaces import Spaces
from neighboragg._store.objects import Stored
from neighboragg.search import ClasswiseNeighbors, Exact

N_NEAREST = 5
# A predicted class with this many rows, the one in question included, is compared with its own rows only: as many as
# a p-value of 0.01 needs.
MIN_ROWS = 100
# A class with this many training rows has half the weight in what counts as usual for it; all rows have the rest.
SHRINKAGE = 50
# What a standard deviation of doubt adds to one of distance. Words say less than columns about what lies between two
# rows, so doubt counts more where vectors are directions, as those of texts are.
DOUBT_IN_TABLES, DOUBT_IN_TEXTS = 0.5, 1.0
# Training rows that usual distances are taken from: one half among the other.
MAX_MEASURED = 2000
# Tells rows of unit length, and those of length zero, from others.
TOLERANCE = 1e-5
# Smaller spreads of log distances come from rounding.
SMALLEST_SPREAD = 1e-9
# Equal probabilities must tie, though their last bits may depend on the batch.
DIGITS = 9


# A batch does not belong if it has more rows at this level of familiarity than chance brings once in a thousand times.
UNFAMILIAR, CHANCE = 0.05, 1e-3


def too_many_unfamiliar(familiarity: FloatArray, least: float) -> tuple[float, float] | None:
    """Share of unfamiliar rows in a batch and the share to expect, if there are more than chance allows; else None.

    `least` is the smallest p-value possible, the largest of :meth:`Familiarity.least` where there are several groups.
    """
    # For one fitted model the chance of a false alarm is itself a Beta variable, over the draw of its validation rows.
    together = round(1.0 / least)
    rank = int(UNFAMILIAR * together + 1e-9)
    n, found = len(familiarity), int(np.count_nonzero(familiarity <= UNFAMILIAR))
    if not rank or not found or betabinom.sf(found - 1, n, rank, together - rank) >= CHANCE:
        return None
    return found / n, UNFAMILIAR


def log_distances(distances: FloatArray) -> FloatArray:
    """Mean log distance of each row to its 5 nearest reference rows of any class."""
    k = min(N_NEAREST, distances.shape[2])
    candidates = distances[:, :, :k].reshape(len(distances), -1)
    with np.errstate(divide="ignore"):
        found: FloatArray = np.log(np.partition(candidates, k - 1, axis=1)[:, :k]).sum(axis=1) / k
    return found


def doubt(proba: FloatArray) -> FloatArray:
    """Entropy of the probabilities of each row."""
    return np.asarray(entr(proba).sum(axis=1).round(DIGITS))


def are_directions(rows: FloatArray) -> bool:
    """Whether rows have unit length, apart from some of length zero, which nothing is known about."""
    if rows.shape[1] < 2:
        return False
    lengths = np.linalg.norm(rows, axis=1)
    return bool(lengths.any() and np.isclose(lengths[lengths > 0], 1.0, atol=TOLERANCE).all())


def compared_classes(counts: IntArray, predicted: int) -> BoolArray:
    """Classes whose calibration rows a new row is compared with."""
    together = counts + (np.arange(len(counts)) == predicted)
    alone = together >= MIN_ROWS
    groups = np.where(alone, np.arange(len(counts)), -1)
    if alone.any() and together[~alone].sum() < MIN_ROWS:
        groups[~alone] = np.where(alone, together, np.iinfo(together.dtype).max).argmin()
    return np.asarray(groups == groups[predicted])


def usual_distances(found: FloatArray, codes: IntArray, n_classes: int) -> tuple[FloatArray, float]:
    """Middle of the log distances in each class, and their spread around it; from training rows among others."""
    finite = np.isfinite(found)
    found, codes = found[finite], codes[finite]
    if not len(found):
        return np.zeros(n_classes), 1.0
    overall = float(np.median(found))
    middle = np.full(n_classes, overall)
    for c in np.unique(codes):
        own = found[codes == c]
        middle[c] += len(own) / (len(own) + SHRINKAGE) * (np.median(own) - overall)
    # A robust standard deviation; that of distances which are nearly all equal says nothing.
    spread = 1.4826 * float(np.median(np.abs(found - middle[codes])))
    return middle, spread if spread > SMALLEST_SPREAD else 1.0


@dataclass(frozen=True, eq=False)
class Nonconformity(Stored):
    """How unusual a row is: its distances in every metric, and the doubt of the classifier, as one number."""

    middle: Mapping[str, FloatArray]
    """Usual log distance for each class, by metric."""
    spread: Mapping[str, float]
    """The spread around it."""
    doubts: FloatArray
    """Those of the validation rows, ascending."""
    directions: bool
    """Whether vectors have unit length, so that nothing is known about a row of length zero."""

    def __call__(
        self,
        X: FloatArray,
        proba: FloatArray,
        distances: Mapping[str, FloatArray],
        seen: BoolArray | None = None,
    ) -> FloatArray:
        """Higher is less usual; rows marked as `seen` are reference rows, and as usual as can be."""
        predicted = proba.argmax(axis=1)
        found: FloatArray = np.zeros(len(X))
        with np.errstate(invalid="ignore"):
            for name, middle in self.middle.items():
                found += (log_distances(distances[name]) - middle[predicted]) / self.spread[name]
        # Equal in one metric and infinitely far in another: as far as can be.
        found = np.fmin(found / len(self.middle), np.inf)
        if seen is not None:
            found[seen] = -np.inf
        found += (DOUBT_IN_TEXTS if self.directions else DOUBT_IN_TABLES) * self._scores(doubt(proba))
        if self.directions:
            found[~X.any(axis=1)] = np.inf
        return found

    def _scores(self, doubts: FloatArray) -> FloatArray:
        """Normal scores of doubts among those of the validation rows and a new one."""
        # The new row counts twice where it is one of them: that is the largest rank which a validation row can have,
        # whatever the new row is, and so the p-value is never below the exact one.
        ranks = self.doubts.searchsorted(doubts, side="right") + 1.0
        return np.asarray(ndtri((ranks - 0.5) / (len(self.doubts) + 1.0)))


def learn_nonconformity(
    data: FitData, pool_rows: IntArray, spaces: Spaces, *, metric: str, n_jobs: int | None, seed: int
) -> Nonconformity:
    """Distances that are usual for training rows; validation rows count only by the order of their own doubts."""
    rows = np.arange(len(data.X))
    if data.shared and len(pool_rows) < len(rows):
        rows = np.setdiff1d(rows, pool_rows)
    rows = np.random.default_rng(seed).permutation(rows)[:MAX_MEASURED]
    others, measured = np.array_split(rows, 2)
    middle, spread = {}, {}
    for name in spaces.names:
        found = np.full(len(measured), np.inf)
        if len(measured):
            exact = Exact(metric=metric if name in spaces.views else "euclidean")
            index = ClasswiseNeighbors(N_NEAREST, search=exact, n_jobs=n_jobs)
            index.fit(spaces.map(name, data.X[others]), np.zeros(len(others), dtype=np.intp))
            found = log_distances(index.kneighbors(spaces.map(name, data.X[measured]))[0])
        middle[name], spread[name] = usual_distances(found, data.codes[measured], data.n_classes)
    doubts = np.sort(doubt(data.proba_val[pool_rows]))
    return Nonconformity(middle, spread, doubts, are_directions(data.X))


@dataclass(frozen=True, eq=False)
class Familiarity(Stored):
    """How unusual validation rows are, which new rows are compared with."""

    nonconformity: Nonconformity
    unusual: FloatArray
    """The nonconformity of each validation row."""
    predicted: IntArray
    n_classes: int

    def of(self, values: FloatArray, predicted: IntArray) -> FloatArray:
        """P-values of new rows: the share of the rows compared, the new one included, that are at least as unusual."""
        classes = set(predicted.tolist())
        if len(classes) == 1:
            return self._p_values(values, classes.pop())
        found = np.empty(len(values))
        for c in classes:
            rows = predicted == c
            found[rows] = self._p_values(values[rows], c)
        return found

    def _p_values(self, values: FloatArray, predicted: int) -> FloatArray:
        """Those of rows of one predicted class."""
        seen = self._compared_with(predicted)
        together = 1.0 + len(seen)
        return (together - seen.searchsorted(values, side="left")) / together

    def least(self) -> FloatArray:
        """The smallest p-value that a row of each predicted class can get, shape (n_classes,)."""
        compared = [self._counts[compared_classes(self._counts, c)].sum() for c in range(self.n_classes)]
        return 1.0 / (1.0 + np.array(compared))

    @cached_property
    def _counts(self) -> IntArray:
        return np.bincount(self.predicted, minlength=self.n_classes)

    @cached_property
    def _ascending(self) -> dict[int, FloatArray]:
        """Ascending nonconformity of the validation rows to compare with, by predicted class, as far as asked for."""
        return {}

    def _compared_with(self, predicted: int) -> FloatArray:
        """Ascending nonconformity of the validation rows that a row of a predicted class is compared with."""
        if predicted not in self._ascending:
            compared = compared_classes(self._counts, predicted)
            self._ascending[predicted] = np.sort(self.unusual[compared[self.predicted]])
        return self._ascending[predicted]
