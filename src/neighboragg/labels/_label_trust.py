"""Label trust in passes: pool out-of-sample evidence, weight every row by its own trust, and pool again."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import poisson
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from neighboragg._core.progress import add_total, advance, begin_stage
from neighboragg._core.stats import softmax
from neighboragg._core.threads import ONE_THREAD, boosting_threads
from neighboragg._core.types import BoolArray, FloatArray, IntArray
from neighboragg._pool.crossfit import CrossFitted, Labels, cross_fit, fit_out_of_bag, fold_splits
from neighboragg._pool.evidence import Evidence
from neighboragg._pool.experts import (
    CLASSIFIER,
    Expert,
    NeighborDistances,
    Probabilities,
    Votes,
    evidence_tensor,
    learn_experts,
    usual_counts,
)
from neighboragg._pool.spaces import LabelNeighborhoods, Neighbors
from neighboragg._pool.weights import centered, pool_weights
from neighboragg._store.objects import Stored
from neighboragg.labels._groups import Predictiveness, measure_predictiveness

# The model that reads words instead of vectors.
WORDS = "classifier of words"

N_TREES = 100
# Out of bag, about 37 of 100 trees vote on a row; out of fold all do, and fewer serve as well.
N_TREES_PER_FOLD = 40
# More rows hardly improve a tree, and a forest grown on them fills the memory.
MAX_ROWS_PER_TREE = 50_000
# A row with less weight than this only slows a model down.
MIN_WEIGHT = 1e-3
# Trees work in single precision, which overflows far beyond this many standard deviations.
FARTHEST = 1e6


@dataclass(frozen=True)
class Scaling(Stored):
    """Scale columns to mean 0 and standard deviation 1, whatever their magnitude; constant columns to 0."""

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
class BuiltinModels:
    """Models fitted in addition to the search for neighbors; `terms` are words, for one model more."""

    effort: str
    terms: Any
    keep: bool
    seed: int
    n_jobs: int | None

    @property
    def number(self) -> int:
        """Number of models."""
        return 0 if self.effort == "fast" else 2 + (self.effort == "best") + (self.terms is not None)

    def fit(self, X: FloatArray, labels: Labels, weight: FloatArray) -> dict[str, CrossFitted]:
        """Fit with weights on scaled rows: logistic regression out of fold, extra-trees out of bag, and others."""
        if self.effort == "fast":
            return {}
        with warnings.catch_warnings():
            # Early stopping is intended, and rows without votes get a uniform one.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings(
                "ignore", message="Some inputs do not have OOB scores", category=UserWarning
            )
            fitted = self._fit_all(X, labels, weight)
        return fitted if self.keep else {name: model.without_models() for name, model in fitted.items()}

    def _fit_all(self, X: FloatArray, labels: Labels, weight: FloatArray) -> dict[str, CrossFitted]:
        def out_of_fold(make: Callable[[int], Any], rows: Any = X) -> CrossFitted:
            splits = ((train[weight[train] > MIN_WEIGHT], test) for train, test in fold_splits(labels.folds))
            classes = np.arange(labels.n_classes)
            return cross_fit(make, rows.__getitem__, labels.codes, classes, splits, weight=weight)

        # A rough fit is enough.
        fitted = {"logistic regression": out_of_fold(lambda n: LogisticRegression(max_iter=150, tol=1e-3))}
        if labels.are_grouped:  # a bag does not keep groups apart
            fitted["extra-trees"] = out_of_fold(lambda n: self._trees(N_TREES_PER_FOLD, n))
        else:
            forest = self._trees(N_TREES, len(X))
            fitted["extra-trees"] = fit_out_of_bag(forest, X, labels.codes, labels.n_classes, weight=weight)
            advance(labels.n_folds)
        if self.effort == "best":
            with boosting_threads(len(X), self.n_jobs):
                fitted["boosting"] = out_of_fold(
                    lambda n: HistGradientBoostingClassifier(early_stopping=False, random_state=self.seed)
                )
        if self.terms is not None and self.terms.shape[1]:
            # Words are many and each carries little, so the penalty is small.
            fitted[WORDS] = out_of_fold(lambda n: LogisticRegression(C=20, max_iter=1000), self.terms)
        return fitted

    def _trees(self, number: int, n_rows: int) -> ExtraTreesClassifier:
        bag = MAX_ROWS_PER_TREE if n_rows > MAX_ROWS_PER_TREE else None
        return ExtraTreesClassifier(
            number, bootstrap=True, max_samples=bag, random_state=self.seed, n_jobs=self.n_jobs
        )


# Added to probabilities: votes of exactly zero must not veto a class.
PROBA_FLOOR = 1e-2
TRUST_FLOOR = 1e-30
# Distances are taken to rows whose given label is trusted at least half as much as the best.
RELIABLE = 0.5
# Share of the rows up to which a class has to show that its rows are near each other, and how clearly.
RARE, SIGNIFICANCE = 0.05, 1e-3
BLOCK_ROWS = 4096


@dataclass(frozen=True)
class TrustPass(Stored):
    """One pass: its experts, their input, their weights, and the trust in the labels of the rows."""

    weight: FloatArray
    neighbors: LabelNeighborhoods
    models: dict[str, CrossFitted]
    experts: list[Expert]
    slopes: FloatArray
    trust: FloatArray


@dataclass(frozen=True)
class LabelTrust(Stored):
    """Trust in every class for the rows fitted on, and the state that scores further rows."""

    trust: FloatArray
    passes: list[TrustPass]
    neighbors: dict[str, Neighbors]
    votes: dict[str, FloatArray]
    is_clustered: BoolArray
    temperature: FloatArray
    scaling: Scaling

    @property
    def first(self) -> FloatArray:
        """Trust of the first pass, before labels were weighted by it, shape (n, C)."""
        return self.passes[0].trust

    def predictiveness(self, codes: IntArray) -> Predictiveness:
        """How well the first pass predicts labels that have other rows of their class."""
        first, near = self.passes[0], next(iter(self.neighbors.values()))
        comparable = np.isfinite(near.distances[np.arange(len(codes)), codes, 0])
        return measure_predictiveness(first.trust, codes, comparable, int((first.slopes != 0).sum()))

    def trust_of(
        self, X: FloatArray, proba: FloatArray | None, terms: Any = None
    ) -> tuple[FloatArray, FloatArray]:
        """Trust in every class for new rows, final and after the first pass, each of shape (m, C)."""
        with ONE_THREAD:
            vectors = self.scaling.of(X)
            first = self.passes[0]
            found = first.neighbors.of_new_rows(X)
            nearest = {space: near.nearest(near.ids.shape[2]) for space, near in found.items()}
            results = []
            for one in self.passes:
                near = found if one is first else one.neighbors.of_new_rows(X)
                models = {
                    name: model.predict_proba(terms if name == WORDS else vectors)
                    for name, model in one.models.items()
                }
                evidence = _evidence(proba, models, near, _votes(nearest, one.weight, found))
                tensor = evidence_tensor(one.experts, evidence.parts(BLOCK_ROWS), len(evidence))
                results.append(softmax(tensor @ one.slopes))
            return softmax(_combined(results) @ self.temperature), results[0]


def fit_label_trust(
    X: FloatArray,
    views: dict[str, int],
    labels: Labels,
    models: BuiltinModels,
    *,
    proba: FloatArray | None,
    n_neighbors: int,
    learned_metric: bool,
    n_passes: int,
    report: Callable[[str], None] = lambda message: None,
) -> LabelTrust:
    """Estimate the trust in every class of labeled rows, some of them wrongly labeled."""

    def index(weight: FloatArray) -> LabelNeighborhoods:
        return LabelNeighborhoods(
            X,
            views,
            labels,
            weight > RELIABLE,
            n_neighbors=n_neighbors,
            learned_metric=learned_metric,
            seed=models.seed,
            n_jobs=models.n_jobs,
        )

    with ONE_THREAD:
        scaling, codes = Scaling.fit(X), labels.codes
        vectors = scaling.of(X)
        weight: FloatArray = np.ones(len(codes))
        add_total(n_passes * (len(views) + models.number * labels.n_folds))
        begin_stage(f"Searching neighbors, pass 1 of {n_passes}")
        neighborhoods = index(weight)
        found = neighborhoods.of_own_rows()
        nearest = {space: near.nearest(n_neighbors) for space, near in found.items()}
        counts = {space: marked.sum(axis=2) for space, marked in nearest.items()}
        is_clustered = np.any([_are_clustered(count, codes) for count in counts.values()], axis=0)
        fit_weight = is_clustered[codes] * _has_others_of_class(found, codes)
        passes: list[TrustPass] = []
        for number in range(1, n_passes + 1):
            near = found
            if passes:
                weight = relative_trust(passes[-1].trust, codes)
                begin_stage(f"Searching neighbors, pass {number} of {n_passes}")
                neighborhoods = index(weight)
                near = neighborhoods.of_own_rows()
            begin_stage(f"Fitting models, pass {number} of {n_passes}")
            fitted = models.fit(vectors, labels, weight)
            predicted = {name: model.proba for name, model in fitted.items()}
            evidence = _evidence(proba, predicted, near, _votes(nearest, weight, found))
            usable = weight * fit_weight * _has_others_of_class(near, codes)
            experts, slopes, trust = _weigh(evidence, codes, usable, classifier=proba is not None)
            passes.append(TrustPass(weight, neighborhoods, fitted, experts, slopes, trust))
            report(
                f"pass {number} of {n_passes}: {int((weight > RELIABLE).sum())} of {len(weight)} rows reliable"
            )
        combined = _combined([one.trust for one in passes])
        temperature = _agreeing_weights(combined, codes, fit_weight)
    trust = softmax(combined @ temperature)
    return LabelTrust(trust, passes, found, counts, is_clustered, temperature, scaling)


def relative_trust(trust: FloatArray, codes: IntArray) -> FloatArray:
    """Trust in the given label relative to the most trusted one: t_y / max_c t_c."""
    # Not zero, so a weighted model always has rows to learn from.
    return np.maximum(trust[np.arange(len(codes)), codes] / trust.max(axis=1), 1e-6)


def _evidence(
    proba: FloatArray | None,
    models: dict[str, FloatArray],
    neighbors: dict[str, Neighbors],
    votes: dict[str, FloatArray],
) -> Evidence:
    distances = {space: near.distances for space, near in neighbors.items()}
    shape = next(iter(distances.values())).shape[:2]
    given = np.broadcast_to(1.0 / shape[1], shape) if proba is None else proba
    return Evidence(given, distances, models, votes=votes)


def _weigh(
    evidence: Evidence, codes: IntArray, weight: FloatArray, *, classifier: bool
) -> tuple[list[Expert], FloatArray, FloatArray]:
    """Experts with their scales and weights, and the resulting trust."""
    counts = tuple(usual_counts(evidence.feature_distances.shape[2]))
    experts: list[Expert] = [Probabilities(CLASSIFIER, CLASSIFIER, PROBA_FLOOR)] if classifier else []
    experts += [Probabilities(name, floor=PROBA_FLOOR) for name in evidence.opinions]
    for space in evidence.distances:
        experts += [NeighborDistances(space, counts), Votes(space)]
    experts = learn_experts(experts, [[expert.observe(evidence) for expert in experts]])
    tensor = evidence_tensor(experts, evidence.parts(BLOCK_ROWS), len(evidence))
    spread = tensor.std(axis=(0, 1)) + 1e-12
    tensor /= spread
    theta = _agreeing_weights(tensor, codes, weight)
    return experts, theta / spread, softmax(tensor @ theta)


def _has_others_of_class(neighbors: dict[str, Neighbors], codes: IntArray) -> FloatArray:
    """1 for a row whose class has another row, else 0."""
    # The same in all views: it depends on classes and groups only.
    distances = next(iter(neighbors.values())).distances
    return np.isfinite(distances[np.arange(len(codes)), codes, 0]).astype(np.float64)


def _are_clustered(votes: FloatArray, codes: IntArray) -> BoolArray:
    """Classes that are not rare, or whose rows cluster more than by chance."""
    n, n_classes = votes.shape
    sizes = np.bincount(codes, minlength=n_classes)
    found = np.bincount(codes, weights=votes[np.arange(n), codes], minlength=n_classes)
    around = votes.sum() / n
    by_chance = around * sizes * np.maximum(sizes - 1, 0) / max(n - 1, 1)
    is_clustered = (sizes > RARE * n) | (found > poisson.isf(SIGNIFICANCE, by_chance))
    # A single such class cannot be distinguished from the others.
    return np.asarray(is_clustered if is_clustered.sum() > 1 else np.ones(n_classes, dtype=bool))


def _agreeing_weights(tensor: FloatArray, codes: IntArray, weight: FloatArray) -> FloatArray:
    """Weights of the pool without experts whose weight would be below zero."""
    theta = np.zeros(tensor.shape[2])
    used = np.arange(tensor.shape[2])
    while len(used):
        partial = pool_weights(tensor[:, :, used], codes, sample_weight=weight)
        if (partial >= 0).all():
            theta[used] = partial
            break
        used = used[partial >= 0]
    return theta


def _votes(
    nearest: dict[str, BoolArray], weight: FloatArray, neighbors: dict[str, Neighbors]
) -> dict[str, FloatArray]:
    """Weight of each class among the nearest rows, shape (n, C), in each space."""
    found = dict[str, FloatArray]()
    for space, near in neighbors.items():
        found[space] = votes = np.empty(near.ids.shape[:2])
        for start in range(0, len(votes), BLOCK_ROWS):  # so copies of the weights stay small
            rows = slice(start, start + BLOCK_ROWS)
            votes[rows] = (nearest[space][rows] * weight[near.ids[rows]]).sum(axis=2)
    return found


def _combined(results: Sequence[FloatArray]) -> FloatArray:
    """Sum of log trust over passes as a tensor with one expert, whose weight is the temperature."""
    return centered(np.log(np.stack(results) + TRUST_FLOOR).sum(axis=0)[:, :, None])
