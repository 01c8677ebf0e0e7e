"""Models of the detector's own, asked about rows that they have not seen."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from neighboragg._core.progress import step
from neighboragg._core.threads import boosting_threads
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg._pool.crossfit import CrossFitted, cross_fit, fit_out_of_bag, fold_splits
from neighboragg._store.objects import Stored

# The model that sees words instead of vectors.
WORDS = "classifier of words"

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
class Scaling(Stored):
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


def ask_own_models(
    X: FloatArray,
    codes: IntArray,
    n_classes: int,
    weight: FloatArray,
    folds: Array,
    *,
    terms: Any,
    grouped: bool,
    boosting: bool,
    seed: int,
    n_jobs: int | None,
) -> dict[str, CrossFitted]:
    """Logistic regression out of fold, extra-trees out of bag (out of fold for grouped rows), and boosting."""

    def trees(number: int, n_rows: int) -> ExtraTreesClassifier:
        bag = MOST_ROWS_PER_TREE if n_rows > MOST_ROWS_PER_TREE else None
        return ExtraTreesClassifier(number, bootstrap=True, max_samples=bag, random_state=seed, n_jobs=n_jobs)

    def out_of_fold(make: Callable[[int], Any], rows: Any = X) -> CrossFitted:
        splits = ((train[weight[train] > LEAST_WEIGHT], test) for train, test in fold_splits(folds))
        return cross_fit(make, rows.__getitem__, codes, np.arange(n_classes), splits, weight=weight)

    with warnings.catch_warnings():
        # Stopping early is meant, and rows without votes get a uniform one.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores", category=UserWarning)
        # A rough fit says enough.
        fitted = {"logistic regression": out_of_fold(lambda n: LogisticRegression(max_iter=150, tol=1e-3))}
        if grouped:
            fitted["extra-trees"] = out_of_fold(lambda n: trees(N_TREES_PER_FOLD, n))
        else:
            forest = trees(N_TREES, len(X))
            fitted["extra-trees"] = fit_out_of_bag(forest, X, codes, n_classes, weight=weight)
            step(len(np.unique(folds)))
        if boosting:
            with boosting_threads(len(X), n_jobs):
                fitted["boosting"] = out_of_fold(
                    lambda n: HistGradientBoostingClassifier(early_stopping=False, random_state=seed)
                )
        if terms is not None and terms.shape[1]:
            # Words are many and each tells little: hardly any penalty.
            fitted[WORDS] = out_of_fold(lambda n: LogisticRegression(C=20, max_iter=1000), terms)
    return fitted
