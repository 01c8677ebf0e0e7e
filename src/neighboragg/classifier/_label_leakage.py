"""Vectors and frozen parts that have seen the labels of rows from which trust is then learned."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from neighboragg._base_classifier import parts_of, unfrozen
from neighboragg._row_selection import take_rows
from neighboragg._typing import Array
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

__all__ = ["refuse_frozen_parts", "refuse_supervised_vectors"]

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
