"""Label trust in passes: pool out-of-sample evidence, weight every row by its own trust, and pool again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import poisson

from neighboragg._core.progress import announce, expect
from neighboragg._core.stats import softmax
from neighboragg._core.threads import ONE_THREAD
from neighboragg._core.types import Array, BoolArray, FloatArray, IntArray
from neighboragg._pool.crossfit import CrossFitted
from neighboragg._pool.experts import DistanceScale, usual_counts
from neighboragg._pool.spaces import Near, ViewNeighbors
from neighboragg._pool.weights import centered, pool_weights
from neighboragg._store.objects import Stored
from neighboragg.labels._models import WORDS, Scaling, ask_own_models

# Added to probabilities: votes of exactly zero must not veto a class.
PROBA_FLOOR = 1e-2
TRUST_FLOOR = 1e-30
# Distances are taken to rows whose given label is trusted at least half as much as the best.
RELIABLE = 0.5
# Share of the rows up to which a class has to show that its rows are near each other, and how clearly.
RARE, SIGNIFICANCE = 0.05, 1e-3
BLOCK_ROWS = 4096


@dataclass(frozen=True)
class LabeledRows:
    """Rows with labels to judge, and how to judge them."""

    X: FloatArray
    views: dict[str, int]
    terms: Any
    codes: IntArray
    n_classes: int
    proba: FloatArray | None
    groups: IntArray
    folds: Array
    n_neighbors: int
    models: bool
    boosting: bool
    learned_metric: bool
    keep_models: bool
    seed: int
    n_jobs: int | None

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(np.unique(self.folds))

    @property
    def steps_per_pass(self) -> int:
        """Steps of progress: a search in each view, and each own model on each fold."""
        n_models = 2 + self.boosting + (self.terms is not None) if self.models else 0
        return len(self.views) + n_models * self.n_folds

    def neighbors(self, weight: FloatArray) -> ViewNeighbors:
        """The reliable rows, to search."""
        return ViewNeighbors(
            self.X,
            self.views,
            self.codes,
            self.groups,
            weight > RELIABLE,
            n_classes=self.n_classes,
            n_neighbors=self.n_neighbors,
            seed=self.seed,
            n_jobs=self.n_jobs,
            folds=self.folds if self.learned_metric else None,
        )

    def ask_models(self, vectors: FloatArray, weight: FloatArray) -> dict[str, CrossFitted]:
        """Own models trained with weights on standardized rows, by name."""
        if not self.models:
            return {}
        grouped = len(np.unique(self.groups)) < len(self.groups)
        fitted = ask_own_models(
            vectors,
            self.codes,
            self.n_classes,
            weight,
            self.folds,
            terms=self.terms,
            grouped=grouped,
            boosting=self.boosting,
            seed=self.seed,
            n_jobs=self.n_jobs,
        )
        if self.keep_models:
            return fitted
        return {name: model.without_models() for name, model in fitted.items()}


@dataclass(frozen=True)
class Pass(Stored):
    """One pass: whom it asks, what it learned from them, and what it says of the rows themselves."""

    weight: FloatArray
    neighbors: ViewNeighbors
    models: dict[str, CrossFitted]
    scales: dict[str, DistanceScale]
    slopes: FloatArray
    trust: FloatArray


@dataclass(frozen=True)
class LabelTrust(Stored):
    """Trust in every class for the rows fitted on, and what it takes to score further rows."""

    trust: FloatArray
    passes: list[Pass]
    near: dict[str, Near]
    votes: dict[str, FloatArray]
    has_kin: BoolArray
    temperature: FloatArray
    scaling: Scaling

    @property
    def first(self) -> FloatArray:
        """Trust of the first pass, before labels were weighted by it, shape (n, C)."""
        return self.passes[0].trust

    def trust_of(
        self, X: FloatArray, proba: FloatArray | None, terms: Any = None
    ) -> tuple[FloatArray, FloatArray]:
        """Trust in every class for new rows, and that of the first pass, each of shape (m, C)."""
        with ONE_THREAD:
            vectors = self.scaling.of(X)
            first = self.passes[0]
            found = first.neighbors.of_new_rows(X)
            nearest = {view: near.nearest(near.rows.shape[2]) for view, near in found.items()}
            results = []
            for one in self.passes:
                near = found if one is first else one.neighbors.of_new_rows(X)
                own = (model.ask(terms if name == WORDS else vectors) for name, model in one.models.items())
                said = [*_given(proba), *own]
                votes = {view: _votes(nearest[view], one.weight, found[view].rows) for view in found}
                tensor = _evidence(said, near, votes, one.scales)
                results.append(softmax(tensor @ one.slopes))
            return softmax(_combined(results) @ self.temperature), results[0]


def fit_label_trust(
    data: LabeledRows, n_passes: int, report: Callable[[str], None] = lambda message: None
) -> LabelTrust:
    """Estimate the trust in every class of labeled rows, some of whose labels are wrong."""
    with ONE_THREAD:
        scaling = Scaling.fit(data.X)
        vectors = scaling.of(data.X)
        weight: FloatArray = np.ones(len(data.codes))
        expect(n_passes * data.steps_per_pass)
        announce(f"Searching neighbors, pass 1 of {n_passes}")
        neighbors = data.neighbors(weight)
        found = neighbors.of_own_rows()
        nearest = {view: near.nearest(data.n_neighbors) for view, near in found.items()}
        counts = {view: nearest[view].sum(axis=2) for view in found}
        has_kin = np.any([_have_kin(count, data.codes) for count in counts.values()], axis=0)
        # In all views the same: it depends on classes and groups alone.
        distances = next(iter(found.values())).distances
        teaches = has_kin[data.codes] * _has_others_of_class(distances, data.codes)
        passes: list[Pass] = []
        for number in range(1, n_passes + 1):
            near = found
            if passes:
                weight = relative_trust(passes[-1].trust, data.codes)
                announce(f"Searching neighbors, pass {number} of {n_passes}")
                neighbors = data.neighbors(weight)
                near = neighbors.of_own_rows()
            announce(f"Asking models, pass {number} of {n_passes}")
            votes = {view: _votes(nearest[view], weight, found[view].rows) for view in found}
            passes.append(_fit_pass(data, vectors, weight, teaches, neighbors, near, votes))
            report(
                f"pass {number} of {n_passes}: {int((weight > RELIABLE).sum())} of {len(weight)} rows reliable"
            )
        combined = _combined([one.trust for one in passes])
        temperature = _agreeing_weights(combined, data.codes, teaches)
    return LabelTrust(
        softmax(combined @ temperature),
        passes,
        found,
        counts,
        has_kin,
        temperature,
        scaling,
    )


def relative_trust(trust: FloatArray, codes: IntArray) -> FloatArray:
    """How far the given label is trusted, relative to the most trusted one: t_y / max_c t_c."""
    # Not zero, so that a weighted model always has rows to learn from.
    return np.maximum(trust[np.arange(len(codes)), codes] / trust.max(axis=1), 1e-6)


def _fit_pass(
    data: LabeledRows,
    vectors: FloatArray,
    weight: FloatArray,
    teaches: FloatArray,
    neighbors: ViewNeighbors,
    near: dict[str, Near],
    votes: dict[str, FloatArray],
) -> Pass:
    models = data.ask_models(vectors, weight)
    scales = {view: DistanceScale.of(found.distances) for view, found in near.items()}
    said = [*_given(data.proba), *(model.proba for model in models.values())]
    tensor = _evidence(said, near, votes, scales)
    spread = tensor.std(axis=(0, 1)) + 1e-12
    tensor /= spread
    findable = _has_others_of_class(next(iter(near.values())).distances, data.codes)
    theta = _agreeing_weights(tensor, data.codes, weight * teaches * findable)
    return Pass(weight, neighbors, models, scales, theta / spread, softmax(tensor @ theta))


def _has_others_of_class(distances: FloatArray, codes: IntArray) -> FloatArray:
    """1 for a row of whose class there is another to find, else 0."""
    return np.isfinite(distances[np.arange(len(codes)), codes, 0]).astype(np.float64)


def _have_kin(votes: FloatArray, codes: IntArray) -> BoolArray:
    """Classes that are not rare, or whose rows have more of their own class around them than chance would put there."""
    n, n_classes = votes.shape
    sizes = np.bincount(codes, minlength=n_classes)
    found = np.bincount(codes, weights=votes[np.arange(n), codes], minlength=n_classes)
    around = votes.sum() / n
    by_chance = around * sizes * np.maximum(sizes - 1, 0) / max(n - 1, 1)
    has_kin = (sizes > RARE * n) | (found > poisson.isf(SIGNIFICANCE, by_chance))
    # Of fewer than two such classes, none can be told from the others.
    return np.asarray(has_kin if has_kin.sum() > 1 else np.ones(n_classes, dtype=bool))


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


def _evidence(
    probabilities: Sequence[FloatArray],
    near: Mapping[str, Near],
    votes: Mapping[str, FloatArray],
    scales: Mapping[str, DistanceScale],
) -> FloatArray:
    """Centered log-evidence of every expert, shape (n, C, E)."""
    n, n_classes, n_neighbors = next(iter(near.values())).distances.shape
    counts = usual_counts(n_neighbors)
    tensor = np.empty((n, n_classes, len(probabilities) + len(near) * (len(counts) + 1)))
    for block in _blocks(n):
        experts = [np.log(proba[block] + PROBA_FLOOR)[:, :, None] for proba in probabilities]
        for view, found in near.items():
            experts.append(scales[view].evidence(found.distances[block], counts))
            experts.append(np.log1p(votes[view][block])[:, :, None])
        tensor[block] = centered(np.concatenate(experts, axis=2))
    return tensor


def _votes(nearest: BoolArray, weight: FloatArray, rows: IntArray) -> FloatArray:
    """Weight of each class among the nearest rows, shape (n, C)."""
    votes = np.empty(rows.shape[:2])
    for block in _blocks(len(rows)):
        votes[block] = (nearest[block] * weight[rows[block]]).sum(axis=2)
    return votes


def _blocks(n: int) -> Iterator[slice]:
    """Rows in blocks, so that copies of distances stay small."""
    return (slice(start, start + BLOCK_ROWS) for start in range(0, n, BLOCK_ROWS))


def _combined(results: Sequence[FloatArray]) -> FloatArray:
    """Sum of log trust over passes as a tensor with one expert, whose weight is the temperature."""
    return centered(np.log(np.stack(results) + TRUST_FLOOR).sum(axis=0)[:, :, None])


def _given(proba: FloatArray | None) -> list[FloatArray]:
    return [] if proba is None else [proba]
