"""Second opinions: other classifiers, fitted so that what they say of validation rows is honest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold

from neighboragg._typing import FloatArray, IntArray
from neighboragg._validation import check_choice
from neighboragg.aggregators import Opinion
from neighboragg.crossfit import cross_fit, fit_out_of_bag, spread_columns
from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods._base import FitData
from neighboragg.methods._kernel_ridge import KernelRidge, LinearMap, fit_kernel_ridge, learn_gradient_map
from neighboragg.persistence import Stored

__all__ = ["EFFORTS", "KERNEL", "SecondOpinion", "fit_second_opinion", "resolve_opinions"]


@dataclass(frozen=True)
class Effort:
    """Which second opinions are asked for, and how many rows stand for all in the kernel."""

    opinions: tuple[str, ...]
    n_landmarks: int = 500


KERNEL = "kernel"
#: How much computation goes into second opinions.
EFFORTS = {
    "fast": Effort(()),
    "balanced": Effort((KERNEL,)),
    "best": Effort((KERNEL, "forest", "extra trees", "boosting"), n_landmarks=1000),
}
NAMES = EFFORTS["best"].opinions
# Votes of exactly zero are common in a forest, and a kernel may answer less than that: neither must veto a class.
# Boosting is smooth.
KERNEL_FLOOR, VOTE_FLOOR, SMOOTH_FLOOR = 2e-2, 1e-2, 1e-4
# Trees see single precision, and sums must fit in it; what is farther out is on the same side of every split.
LARGEST_FEATURE = 1e30


class SecondOpinion(Protocol):
    """Somebody else's opinion on the class of rows."""

    @property
    def name(self) -> str:
        """What the expert is called."""

    def ask(self, X: FloatArray, left_out: IntArray | None = None) -> Opinion:
        """Its opinion on rows; `left_out` has the position of those that are rows of fit, else -1."""


@dataclass(frozen=True)
class ClassifierOpinion(Stored):
    """A fitted classifier, its name, and how its probabilities enter the pool."""

    name: str
    estimator: Any
    floor: float
    n_classes: int

    def ask(self, X: FloatArray, left_out: IntArray | None = None) -> Opinion:
        """Its opinion on rows; those of fit are not left out."""
        proba = spread_columns(
            self.estimator.predict_proba(_limited(X)), self.estimator.classes_, self.n_classes
        )
        return Opinion(proba, self.floor)


@dataclass(frozen=True)
class KernelOpinion(Stored):
    """Kernel ridge, and the classes of the rows it was fitted on."""

    name: str
    model: KernelRidge
    codes: IntArray

    def ask(self, X: FloatArray, left_out: IntArray | None = None) -> Opinion:
        """Its opinion on rows, each without itself."""
        own_codes = None if left_out is None else np.where(left_out < 0, -1, self.codes[left_out])
        return Opinion(self.model.predict_proba(X, own_codes), KERNEL_FLOOR)


def resolve_opinions(
    second_opinions: str | Sequence[Any] | None, *, effort: str, random_state: int, n_jobs: int | None
) -> list[tuple[str, Any]]:
    """Names, and unfitted estimators or settings of the kernel, that a user's choice stands for."""
    check_choice(effort, "effort", "NeighborAgg", choices=EFFORTS)
    if isinstance(second_opinions, str):
        if second_opinions != "auto":
            raise InvalidParameterError(
                "The 'second_opinions' parameter of NeighborAgg must be 'auto', None or a list of classifiers and "
                f"names. Got {second_opinions!r} instead.\nHint: a list of one is [{second_opinions!r}]."
            )
        second_opinions = EFFORTS[effort].opinions
    ours = {
        KERNEL: Kernel(EFFORTS[effort].n_landmarks, random_state),
        "forest": RandomForestClassifier(random_state=random_state, n_jobs=n_jobs),
        "extra trees": ExtraTreesClassifier(bootstrap=True, random_state=random_state, n_jobs=n_jobs),
        "boosting": HistGradientBoostingClassifier(early_stopping=False, random_state=random_state),
    }
    named: list[tuple[str, Any]] = []
    for position, wanted in enumerate(second_opinions or ()):
        if isinstance(wanted, str) and wanted in ours:
            if wanted in dict(named):
                raise InvalidParameterError(
                    f"Second opinion {position} of NeighborAgg, {wanted!r}, is there twice."
                )
            named.append((wanted, ours[wanted]))
        else:
            named.append((f"{type(wanted).__name__} #{position + 1}", _checked(wanted, position)))
    return named


