"""Predictions of models for rows that they were not fitted on: out of fold, or out of bag."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neighboragg._core.progress import advance
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg._store.objects import Stored

Split = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class Labels:
    """Labels as positions in the class axis, and the groups and folds that keep dependent rows apart."""

    codes: IntArray
    n_classes: int
    groups: IntArray
    folds: Array

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(np.unique(self.folds))

    @property
    def are_grouped(self) -> bool:
        """Whether any two rows share a group."""
        return len(np.unique(self.groups)) < len(self.groups)


@dataclass(frozen=True)
class CrossFitted(Stored):
    """Out-of-sample probabilities of a kind of model, and its fitted copies."""

    proba: FloatArray
    models: tuple[tuple[Any, IntArray], ...]

    def without_models(self) -> "CrossFitted":
        """The probabilities alone, if no new rows follow; models take most of the memory."""
        return replace(self, models=())

    def predict_proba(self, X: Any) -> FloatArray:
        """Mean probabilities of the copies for new rows; uniform without copies."""
        n_classes = self.proba.shape[1]
        if not self.models:
            n = X.shape[0] if hasattr(X, "shape") else len(X)
            return np.full((n, n_classes), 1.0 / n_classes)
        found = [spread_columns(model.predict_proba(X), at, n_classes) for model, at in self.models]
        return np.asarray(np.mean(found, axis=0))


def cross_fit(
    make: Callable[[int], Any],
    take: Callable[[IntArray], Any],
    y: Array,
    classes: Array,
    splits: Iterable[Split],
    *,
    weight: FloatArray | None = None,
    weight_name: str = "sample_weight",
) -> CrossFitted:
    """Fit a model on the training rows of each split, and predict the other rows."""
    proba = np.full((len(y), len(classes)), 1.0 / len(classes))
    models = []
    for train, test in splits:
        if len(np.unique(y[train])) > 1:
            model = make(len(train))
            model.fit(take(train), y[train], **({} if weight is None else {weight_name: weight[train]}))
            at = np.searchsorted(classes, getattr(model, "classes_", np.unique(y[train])))
            proba[test] = spread_columns(model.predict_proba(take(test)), at, len(classes))
            models.append((model, at))
        advance()
    return CrossFitted(proba, tuple(models))


def fit_out_of_bag(
    forest: Any, X: FloatArray, codes: IntArray, n_classes: int, *, weight: FloatArray | None = None
) -> CrossFitted:
    """Fit a bagged ensemble, and predict each row with the trees that have not seen it."""
    forest.set_params(oob_score=True)
    forest.fit(X, codes, **({} if weight is None else {"sample_weight": weight}))
    # A row in the bag of every tree gets zeros or NaN, depending on the version of scikit-learn.
    votes = np.nan_to_num(forest.oob_decision_function_)
    votes = np.where(votes.sum(axis=1, keepdims=True) > 0, votes, 1.0 / votes.shape[1])
    return CrossFitted(spread_columns(votes, forest.classes_, n_classes), ((forest, forest.classes_),))


def fold_splits(folds: Array) -> Iterator[Split]:
    """Training and test rows, each fold being left out once."""
    return ((np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in np.unique(folds))


def deal_folds(codes: IntArray, groups: IntArray, n_folds: int, rng: np.random.RandomState) -> IntArray:
    """Fold of each row: groups stay whole, classes and sizes are spread evenly."""
    _, first, inverse, sizes = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    # Dealing rows out like cards, large groups first and class by class, works for classes of any size.
    order = np.lexsort((rng.random_sample(len(first)), codes[first], -sizes))
    fold = np.empty(len(first), dtype=np.intp)
    fold[order] = np.arange(len(first)) % min(n_folds, len(first))
    return fold[inverse.ravel()]


def spread_columns(proba: FloatArray, at: IntArray, n_classes: int) -> FloatArray:
    """Probabilities with a column for every class, 0 for those the model has not seen."""
    full = np.zeros((len(proba), n_classes))
    full[:, at] = proba
    return full
