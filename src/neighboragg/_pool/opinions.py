"""Second opinions: other classifiers fitted to give out-of-sample probabilities."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator

from neighboragg._core.checks import check_choice
from neighboragg._core.progress import expect
from neighboragg._core.threads import boosting_threads
from neighboragg._core.types import FloatArray, IntArray
from neighboragg._pool.crossfit import cross_fit, fit_out_of_bag, spread_columns
from neighboragg._pool.evidence import FitData, Opinion
from neighboragg._pool.kernel_ridge import KernelRidge, LinearMap, fit_kernel_ridge, learn_gradient_map
from neighboragg._store.objects import Stored
from neighboragg.exceptions import InvalidParameterError
from neighboragg.search import learn_metric


class _Entry(NamedTuple):
    fitted: Any
    seconds: float


class RememberedOpinions:
    """Within a block, second opinions are fitted once for the same rows, however many classifiers are judged."""

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
        """CPU seconds saved so far by whichever of these is in use, 0 where none is."""
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


def fitted_once(name: str, estimator: Any, data: FitData, judged: IntArray, fit: Callable[[], Any]) -> Any:
    """What `fit` gives, or gave for the same opinion on the same rows in this block."""
    if not _in_use.get():
        return fit()
    # The probabilities are those of the classifier that is judged, and no opinion knows of them.
    validation = None if data.shared else (data.X_val, data.codes_val)
    try:
        digest = joblib.hash((name, estimator, data.X, data.codes, validation, data.n_classes, judged))
    except Exception:  # whatever keeps an estimator from being pickled, such as a function without a name
        return fit()
    # A class that is defined anew, as in a notebook, has the name of the old one.
    return _in_use.get()[-1]._get((type(estimator), digest), fit)


@dataclass(frozen=True)
class Effort:
    """Which second opinions are asked for, how many rows stand for all in the kernel, and neighbors of the pool."""

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
# Of its columns, what a boosted tree may split on, so that ensembles of them differ.
SOME_COLUMNS = 1 / 3


class TreeSize(NamedTuple):
    """How large a boosted tree may become."""

    max_leaf_nodes: int
    min_samples_leaf: int


# Large trees learn too much of a few thousand rows by heart, small ones too little of many; leaves of few rows help
# where a rare value of a column tells the class. Each class has trees of its own: with more than two, only the first
# size is worth its cost.
USUAL_TREE, FINE_TREE, SMALL_TREE = TreeSize(31, 20), TreeSize(31, 5), TreeSize(7, 5)
# Parts of the judged rows, each of which is judged by a fit on all other rows.
N_PARTS = 5
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


@dataclass(frozen=True)
class AverageOpinion(Stored):
    """The mean of what several classifiers say, each of rows as they are or with more columns beside them."""

    name: str
    members: tuple[tuple[ClassifierOpinion, FloatArray | None], ...]

    def ask(self, X: FloatArray, left_out: IntArray | None = None) -> Opinion:
        """Their opinion on rows; those of fit are not left out."""
        with boosting_threads(len(X), None):
            return _mean_opinion([member.ask(_beside(X, axes), left_out) for member, axes in self.members])


def resolve_opinions(
    second_opinions: str | Sequence[Any] | None,
    *,
    effort: str,
    n_classes: int,
    random_state: int,
    n_jobs: int | None,
) -> list[tuple[str, Any]]:
    """Names, and unfitted estimators or settings of the kernel, that a user's choice stands for."""
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


class OwnOpinion(ABC):
    """Settings of an opinion of ours that is learned with a map of the rows."""

    @abstractmethod
    def fit(self, name: str, data: FitData, judged: IntArray) -> tuple[SecondOpinion, Opinion]:
        """Fit on training and validation rows, the map only on those that are not judged."""


@dataclass(frozen=True)
class Kernel(OwnOpinion):
    """A Laplace kernel in a metric learned from its own gradients."""

    n_landmarks: int
    seed: int

    def fit(self, name: str, data: FitData, judged: IntArray) -> tuple[KernelOpinion, Opinion]:
        """Fit; the validation rows leave themselves out."""
        X, codes = _not_judged(data, judged)
        if len(np.unique(codes)) > 1:
            space = learn_gradient_map(X, codes, data.n_classes, seed=self.seed)
        else:
            space = LinearMap.scaling(data.all_rows()[0])
        return _fit_kernel(name, data, judged, space=space, n_landmarks=self.n_landmarks, seed=self.seed)


@dataclass(frozen=True)
class SmoothKernel(OwnOpinion):
    """A Gaussian kernel in the metric that neighbors are looked for in."""

    seed: int

    def fit(self, name: str, data: FitData, judged: IntArray) -> tuple[KernelOpinion, Opinion]:
        """Fit; the validation rows leave themselves out."""
        axes = _learned_axes(data, judged, self.seed)
        # Rows are first brought to a common size, which the axes were not learned for.
        space = LinearMap.scaling(data.all_rows()[0])
        if axes is not None:
            space = space.followed_by(axes * space.spread)
        return _fit_kernel(
            name,
            data,
            judged,
            space=space,
            n_landmarks=SMOOTH_LANDMARKS,
            seed=self.seed,
            power=2.0,
            widths=SMOOTH_WIDTHS,
        )