def _checked(estimator: Any, position: int) -> Any:
    """A copy of a user's classifier."""
    if not hasattr(estimator, "predict_proba") and not hasattr(type(estimator), "predict_proba"):
        raise InvalidParameterError(
            f"Second opinion {position} of NeighborAgg must be a classifier with predict_proba, or one of "
            f"{', '.join(map(repr, NAMES))}. Got {estimator!r} instead."
        )
    if isinstance(estimator, FrozenEstimator):
        raise InvalidParameterError(
            f"Second opinion {position} of NeighborAgg is frozen, but second opinions are fitted here.\n"
            "Hint: pass the classifier itself."
        )
    return clone(estimator)


@dataclass(frozen=True)
class Kernel:
    """Settings of the kernel's opinion."""

    n_landmarks: int
    seed: int

    def fit(self, name: str, data: FitData, judged: IntArray) -> tuple[KernelOpinion, Opinion]:
        """Fit on training and validation rows, the map only on those that are not judged."""
        X, codes = data.all_rows()
        rows = np.setdiff1d(np.arange(len(data.X)), judged) if data.shared else np.arange(len(data.X))
        if len(np.unique(data.codes[rows])) > 1:
            space = learn_gradient_map(data.X[rows], data.codes[rows], data.n_classes, seed=self.seed)
        else:
            space = LinearMap.scaling(X)
        at = judged + len(codes) - len(data.codes_val)
        model, proba = fit_kernel_ridge(
            X, codes, data.n_classes, at, space=space, n_landmarks=self.n_landmarks, seed=self.seed
        )
        return KernelOpinion(name, model, codes), Opinion(proba, KERNEL_FLOOR)


def fit_second_opinion(
    name: str, estimator: Any, data: FitData, judged: IntArray
) -> tuple[SecondOpinion, Opinion]:
    """Fit one classifier; return it with its out-of-sample opinion on those of the validation rows that are judged.

    In the end all are fitted on training and validation rows. The kernel is asked without the row, bagged ensembles
    out of bag, any other classifier after a fit on the training rows only; where those are the validation rows too, out
    of fold.
    """
    if isinstance(estimator, Kernel):
        return estimator.fit(name, data, judged)
    if _votes_out_of_bag(estimator):
        return _fit_out_of_bag(name, estimator, data, judged)
    opinion = ClassifierOpinion(name, _fitted(estimator, *data.all_rows()), SMOOTH_FLOOR, data.n_classes)
    if data.shared:
        return opinion, Opinion(_out_of_fold(estimator, data)[judged], SMOOTH_FLOOR)
    before = replace(opinion, estimator=_fitted(clone(estimator), data.X, data.codes))
    return opinion, before.ask(data.X_val[judged])


def _votes_out_of_bag(estimator: Any) -> bool:
    params = estimator.get_params()
    return "oob_score" in params and bool(params.get("bootstrap", True))


def _fit_out_of_bag(
    name: str, estimator: Any, data: FitData, judged: IntArray
) -> tuple[ClassifierOpinion, Opinion]:
    X, codes = data.all_rows()
    votes = fit_out_of_bag(estimator, _limited(X), codes, data.n_classes).proba[-len(data.X_val) :]
    return ClassifierOpinion(name, estimator, VOTE_FLOOR, data.n_classes), Opinion(votes[judged], VOTE_FLOOR)


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
