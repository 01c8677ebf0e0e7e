"""Second opinions: other classifiers, fitted so that what they say of validation rows is honest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold

from neighboragg._typing import FloatArray, IntArray
from neighboragg.aggregators import Opinion
from neighboragg.crossfit import cross_fit, fit_out_of_bag, spread_columns
from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods._base import FitData
from neighboragg.persistence import Stored

__all__ = ["SecondOpinion", "fit_second_opinion", "resolve_opinions"]

# Votes of exactly zero are common in a forest and must not veto a class; boosting is smooth.
VOTE_FLOOR, SMOOTH_FLOOR = 1e-2, 1e-4
# Trees see single precision, and sums must fit in it; what is farther out is on the same side of every split.
LARGEST_FEATURE = 1e30


@dataclass(frozen=True)
class SecondOpinion(Stored):
    """A fitted classifier, its name, and how its probabilities enter the pool."""

    name: str
    estimator: Any
    floor: float
    n_classes: int

    def ask(self, X: FloatArray) -> Opinion:
        """Its opinion on new rows."""
        proba = spread_columns(
            self.estimator.predict_proba(_limited(X)), self.estimator.classes_, self.n_classes
        )
        return Opinion(proba, self.floor)


def resolve_opinions(
    second_opinions: str | Sequence[Any] | None, *, random_state: int, n_jobs: int | None
) -> list[tuple[str, Any]]:
    """Names and unfitted estimators that a user's choice stands for."""
    if second_opinions is None:
        return []
    if isinstance(second_opinions, str):
        if second_opinions != "auto":
            raise InvalidParameterError(
                "The 'second_opinions' parameter of NeighborAgg must be None, 'auto' or a list of classifiers. "
                f"Got {second_opinions!r} instead."
            )
        return [
            (
                "forest",
                RandomForestClassifier(oob_score=True, random_state=random_state, n_jobs=n_jobs),
            ),
            (
                "boosting",
                HistGradientBoostingClassifier(early_stopping=False, random_state=random_state),
            ),
        ]
    named = []
    for position, estimator in enumerate(second_opinions):
        if not hasattr(estimator, "predict_proba") and not hasattr(type(estimator), "predict_proba"):
            raise InvalidParameterError(
                f"Second opinion {position} of NeighborAgg must be a classifier with predict_proba. "
                f"Got {estimator!r} instead."
            )
        if isinstance(estimator, FrozenEstimator):
            raise InvalidParameterError(
                f"Second opinion {position} of NeighborAgg is frozen, but second opinions are fitted here, on "
                "training rows only.\nHint: pass the classifier itself."
            )
        named.append((f"{type(estimator).__name__} #{position + 1}", clone(estimator)))
    return named


def fit_second_opinion(name: str, estimator: Any, data: FitData) -> tuple[SecondOpinion, Opinion]:
    """Fit one classifier; return it with its out-of-sample opinion on the validation rows.

    A bagged ensemble is fitted on training and validation rows and asked out of bag. Any other classifier is
    fitted on the training rows; where those are the validation rows too, it is asked out of fold.
    """
    if _votes_out_of_bag(estimator):
        return _fit_out_of_bag(name, estimator, data)
    proba = _out_of_fold(estimator, data) if data.shared else None
    opinion = SecondOpinion(name, _fitted(estimator, data.X, data.codes), SMOOTH_FLOOR, data.n_classes)
    return opinion, opinion.ask(data.X_val) if proba is None else Opinion(proba, SMOOTH_FLOOR)


def _votes_out_of_bag(estimator: Any) -> bool:
    params = estimator.get_params()
    return "oob_score" in params and bool(params.get("bootstrap", True))


def _fit_out_of_bag(name: str, estimator: Any, data: FitData) -> tuple[SecondOpinion, Opinion]:
    X = data.X if data.shared else np.concatenate([data.X, data.X_val])
    codes = data.codes if data.shared else np.concatenate([data.codes, data.codes_val])
    votes = fit_out_of_bag(estimator, _limited(X), codes, data.n_classes).proba[-len(data.X_val) :]
    return SecondOpinion(name, estimator, VOTE_FLOOR, data.n_classes), Opinion(votes, VOTE_FLOOR)


def _out_of_fold(estimator: Any, data: FitData) -> FloatArray:
    if len(data.X) == 1:
        return np.full((1, data.n_classes), 1.0 / data.n_classes)
    counts = np.bincount(data.codes)
    rare = counts[counts > 0].min() < 5
    folds = (KFold if rare else StratifiedKFold)(min(5, len(data.X)), shuffle=True, random_state=0)
    rows, classes = _limited(data.X), np.arange(data.n_classes)
    splits = folds.split(rows, data.codes)
    return cross_fit(lambda n: clone(estimator), rows.__getitem__, data.codes, classes, splits).proba


def _fitted(estimator: Any, X: FloatArray, codes: IntArray) -> Any:
    """The classifier fitted, or a constant one where there is a single class, which most refuse to learn."""
    if (codes == codes[0]).all():
        estimator = DummyClassifier()
    return estimator.fit(_limited(X), codes)


def _limited(X: FloatArray) -> FloatArray:
    """Rows within the range of single precision."""
    if max(X.max(initial=0.0), -X.min(initial=0.0)) <= LARGEST_FEATURE:
        return X
    return np.clip(X, -LARGEST_FEATURE, LARGEST_FEATURE)
