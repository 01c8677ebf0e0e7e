"""Second opinions: other classifiers with out-of-sample probabilities, which join the pool."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator

from neighboragg._core.checks import check_choice
from neighboragg._core.progress import add_total, begin_stage
from neighboragg._core.threads import boosting_threads
from neighboragg._core.types import FloatArray, IntArray
from neighboragg._pool.crossfit import cross_fit, fit_out_of_bag, spread_columns
from neighboragg._pool.evidence import FitData
from neighboragg._pool.kernel_ridge import KernelRidge, LinearMap, fit_kernel_ridge, learn_gradient_map
from neighboragg._store.objects import Stored
from neighboragg.exceptions import InvalidParameterError
from neighboragg.search import learn_metric


class _Entry(NamedTuple):
    fitted: Any
    seconds: float


class RememberedOpinions:
    """Within a block, second opinions are fitted once for the same rows, however many classifiers are compared."""

    def __init__(self) -> None:
        self.saved_seconds = 0.0
        self._entries: dict[Hashable, _Entry] = {}

    def __enter__(self) -> Self:
        _in_use.set((*_in_use.get(), self))
        return self

    def __exit__(self, *reason: object) -> None:
        _in_use.set(_in_use.get()[:-1])

    @staticmethod
    def saved() -> float:
        """CPU seconds saved so far by the one in use; 0 if none is."""
        return _in_use.get()[-1].saved_seconds if _in_use.get() else 0.0

    def _get(self, key: Hashable, fit: Callable[[], Any]) -> Any:
        if (entry := self._entries.get(key)) is not None:
            self.saved_seconds += entry.seconds
            return entry.fitted
        start = time.process_time()
        fitted = fit()
        self._entries[key] = _Entry(fitted, time.process_time() - start)
        return fitted


# Innermost last; every thread has its own.
_in_use: ContextVar[tuple[RememberedOpinions, ...]] = ContextVar("remembered", default=())


def fitted_once(name: str, estimator: Any, data: FitData, pool_rows: IntArray, fit: Callable[[], Any]) -> Any:
    """The result of `fit`, or its earlier result for the same opinion on the same rows in this block."""
    if not _in_use.get():
        return fit()
    # The probabilities come from the classifier in question; opinions do not depend on them.
    validation = None if data.shared else (data.X_val, data.codes_val)
    try:
        digest = joblib.hash((name, estimator, data.X, data.codes, validation, data.n_classes, pool_rows))
    except Exception:  # whatever keeps an estimator from being pickled, such as a function without a name
        return fit()
    # A class that is defined anew, as in a notebook, has the name of the old one.
    return _in_use.get()[-1]._get((type(estimator), digest), fit)


@dataclass(frozen=True)
class Effort:
    """Which second opinions are fitted, the number of landmarks of the kernel, and the neighbors of the pool."""

    opinions: tuple[str, ...]
    n_landmarks: int = 500
    n_neighbors: int | None = None


KERNEL, SHALLOW = "kernel", "shallow boosting"
#: How much computation goes into second opinions.
EFFORTS = {
    "fast": Effort(()),
    "balanced": Effort((KERNEL,)),
    "best": Effort(
        (KERNEL, "smooth kernel", "forest", "extra trees", "boosting", SHALLOW),
        n_landmarks=1000,
        n_neighbors=50,
    ),
}
NAMES = EFFORTS["best"].opinions
# Widths of the smooth kernel, in units of the median distance between landmarks, which need not be many.
SMOOTH_WIDTHS, SMOOTH_LANDMARKS = (0.3, 0.5, 0.8), 700
# Share of the columns that a boosted tree may split on, which makes ensembles differ.
SOME_COLUMNS = 1 / 3


class TreeSize(NamedTuple):
    """How large a boosted tree may become."""

    max_leaf_nodes: int
    min_samples_leaf: int


# Large trees overfit a few thousand rows, small ones underfit many; leaves of few rows help if a rare value of
# a column determines the class. Each class has trees of its own: with more than two, only the first
# size is worth its cost.
USUAL_TREE, FINE_TREE, SMALL_TREE = TreeSize(31, 20), TreeSize(31, 5), TreeSize(7, 5)
# Parts of the pool rows; each is predicted by a fit on all other rows.
N_PARTS = 5
# Votes of exactly zero are common in a forest, and kernel scores can be negative: neither must veto a class.
# Boosting is smooth.
KERNEL_FLOOR, VOTE_FLOOR, SMOOTH_FLOOR = 2e-2, 1e-2, 1e-4
# Trees use single precision, and sums must fit in it; more extreme values are on the same side of every split.
LARGEST_FEATURE = 1e30


class SecondOpinion(Protocol):
    """Another classifier of the same rows."""

    @property
    def name(self) -> str:
        """Name of the expert."""

    @property
    def floor(self) -> float:
        """Constant added to its probabilities before the logarithm."""

    def predict_proba(self, X: FloatArray, exclude: IntArray | None = None) -> FloatArray:
        """Probabilities; `exclude` has the position of a row in fit, or -1."""


@dataclass(frozen=True)
class ClassifierOpinion(Stored):
    """A fitted classifier and its name."""

    name: str
    estimator: Any
    floor: float
    n_classes: int

    def predict_proba(self, X: FloatArray, exclude: IntArray | None = None) -> FloatArray:
        """Probabilities; rows of fit are treated as new ones."""
        proba = self.estimator.predict_proba(_limited(X))
        return spread_columns(proba, self.estimator.classes_, self.n_classes)


@dataclass(frozen=True)
class KernelOpinion(Stored):
    """Kernel ridge, and the classes of the rows it was fitted on."""

    name: str
    model: KernelRidge
    codes: IntArray

    @property
    def floor(self) -> float:
        """The one of all kernels."""
        return KERNEL_FLOOR

    def predict_proba(self, X: FloatArray, exclude: IntArray | None = None) -> FloatArray:
        """Probabilities, each row without itself."""
        codes = None if exclude is None else np.where(exclude < 0, -1, self.codes[exclude])
        return self.model.predict_proba(X, codes)


@dataclass(frozen=True)
class AverageOpinion(Stored):
    """The mean of several classifiers, each given rows as they are or with further columns."""

    name: str
    members: tuple[tuple[ClassifierOpinion, FloatArray | None], ...]

    @property
    def floor(self) -> float:
        """The same for all of its members."""
        return self.members[0][0].floor

    def predict_proba(self, X: FloatArray, exclude: IntArray | None = None) -> FloatArray:
        """Mean probabilities; rows of fit are treated as new ones."""
        with boosting_threads(len(X), None):
            found = [member.predict_proba(_with_axes(X, axes)) for member, axes in self.members]
        return np.asarray(np.mean(found, axis=0))


def resolve_opinions(
    second_opinions: str | Sequence[Any] | None,
    *,
    effort: str,
    n_classes: int,
    random_state: int,
    n_jobs: int | None,
) -> list[tuple[str, Any]]:
    """Names, and unfitted estimators or kernel settings, of a user's choice."""
    check_choice(effort, "effort", "NeighborAgg", choices=EFFORTS)
    all_sizes = n_classes <= 2
    if isinstance(second_opinions, str):
        if second_opinions != "auto":
            raise InvalidParameterError(
                "The 'second_opinions' parameter of NeighborAgg must be 'auto', None or a list of classifiers and "
                f"names. Got {second_opinions!r} instead.\nHint: a list of one is [{second_opinions!r}]."
            )
        second_opinions = [name for name in EFFORTS[effort].opinions if all_sizes or name != SHALLOW]
    ours = {
        KERNEL: Kernel(EFFORTS[effort].n_landmarks, random_state),
        "smooth kernel": SmoothKernel(random_state),
        "forest": RandomForestClassifier(random_state=random_state, n_jobs=n_jobs),
        "extra trees": ExtraTreesClassifier(bootstrap=True, random_state=random_state, n_jobs=n_jobs),
        "boosting": Boosting((USUAL_TREE, FINE_TREE) if all_sizes else (USUAL_TREE,), random_state, n_jobs),
        SHALLOW: Boosting((SMALL_TREE,), random_state, n_jobs),
    }
    named: list[tuple[str, Any]] = []
    for position, wanted in enumerate(second_opinions or ()):
        if isinstance(wanted, str) and wanted in ours:
            if wanted in dict(named):
                raise InvalidParameterError(
                    f"Second opinion {position} of NeighborAgg, {wanted!r}, is listed twice."
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


Fitted = tuple[SecondOpinion, FloatArray]
"""A second opinion, and its probabilities for the pool rows, made without them."""


class BuiltinOpinion(ABC):
    """Settings of a built-in opinion that learns a map of the rows."""

    @abstractmethod
    def fit(self, name: str, data: FitData, pool_rows: IntArray) -> Fitted:
        """Fit on training and validation rows, the map on those only that are not pool rows."""


@dataclass(frozen=True)
class Kernel(BuiltinOpinion):
    """A Laplace kernel in a metric learned from its own gradients."""

    n_landmarks: int
    seed: int

    def fit(self, name: str, data: FitData, pool_rows: IntArray) -> Fitted:
        """Fit; the validation rows leave themselves out."""
        X, codes = _rows_for_maps(data, pool_rows)
        if len(np.unique(codes)) > 1:
            space = learn_gradient_map(X, codes, data.n_classes, seed=self.seed)
        else:
            space = LinearMap.scaling(data.all_rows()[0])
        return _fit_kernel(name, data, pool_rows, space=space, n_landmarks=self.n_landmarks, seed=self.seed)


@dataclass(frozen=True)
class SmoothKernel(BuiltinOpinion):
    """A Gaussian kernel in the learned metric of the neighbors."""

    seed: int

    def fit(self, name: str, data: FitData, pool_rows: IntArray) -> Fitted:
        """Fit; the validation rows leave themselves out."""
        axes = _learned_axes(data, pool_rows, self.seed)
        # Rows are first brought to a common size, which the axes were not learned for.
        space = LinearMap.scaling(data.all_rows()[0])
        if axes is not None:
            space = space.followed_by(axes * space.spread)
        return _fit_kernel(
            name,
            data,
            pool_rows,
            space=space,
            n_landmarks=SMOOTH_LANDMARKS,
            seed=self.seed,
            power=2.0,
            widths=SMOOTH_WIDTHS,
        )


@dataclass(frozen=True)
class Boosting(BuiltinOpinion):
    """Boosted ensembles of trees of each size: of all columns, of some at each split, of some and the learned axes."""

    trees: tuple[TreeSize, ...]
    seed: int
    n_jobs: int | None

    def fit(self, name: str, data: FitData, pool_rows: IntArray) -> Fitted:
        """Fit each several times, so probabilities of a validation row come from fits without it."""
        axes = _learned_axes(data, pool_rows, self.seed)
        members: list[tuple[ClassifierOpinion, FloatArray | None]] = []
        found: list[FloatArray] = []
        with boosting_threads(len(data.X), self.n_jobs):
            for max_features, columns in ((1.0, None), (SOME_COLUMNS, None), (SOME_COLUMNS, axes)):
                rows = _with_columns(data, columns)
                for boosted in self._unfitted(max_features):
                    fit = _fit_apart if data.is_separate else _fit_out_of_fold
                    member, proba = fit(name, boosted, rows, pool_rows)
                    members.append((member, columns))
                    found.append(proba)
        return AverageOpinion(name, tuple(members)), np.mean(found, axis=0)

    def _unfitted(self, max_features: float) -> list[HistGradientBoostingClassifier]:
        return [
            HistGradientBoostingClassifier(
                **size._asdict(), early_stopping=False, max_features=max_features, random_state=self.seed
            )
            for size in self.trees
        ]


def fit_second_opinions(
    opinions: Sequence[tuple[str, Any]], data: FitData, pool_rows: IntArray
) -> tuple[list[SecondOpinion], dict[str, FloatArray]]:
    """Fit classifiers; return them with out-of-sample probabilities for the pool rows, a choice of validation rows."""
    fitted, proba_of = [], {}
    for number, (name, estimator) in enumerate(opinions, start=1):
        begin_stage(f"Fitting second opinion {number} of {len(opinions)}, {name}")
        fit = partial(_fit, name, estimator, data, pool_rows)
        opinion, proba_of[name] = fitted_once(name, estimator, data, pool_rows, fit)
        fitted.append(opinion)
    return fitted, proba_of


def _fit(name: str, estimator: Any, data: FitData, pool_rows: IntArray) -> Fitted:
    if learns_a_map(estimator):
        return estimator.fit(name, data, pool_rows)
    if data.is_separate:
        return _fit_apart(name, estimator, data, pool_rows)
    fit = _fit_out_of_bag if _votes_out_of_bag(estimator) else _fit_out_of_fold
    return fit(name, estimator, data, pool_rows)


def learns_a_map(estimator: Any) -> bool:
    """Whether it learns a map of the rows, and so must not be weighed on the rows that the map is learned from."""
    return isinstance(estimator, BuiltinOpinion)


def _rows_for_maps(data: FitData, pool_rows: IntArray) -> tuple[FloatArray, IntArray]:
    """Training rows that are not pool rows, and their classes."""
    if not data.shared:
        return data.X, data.codes
    rows = np.setdiff1d(np.arange(len(data.X)), pool_rows)
    return data.X[rows], data.codes[rows]


def _learned_axes(data: FitData, pool_rows: IntArray, seed: int) -> FloatArray | None:
    """The metric learned from rows that are not pool rows; None where there is nothing to learn."""
    X, codes = _rows_for_maps(data, pool_rows)
    if X.shape[1] < 2 or len(np.unique(codes)) < 2:
        return None
    return learn_metric(X, codes, random_state=seed)


def _with_columns(data: FitData, axes: FloatArray | None) -> FitData:
    """The same rows with more columns; still the very same array where training rows vouch for themselves."""
    X = _with_axes(data.X, axes)
    return replace(data, X=X, X_val=X if data.shared else _with_axes(data.X_val, axes))


def _with_axes(X: FloatArray, axes: FloatArray | None) -> FloatArray:
    """Rows with further columns, their coordinates along the axes."""
    return X if axes is None else np.concatenate([X, _limited(_limited(X) @ axes)], axis=1)


def _fit_kernel(name: str, data: FitData, pool_rows: IntArray, **settings: Any) -> Fitted:
    X, codes = data.all_rows()
    if data.is_separate:
        scored = np.random.default_rng(0).permutation(len(codes))[: len(pool_rows)]
        model, _ = fit_kernel_ridge(X, codes, data.n_classes, scored, **settings)
        return KernelOpinion(name, model, codes), model.predict_proba(data.X_val[pool_rows])
    positions = pool_rows + len(codes) - len(data.codes_val)
    model, proba = fit_kernel_ridge(X, codes, data.n_classes, positions, **settings)
    return KernelOpinion(name, model, codes), proba


def _fit_out_of_fold(
    name: str, estimator: Any, data: FitData, pool_rows: IntArray
) -> tuple[ClassifierOpinion, FloatArray]:
    X, codes = data.all_rows()
    positions, rows = pool_rows + len(X) - len(data.X_val), _limited(X)
    dealt = np.random.default_rng(0).permutation(positions)
    parts = [dealt[start::N_PARTS] for start in range(min(N_PARTS, len(dealt)))]
    splits = ((np.setdiff1d(np.arange(len(X)), part), part) for part in parts)
    add_total(len(parts))
    fitted = cross_fit(lambda n: clone(estimator), rows.__getitem__, codes, np.arange(data.n_classes), splits)
    model = _fit_classes(estimator, rows, codes)
    return ClassifierOpinion(name, model, SMOOTH_FLOOR, data.n_classes), fitted.proba[positions]


def _fit_apart(
    name: str, estimator: Any, data: FitData, pool_rows: IntArray
) -> tuple[ClassifierOpinion, FloatArray]:
    """Fit on training rows alone, which share no group with the validation rows."""
    floor = VOTE_FLOOR if _votes_out_of_bag(estimator) else SMOOTH_FLOOR
    opinion = ClassifierOpinion(
        name, _fit_classes(estimator, _limited(data.X), data.codes), floor, data.n_classes
    )
    return opinion, opinion.predict_proba(data.X_val[pool_rows])


def _votes_out_of_bag(estimator: Any) -> bool:
    params = estimator.get_params()
    return "oob_score" in params and bool(params.get("bootstrap", True))


def _fit_out_of_bag(
    name: str, estimator: Any, data: FitData, pool_rows: IntArray
) -> tuple[ClassifierOpinion, FloatArray]:
    X, codes = data.all_rows()
    votes = fit_out_of_bag(estimator, _limited(X), codes, data.n_classes).proba[-len(data.X_val) :]
    return ClassifierOpinion(name, estimator, VOTE_FLOOR, data.n_classes), votes[pool_rows]


def _fit_classes(estimator: Any, X: FloatArray, codes: IntArray) -> Any:
    """The classifier fitted, or a constant one where there is a single class, which most refuse to learn."""
    if (codes == codes[0]).all():
        estimator = DummyClassifier()
    return estimator.fit(X, codes)


def _limited(X: FloatArray) -> FloatArray:
    """Rows within the range of single precision."""
    if max(X.max(initial=0.0), -X.min(initial=0.0)) <= LARGEST_FEATURE:
        return X
    return np.clip(X, -LARGEST_FEATURE, LARGEST_FEATURE)