@dataclass(frozen=True)
class Boosting(OwnOpinion):
    """Boosted ensembles of trees of each size: of all columns, of some at each split, of some and the learned axes."""

    trees: tuple[TreeSize, ...]
    seed: int
    n_jobs: int | None

    def fit(self, name: str, data: FitData, judged: IntArray) -> tuple[AverageOpinion, Opinion]:
        """Fit each several times: what is said of a validation row was learned without it."""
        axes = _learned_axes(data, judged, self.seed)
        members: list[tuple[ClassifierOpinion, FloatArray | None]] = []
        said: list[Opinion] = []
        with boosting_threads(len(data.X), self.n_jobs):
            for max_features, columns in ((1.0, None), (SOME_COLUMNS, None), (SOME_COLUMNS, axes)):
                rows = _with_columns(data, columns)
                for boosted in self._unfitted(max_features):
                    member, opinion = _fit_out_of_fold(name, boosted, rows, judged)
                    members.append((member, columns))
                    said.append(opinion)
        return AverageOpinion(name, tuple(members)), _mean_opinion(said)

    def _unfitted(self, max_features: float) -> list[HistGradientBoostingClassifier]:
        return [
            HistGradientBoostingClassifier(
                **size._asdict(), early_stopping=False, max_features=max_features, random_state=self.seed
            )
            for size in self.trees
        ]


def fit_second_opinion(
    name: str, estimator: Any, data: FitData, judged: IntArray
) -> tuple[SecondOpinion, Opinion]:
    """Fit one classifier; return it with its out-of-sample opinion on those of the validation rows that are judged."""
    return fitted_once(name, estimator, data, judged, lambda: _fit(name, estimator, data, judged))


def _fit(name: str, estimator: Any, data: FitData, judged: IntArray) -> tuple[SecondOpinion, Opinion]:
    if learns_a_map(estimator):
        return estimator.fit(name, data, judged)
    fit = _fit_out_of_bag if _votes_out_of_bag(estimator) else _fit_out_of_fold
    return fit(name, estimator, data, judged)


def learns_a_map(estimator: Any) -> bool:
    """Whether it learns a map of the rows, and so must not be judged on the rows it has learned it from."""
    return isinstance(estimator, OwnOpinion)


def _not_judged(data: FitData, judged: IntArray) -> tuple[FloatArray, IntArray]:
    """Training rows that are not judged, and their classes."""
    if not data.shared:
        return data.X, data.codes
    rows = np.setdiff1d(np.arange(len(data.X)), judged)
    return data.X[rows], data.codes[rows]


def _learned_axes(data: FitData, judged: IntArray, seed: int) -> FloatArray | None:
    """The learned metric of rows that are not judged, where there is anything to learn."""
    X, codes = _not_judged(data, judged)
    if X.shape[1] < 2 or len(np.unique(codes)) < 2:
        return None
    return learn_metric(X, codes, random_state=seed)


def _with_columns(data: FitData, axes: FloatArray | None) -> FitData:
    """The same rows with more columns; still the very same array where training rows vouch for themselves."""
    X = _beside(data.X, axes)
    return replace(data, X=X, X_val=X if data.shared else _beside(data.X_val, axes))


def _beside(X: FloatArray, axes: FloatArray | None) -> FloatArray:
    """Rows, and beside them their columns along the axes."""
    return X if axes is None else np.concatenate([X, _limited(_limited(X) @ axes)], axis=1)


def _mean_opinion(said: Sequence[Opinion]) -> Opinion:
    return Opinion(np.mean([opinion.proba for opinion in said], axis=0), said[0].floor)


def _fit_kernel(name: str, data: FitData, judged: IntArray, **settings: Any) -> tuple[KernelOpinion, Opinion]:
    X, codes = data.all_rows()
    at = judged + len(codes) - len(data.codes_val)
    model, proba = fit_kernel_ridge(X, codes, data.n_classes, at, **settings)
    return KernelOpinion(name, model, codes), Opinion(proba, KERNEL_FLOOR)


def _fit_out_of_fold(
    name: str, estimator: Any, data: FitData, judged: IntArray
) -> tuple[ClassifierOpinion, Opinion]:
    X, codes = data.all_rows()
    at, rows = judged + len(X) - len(data.X_val), _limited(X)
    dealt = np.random.default_rng(0).permutation(at)
    parts = [dealt[start::N_PARTS] for start in range(min(N_PARTS, len(dealt)))]
    splits = ((np.setdiff1d(np.arange(len(X)), part), part) for part in parts)
    expect(len(parts))
    said = cross_fit(lambda n: clone(estimator), rows.__getitem__, codes, np.arange(data.n_classes), splits)
    fitted = ClassifierOpinion(name, _fitted(estimator, rows, codes), SMOOTH_FLOOR, data.n_classes)
    return fitted, Opinion(said.proba[at], SMOOTH_FLOOR)


def _votes_out_of_bag(estimator: Any) -> bool:
    params = estimator.get_params()
    return "oob_score" in params and bool(params.get("bootstrap", True))


def _fit_out_of_bag(
    name: str, estimator: Any, data: FitData, judged: IntArray
) -> tuple[ClassifierOpinion, Opinion]:
    X, codes = data.all_rows()
    votes = fit_out_of_bag(estimator, _limited(X), codes, data.n_classes).proba[-len(data.X_val) :]
    return ClassifierOpinion(name, estimator, VOTE_FLOOR, data.n_classes), Opinion(votes[judged], VOTE_FLOOR)


def _fitted(estimator: Any, X: FloatArray, codes: IntArray) -> Any:
    """The classifier fitted, or a constant one where there is a single class, which most refuse to learn."""
    if (codes == codes[0]).all():
        estimator = DummyClassifier()
    return estimator.fit(X, codes)


def _limited(X: FloatArray) -> FloatArray:
    """Rows within the range of single precision."""
    if max(X.max(initial=0.0), -X.min(initial=0.0)) <= LARGEST_FEATURE:
        return X
    return np.clip(X, -LARGEST_FEATURE, LARGEST_FEATURE)
