"""Rows and labels that the model has seen in fit."""

import warnings
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import bdtrc
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from neighboragg._core.estimators import parts_of, unfrozen
from neighboragg._core.inputs import take_rows
from neighboragg._core.stats import upper_limit
from neighboragg._core.types import Array, BoolArray, FloatArray, IntArray
from neighboragg._store.objects import Stored
from neighboragg.exceptions import FittedRowsWarning, InvalidInputError, InvalidParameterError

# Probability of crying wolf, and of underestimating how often rows are equal by chance.
TAIL = 1e-3
# Up to this share of equal rows among those of fit, a row equal to one of them is taken to be that row itself.
COMMON_COPIES = 0.01
# Values hashed at a time, so that they stay in cache.
HASHED_VALUES = 2**15
MIXING = [
    (np.array(shift, dtype=np.uint64), np.array(factor, dtype=np.uint64))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
]
LAST_SHIFT = np.array(31, dtype=np.uint64)


class FittedRows(Stored):
    """What is needed to know rows of fit again."""

    def __init__(self, hashes: IntArray, codes: IntArray) -> None:
        self.positions = np.argsort(hashes, kind="stable")
        self.hashes = hashes[self.positions]
        self.codes = codes[self.positions]
        self.share_of_copies = _share_of_copies(self.hashes)

    def find(self, vectors: FloatArray, owner: str, codes: IntArray | None = None) -> IntArray | None:
        """For each row the position of the row of fit that it is itself, or -1; None if there is none."""
        queries = row_hashes(vectors)
        first = self.hashes.searchsorted(queries)
        copies = self.hashes.take(first, mode="clip") == queries
        n_copies = int(np.count_nonzero(copies))
        if not n_copies:
            return None
        if self._more_than_by_chance(queries, copies):
            warnings.warn(
                f"{n_copies} of {len(vectors)} rows passed to {owner} ({n_copies / len(vectors):.0%}) are exact "
                "copies of rows it was fitted on. The classifier has seen them, so their trust looks better than "
                "that of new rows.\n"
                "Hint: pass rows that took no part in fit; neighboragg.find_mislabeled judges the labels of "
                "fitted rows.",
                FittedRowsWarning,
                stacklevel=4,
            )
        if codes is None and self.share_of_copies > COMMON_COPIES:
            return None
        if codes is not None:
            end = self.hashes.searchsorted(queries, side="right")
            for row in np.flatnonzero(end - first > 1):
                twins = np.arange(first[row], end[row])
                first[row] = twins[(self.codes[twins] == codes[row]).argmax()]
        return np.where(copies, self.positions.take(first, mode="clip"), -1)

    def _more_than_by_chance(self, hashes: IntArray, copied: BoolArray) -> bool:
        # Equal rows count once: all of them are copies if one is, and a batch may have been filled up with them.
        n_copies, n_rows = len(np.unique(hashes[copied])), len(np.unique(hashes))
        return bool(bdtrc(n_copies - 1, n_rows, self._chance_of_a_copy) < TAIL)

    @cached_property
    def _chance_of_a_copy(self) -> float:
        """Largest chance of being a copy that the rows of fit are compatible with."""
        n = len(self.hashes)
        return float(upper_limit(round(self.share_of_copies * n), n, TAIL))


