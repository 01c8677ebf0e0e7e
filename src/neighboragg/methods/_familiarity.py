"""Have rows like this been seen: conformal p-values of the distance to the nearest reference rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neighboragg._core.types import BoolArray, FloatArray, IntArray
from neighboragg._store.objects import Stored

N_NEAREST = 5
# A predicted class with this many rows, the one in question included, is compared with its own rows only: as many as
# a p-value of 0.01 needs.
MIN_ROWS = 100


def nonconformity(distances: Mapping[str, FloatArray]) -> FloatArray:
    """Mean log distance to the 5 nearest reference rows of any class, summed over the metrics."""
    total: FloatArray = np.zeros(len(next(iter(distances.values()))))
    with np.errstate(divide="ignore", invalid="ignore"):
        for found in distances.values():
            k = min(N_NEAREST, found.shape[2])
            candidates = found[:, :, :k].reshape(len(found), -1)
            total += np.log(np.partition(candidates, k - 1, axis=1)[:, :k]).sum(axis=1) / k
        # Equal in one metric and infinitely far in another: as far as can be.
        return np.fmin(total, np.inf)


def compared_classes(counts: IntArray, predicted: int) -> BoolArray:
    """Classes whose calibration rows a new row is compared with."""
    together = counts + (np.arange(len(counts)) == predicted)
    alone = together >= MIN_ROWS
    groups = np.where(alone, np.arange(len(counts)), -1)
    if alone.any() and together[~alone].sum() < MIN_ROWS:
        groups[~alone] = np.where(alone, together, np.iinfo(together.dtype).max).argmin()
    return np.asarray(groups == groups[predicted])


@dataclass(frozen=True, eq=False)
class Familiarity(Stored):
    """What validation rows say about how strange rows like those seen can be."""

    nonconformity: FloatArray
    predicted: IntArray
    n_classes: int

    def of(self, values: FloatArray, predicted: IntArray) -> FloatArray:
        """P-values of new rows: the share of the rows compared, the new one included, that are at least as strange."""
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
            self._ascending[predicted] = np.sort(self.nonconformity[compared[self.predicted]])
        return self._ascending[predicted]
