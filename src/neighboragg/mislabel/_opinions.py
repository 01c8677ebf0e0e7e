"""Opinions on rows by models that have not seen them: out of fold, or out of bag."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from neighboragg._typing import Array, FloatArray, IntArray

__all__ = ["CrossFitted", "Scaling", "cross_fit", "own_opinions"]

N_TREES = 100
# Out of bag, about 37 of 100 trees vote on a row; out of fold all do, so that fewer serve as well.
N_TREES_PER_FOLD = 40
# A tree that has seen this many rows says enough, and a forest grown on more fills the memory.
MOST_ROWS_PER_TREE = 50_000
# A row trusted less than this teaches a model nothing, and slows it down.
LEAST_WEIGHT = 1e-3
# Trees work in single precision, which overflows far beyond this many standard deviations.
FARTHEST = 1e6


@dataclass(frozen=True)
class Scaling:
    """Columns brought to mean 0 and standard deviation 1, whatever their magnitude; constant ones to 0."""

    center: FloatArray
    spread: FloatArray

    @classmethod
    def fit(cls, X: FloatArray) -> "Scaling":
        """Learn from rows."""
        rows = X.astype(np.float64)
        low, reach = rows.min(axis=0), np.ptp(rows, axis=0)
        reach[reach == 0] = 1.0
        # Within [0, 1] no mean is off by rounding, and no variance overflows.
        unit = (rows - low) / reach
        deviation = unit.std(axis=0)
        return cls(low + reach * unit.mean(axis=0), reach * np.where(deviation > 0, deviation, 1.0))

    def of(self, X: FloatArray) -> FloatArray:
        """Scaled rows, in double precision."""
        return np.clip((X.astype(np.float64) - self.center) / self.spread, -FARTHEST, FARTHEST)


@dataclass(frozen=True)
class CrossFitted:
    """A kind of model, what it says of rows it has not seen, and its fitted copies.

    Parameters
    ----------
    name : str
    proba : ndarray of shape (n, C)
        Out-of-sample probabilities of the rows that the copies were fitted on.
    models : tuple of (estimator, ndarray)
        Each copy, and the class that each of its probability columns stands for.
    """

    name: str
    proba: FloatArray
    models: tuple[tuple[Any, IntArray], ...]

    def without_models(self) -> "CrossFitted":
        """What was said, when no more will be asked."""
        return replace(self, models=())

    def ask(self, X: Any) -> FloatArray:
        """Mean probabilities that the copies give to new rows; uniform if there is no copy."""
        n, n_classes = X.shape[0], self.proba.shape[1]
        if not self.models:
            return np.full((n, n_classes), 1.0 / n_classes)
        return np.mean([_spread(model.predict_proba(X), at, n_classes) for model, at in self.models], axis=0)


def cross_fit(
    name: str,
    make: Callable[[int], Any],
    take: Callable[[IntArray], Any],
    y: Array,
    classes: Array,
    folds: Array,
    *,
    weight: FloatArray | None = None,
) -> CrossFitted:
    """Fit a model on all folds but one, and ask it about that one.

    Parameters
    ----------
    name : str
    make : callable
        Gives an unfitted classifier for a number of rows.
    take : callable
        Gives the rows at some positions.
    y : ndarray of shape (n,)
    classes : ndarray of shape (C,)
        Sorted labels.
    folds : ndarray of shape (n,)
        Fold of each row.
    weight : ndarray of shape (n,), default=None
        Weights to train with.

    Returns
    -------
    opinion : CrossFitted
        Uniform where the rows to train on have only one class, or there are none.
    """
    proba = np.full((len(y), len(classes)), 1.0 / len(classes))
    models = []
    usable = np.ones(len(y), dtype=bool) if weight is None else weight > LEAST_WEIGHT
    for fold in np.unique(folds):
        train, test = np.flatnonzero((folds != fold) & usable), np.flatnonzero(folds == fold)
        if len(np.unique(y[train])) < 2:
            continue
        model = make(len(train))
        model.fit(take(train), y[train], **({} if weight is None else {"sample_weight": weight[train]}))
        at = np.searchsorted(classes, model.classes_)
        proba[test] = _spread(model.predict_proba(take(test)), at, len(classes))
        models.append((model, at))
    return CrossFitted(name, proba, tuple(models))


def own_opinions(
    X: FloatArray,
    codes: IntArray,
    n_classes: int,
    weight: FloatArray,
    folds: Array,
    *,
    grouped: bool,
    boosting: bool,
    seed: int,
    n_jobs: int | None,
) -> list[CrossFitted]:
    """Logistic regression out of fold, extra-trees out of bag (out of fold for grouped rows), and boosting.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Standardized rows.
    codes : ndarray of shape (n,)
    n_classes : int
    weight : ndarray of shape (n,)
        How much each row counts in training.
    folds : ndarray of shape (n,)
    grouped : bool
        Whether some rows are of one group: a bag does not keep those together, a fold does.
    boosting : bool
        Whether to ask histogram gradient boosting too.
    seed : int
    n_jobs : int or None
    """
    makers: list[tuple[str, Callable[[int], Any]]] = [
        # A rough fit is opinion enough.
        ("logistic regression", lambda n: LogisticRegression(max_iter=150, tol=1e-3))
    ]

    def trees(number: int, n_rows: int, **params: Any) -> ExtraTreesClassifier:
        bag = MOST_ROWS_PER_TREE if n_rows > MOST_ROWS_PER_TREE else None
        return ExtraTreesClassifier(
            number, bootstrap=True, max_samples=bag, random_state=seed, n_jobs=n_jobs, **params
        )

    if grouped:
        makers.append(("extra-trees", lambda n: trees(N_TREES_PER_FOLD, n)))
    if boosting:
        makers.append(
            ("boosting", lambda n: HistGradientBoostingClassifier(early_stopping=False, random_state=seed))
        )
    with warnings.catch_warnings():
        # Stopping early is meant, and rows without votes get a uniform one.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores", category=UserWarning)
        opinions = [
            cross_fit(name, make, X.__getitem__, codes, np.arange(n_classes), folds, weight=weight)
            for name, make in makers
        ]
        if not grouped:
            forest = trees(N_TREES, len(X), oob_score=True)
            opinions.insert(1, _out_of_bag(forest, X, codes, n_classes, weight))
    return opinions


def _out_of_bag(
    forest: Any, X: FloatArray, codes: IntArray, n_classes: int, weight: FloatArray
) -> CrossFitted:
    forest.fit(X, codes, sample_weight=weight)
    votes = forest.oob_decision_function_
    # A row in the bag of every tree has no vote: zeros or NaN, depending on the version of scikit-learn.
    voted = votes.sum(axis=1, keepdims=True) > 0
    votes = np.where(voted, votes, 1.0 / votes.shape[1])
    return CrossFitted(
        "extra-trees", _spread(votes, forest.classes_, n_classes), ((forest, forest.classes_),)
    )


def _spread(proba: FloatArray, at: IntArray, n_classes: int) -> FloatArray:
    """Probabilities with a column for every class, 0 for those the model has not seen."""
    full = np.zeros((len(proba), n_classes))
    full[:, at] = proba
    return full