def row_hashes(vectors: FloatArray) -> IntArray:
    """A 64-bit number for each row, the same for equal rows."""
    n, width = vectors.shape
    total = np.empty(n, dtype=np.uint64)
    place = _places(width)
    step = max(1, HASHED_VALUES // max(1, width))
    for start in range(0, n, step):
        part = slice(start, start + step)
        with np.errstate(over="ignore"):  # values beyond single precision are all alike
            rounded = np.add(vectors[part], 0.0, dtype=np.float32, casting="same_kind")  # -0.0 becomes 0.0
        np.add.reduce(_mixed(rounded.view(np.uint32) + place), axis=1, out=total[part])  # wraps around
    return total.view(np.int64)


@cache
def _places(width: int) -> Array:
    """Number of each column, in the upper half."""
    return np.arange(1, width + 1, dtype=np.uint64) << np.uint64(32)


def _mixed(x: Array) -> Array:
    """Bits spread by the finalizer of the SplitMix64 generator, in place."""
    for shift, factor in MIXING:
        x ^= x >> shift
        x *= factor
    x ^= x >> LAST_SHIFT
    return x


def _share_of_copies(hashes: Array) -> float:
    """Share of the rows, as sorted hashes, that are equal to another of them."""
    same = hashes[1:] == hashes[:-1]
    return float((np.append(same, False) | np.append(False, same)).mean())


# A transformer that learns from labels does so on this many rows as well as on all.
ROWS_TO_TRY = 1000


def refuse_supervised_vectors(estimator: Any, features: Any, X: Any, labels: Array, owner: str) -> None:
    """Raise if vectors would be learned from the labels of the rows that trust is then learned from."""
    if isinstance(features, Mapping):
        for view in features.values():
            refuse_supervised_vectors(estimator, view, X, labels, owner)
        return
    transformer = features
    if isinstance(features, str) and features == "auto" and isinstance(estimator, Pipeline):
        transformer = Pipeline(estimator.steps[:-1]) if len(estimator.steps) > 1 else None
    if not hasattr(transformer, "fit") or not _sees_labels(transformer, X, labels):
        return
    raise InvalidParameterError(
        f"{owner} with cv cannot use vectors of {_culprit(transformer)}, which learns from labels: rows would look "
        "closer to their own class than new rows do.\n"
        "Hint: leave out cv to hold out validation rows, or pass features='passthrough' or a "
        "transformer that needs no labels."
    )


def refuse_frozen_parts(estimator: Any, features: Any, owner: str) -> None:
    """Raise if something inside was trained before, maybe on the rows that are about to be held out."""
    views = tuple(features.values()) if isinstance(features, Mapping) else (features,)
    for outer in (estimator, *views):
        for part in (outer, *parts_of(outer)):
            inner = unfrozen(part)
            if inner is part or not (hasattr(inner, "predict") or _learns_from_labels(inner)):
                continue
            where = "as features" if part is outer else f"inside {type(outer).__name__}"
            raise InvalidInputError(
                f"{owner} got a frozen {type(inner).__name__} {where} but no X_val and "
                "y_val. What it says of the rows it was trained on is over-confident, so trust cannot be learned "
                "from them.\n"
                "Hint: fit(X_train, y_train, X_val=X_val, y_val=y_val) with rows it has not seen."
            )


def _sees_labels(transformer: Any, X: Any, labels: Array) -> bool:
    """Whether fitting without labels fails, or gives other vectors."""
    sample = np.unique(np.linspace(0, len(labels) - 1, ROWS_TO_TRY).astype(int))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what these trial fits say is said again by the real one
        for rows in (sample, np.arange(len(labels))):
            given = take_rows(X, rows)
            try:
                with_labels = _vectors(transformer, given, labels[rows])
            except Exception:  # too few rows, or nothing that can be fitted: the real fit will tell
                continue
            try:
                without = _vectors(transformer, given, None)
            except Exception:
                return True
            if _equal(with_labels, without):
                return False
            # What differs from itself is not reproducible, and tells nothing of labels.
            return _equal(without, _vectors(transformer, given, None)) or _learns_from_labels(transformer)
    return False


def _vectors(transformer: Any, X: Any, labels: Array | None) -> Any:
    trial = clone(transformer)
    seeds = [name for name in trial.get_params() if name.rpartition("__")[2] == "random_state"]
    return trial.set_params(**dict.fromkeys(seeds, 0)).fit(X, labels).transform(X)


def _equal(first: Any, second: Any) -> bool:
    if first.shape != second.shape:
        return False
    if sparse.issparse(first):
        return abs(first - second).max() < 1e-9
    a, b = np.asarray(first), np.asarray(second)
    if a.dtype.kind not in "biuf":
        return bool((a == b).all())
    return np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)


def _learns_from_labels(transformer: Any) -> bool:
    """Whether it says so, or selects features, or holds a predictor."""
    return any(_needs_labels(part) for part in (transformer, *parts_of(transformer)))


def _needs_labels(part: Any) -> bool:
    kind = type(part)
    selects = kind.__module__.startswith("sklearn.feature_selection") and kind.__name__ != "VarianceThreshold"
    return hasattr(part, "fit") and (
        selects or hasattr(part, "predict") or get_tags(part).target_tags.required
    )


def _culprit(transformer: Any) -> str:
    """Name of the step that learns from labels, as far as one can tell."""
    steps = (part for part in parts_of(transformer) if hasattr(part, "transform") and _needs_labels(part))
    return type(next(steps, transformer)).__name__
