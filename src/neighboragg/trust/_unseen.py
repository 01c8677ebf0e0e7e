"""Ways to have probabilities of rows that the classifier was not trained on."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv

from neighboragg._core.estimators import weight_parameter
from neighboragg._core.inputs import holdout_mask, take_rows
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg._pool.crossfit import cross_fit
from neighboragg.exceptions import InvalidInputError


def hold_out(
    labels: Array, fraction: float, rng: np.random.RandomState, owner: str
) -> tuple[IntArray, IntArray]:
    """Positions of the rows to train on, and of those to hold out."""
    held_out = holdout_mask(np.unique(labels, return_inverse=True)[1], fraction, rng)
    if not held_out.any():
        raise InvalidInputError(
            f"{owner} cannot hold out validation rows: n_samples={len(labels)} and no class has two.\n"
            "Hint: pass more rows, or X_val and y_val."
        )
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def out_of_fold(
    estimator: Any, X: Any, labels: Array, cv: Any, weight: FloatArray | None, owner: str
) -> FloatArray:
    """Probabilities of every row by classifiers trained without it."""
    splits = list(check_cv(cv, labels, classifier=True).split(X, labels))
    asked = np.concatenate([test for _, test in splits])
    if (lacking := np.setdiff1d(np.arange(len(labels)), asked)).size:
        raise InvalidInputError(
            f"cv passed to {owner} leaves {len(lacking)} rows without an out-of-fold prediction, "
            f"the first is row {lacking[0]}.\nHint: use a partition of the rows, such as cv=5."
        )
    return cross_fit(
        lambda n: clone(estimator),
        lambda rows: take_rows(X, rows),
        labels,
        np.unique(labels),
        splits,
        weight=weight,
        weight_name="" if weight is None else weight_parameter(estimator, owner),
    ).proba
