"""Ways to tell rows unlike those seen, each with a p-value from the same validation rows."""

from collections.abc import Callable

import numpy as np

from benchmarks.shift._shifted_cell import ShiftedCell
from neighboragg._core.types import FloatArray
from neighboragg.methods import Mahalanobis
from neighboragg.search import ClasswiseNeighbors

__all__ = ["ALARMS", "FAMILIARITY"]

FAMILIARITY = "Familiarity"
N_NEIGHBORS = 5


def _familiarity(shifted: ShiftedCell) -> FloatArray:
    cell = shifted.cell
    return shifted.pool.familiarity(cell.vectors["quantiles"][cell.test], cell.proba[cell.test])


def _distance(shifted: ShiftedCell) -> FloatArray:
    """Distance to the fifth nearest training row."""
    cell, X = shifted.cell, shifted.cell.vectors["quantiles"]
    index = ClasswiseNeighbors(N_NEIGHBORS).fit(X[cell.train], np.zeros(len(cell.train), dtype=np.intp))
    return _conformal(*(index.kneighbors(X[rows])[0][:, 0, -1] for rows in (cell.val, cell.test)))


def _mahalanobis(shifted: ShiftedCell) -> FloatArray:
    """Distance to the nearest class mean, by the covariance within classes."""
    cell, X = shifted.cell, shifted.cell.vectors["quantiles"]
    method = cell.fit(Mahalanobis(), "quantiles")
    return _conformal(
        *(
            -method.predict_trust(X[rows], cell.proba[rows]).max(axis=1)  # falls with the distance
            for rows in (cell.val, cell.test)
        )
    )


def _max_softmax(shifted: ShiftedCell) -> FloatArray:
    cell = shifted.cell
    return _conformal(*(-cell.proba[rows].max(axis=1) for rows in (cell.val, cell.test)))


def _conformal(seen: FloatArray, new: FloatArray) -> FloatArray:
    """Share of the validation rows, the new one included, that are at least as strange."""
    ordered = np.sort(seen)
    return (1.0 + len(ordered) - np.searchsorted(ordered, new, side="left")) / (1.0 + len(ordered))


#: P-values of the test rows by name.
ALARMS: dict[str, Callable[[ShiftedCell], FloatArray]] = {
    FAMILIARITY: _familiarity,
    "kNN distance": _distance,
    "Mahalanobis distance": _mahalanobis,
    "max-softmax": _max_softmax,
}
