"""The pool: log-linear weights of experts, and the guard that falls back to the classifier."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from neighboragg._core.checks import check_integer, check_real
from neighboragg._core.stats import softmax
from neighboragg._core.types import BoolArray, FloatArray, IntArray
from neighboragg._pool.evidence import Evidence
from neighboragg._pool.experts import DistanceScale, Reach, usual_counts
from neighboragg._pool.weights import centered, fit_pool, guard_weight
from neighboragg._store.objects import Savable


class Aggregator(Savable, BaseEstimator, ABC):
    """Turns evidence into a trust vector; fitted on validation rows."""

    #: Neighbors per class it works with unless told otherwise.
    default_n_neighbors: ClassVar[int]
    #: Whether it looks at distances in the learned metric too.
    uses_learned_metric: ClassVar[bool]
    #: Whether it listens to second opinions.
    uses_opinions: ClassVar[bool] = False
    #: Whether validation rows serve as reference rows (each leaving itself out).
    indexes_validation: ClassVar[bool]
    #: Whether rows may count differently in its fit.
    weighs_rows: ClassVar[bool] = False

    @property
    def uses_neighbors(self) -> bool:
        """Whether it looks at distances at all."""
        return True

    @abstractmethod
    def fit(self, evidence: Evidence, codes: IntArray) -> Self:
        """Learn from validation rows and their classes, given as positions in the class axis."""

    def fit_parts(self, parts: Callable[[], Iterable[Evidence]], codes: IntArray) -> Self:
        """The same from evidence that comes some rows at a time, whenever it is asked for; here all is held at once."""
        return self.fit(Evidence.joined(list(parts())), codes)

    @abstractmethod
    def predict_trust(self, evidence: Evidence) -> FloatArray:
        """Trust in every class, shape (n, C); rows sum to one."""

    @abstractmethod
    def contributions(self, evidence: Evidence) -> tuple[list[str], FloatArray]:
        """Names of the experts, and what each adds to the log trust of every class, shape (n, C, E)."""


class PoolAggregator(Aggregator):
    """Log-linear opinion pool with a soft guard."""

    default_n_neighbors: ClassVar[int] = 20
    uses_learned_metric: ClassVar[bool] = True
    uses_opinions: ClassVar[bool] = True
    indexes_validation: ClassVar[bool] = True
    weighs_rows: ClassVar[bool] = True

    def __init__(
        self,
        *,
        neighbor_counts: Sequence[int] | None = None,
        penalty: float = 10.0,
        guard: bool = True,
    ) -> None:
        self.neighbor_counts = neighbor_counts
        self.penalty = penalty
        self.guard = guard

    def fit(self, evidence: Evidence, codes: IntArray) -> Self:
        """Learn the weights from validation rows."""
        return self.fit_parts(lambda: [evidence], codes)

    def fit_parts(self, parts: Callable[[], Iterable[Evidence]], codes: IntArray) -> Self:
        """The same from evidence that comes some rows at a time, so that distances are never held all at once."""
        penalty = check_real(self.penalty, "penalty", type(self).__name__, low=0, high=np.inf)
        smallest, reaches, weights = 1.0, dict[str, list[Reach]](), []
        for evidence in parts():
            smallest = float(evidence.proba.min(initial=smallest, where=evidence.proba > 0))
            for metric, found in evidence.distances.items():
                reaches.setdefault(metric, []).append(Reach.of(found))
            weights.append(evidence.row_weights)
        self.floor_ = max(1e-6, 0.5 * smallest)
        self.scales_ = {metric: DistanceScale.of_reaches(found) for metric, found in reaches.items()}
        self.counts_ = self._counts(evidence.feature_distances.shape[2])
        self.expert_names_ = self._names(evidence)
        groups, alone = self._groups(evidence), self._one_of_a_kind(evidence)
        del evidence  # the last part, no longer needed
        tensor = self._centered_tensor(parts(), len(codes))
        weight = np.concatenate(weights)
        pool = fit_pool(tensor, codes, groups, penalty=penalty, nonnegative=alone, sample_weight=weight)
        self.guard_weight_ = 1.0
        if self.guard:
            self.guard_weight_ = guard_weight(
                tensor, codes, groups, penalty=penalty, nonnegative=alone, start=pool
            )
        self.scale_, self.prior_ = pool.scale, pool.prior
        self.theta_ = self.guard_weight_ * pool.theta + (1 - self.guard_weight_) * pool.first_alone
        return self

    def predict_trust(self, evidence: Evidence) -> FloatArray:
        """Trust in every class."""
        # All weights at once, without the evidence of each expert; what is common to all classes changes nothing.
        return softmax(self._logs(evidence) @ (self._means(evidence) @ (self.theta_ / self.scale_)))

    def contributions(self, evidence: Evidence) -> tuple[list[str], FloatArray]:
        """What each expert adds to the log trust of every class."""
        return list(self.expert_names_), centered(self._tensor(evidence)) * (self.theta_ / self.scale_)

    def _counts(self, available: int) -> list[int]:
        if self.neighbor_counts is None:
            return usual_counts(available)
        owner = type(self).__name__
        return [
            min(check_integer(k, "neighbor_counts", owner, minimum=1), available)
            for k in self.neighbor_counts
        ]

    def _names(self, evidence: Evidence) -> list[str]:
        neighbors = [f"{k} nearest ({metric})" for metric in evidence.distances for k in self.counts_]
        return ["classifier", *neighbors, *evidence.opinions]

    def _one_of_a_kind(self, evidence: Evidence) -> BoolArray:
        """Who must not count against what it says: the classifier and second opinions."""
        positions = np.arange(len(self.expert_names_))
        return (positions == 0) | (positions >= len(positions) - len(evidence.opinions))

    def _groups(self, evidence: Evidence) -> list[dict[int, float]]:
        """Experts that the prior gives weight to, by position, with their share in the weight of their group."""
        n_counts, n_opinions = len(self.counts_), len(evidence.opinions)
        metrics = list(evidence.distances)
        opinions = len(self.expert_names_) - n_opinions
        neighbors = []
        for metric in evidence.leading or metrics[-1:]:
            smallest = 1 + metrics.index(metric) * n_counts
            largest = smallest + n_counts - 1
            neighbors.append({smallest: 0.25, largest: 0.75} if n_counts > 1 else {largest: 1.0})
        return [{0: 1.0}, *neighbors, *({opinions + i: 1.0} for i in range(n_opinions))]

    def _centered_tensor(self, parts: Iterable[Evidence], n: int) -> FloatArray:
        """Evidence of all experts on n rows, relative to its mean over classes, shape (n, C, E)."""
        tensor, done = None, 0
        for evidence in parts:
            found = centered(self._tensor(evidence))
            if len(found) == n:
                return found
            if tensor is None:
                tensor = np.empty((n, *found.shape[1:]))
            tensor[done : done + len(found)] = found
            done += len(found)
        assert tensor is not None and done == n
        return tensor

    def _tensor(self, evidence: Evidence) -> FloatArray:
        """Evidence of all experts, shape (n, C, E)."""
        return self._logs(evidence) @ self._means(evidence)

    def _logs(self, evidence: Evidence) -> FloatArray:
        """All logarithms at once: of the classifier and the second opinions, then of the distances in each metric."""
        k, n_said = max(self.counts_), 1 + len(evidence.opinions)
        logs = np.empty((*evidence.proba.shape, n_said + len(evidence.distances) * k))
        np.add(evidence.proba, self.floor_, out=logs[:, :, 0])
        for place, opinion in enumerate(evidence.opinions.values(), start=1):
            np.add(opinion.proba, opinion.floor, out=logs[:, :, place])
        for first, (metric, distances) in zip(
            range(n_said, logs.shape[2], k), evidence.distances.items(), strict=True
        ):
            scale = self.scales_[metric]
            np.add(scale.filled(distances)[:, :, :k], scale.offset, out=logs[:, :, first : first + k])
        return np.log(logs, out=logs)

    def _means(self, evidence: Evidence) -> FloatArray:
        return _means(tuple(self.counts_), len(evidence.distances), 1 + len(evidence.opinions))


@cache
def _means(counts: tuple[int, ...], n_metrics: int, n_said: int) -> FloatArray:
    """Which logarithms each expert takes the mean of, and with which sign, shape (n_logs, E)."""
    near = np.array([np.where(np.arange(max(counts)) < k, -1.0 / k, 0.0) for k in counts]).T
    n_near = n_metrics * len(counts)
    means = np.zeros((n_said + n_metrics * len(near), n_said + n_near))
    means[0, 0] = 1.0
    means[n_said:, 1 : 1 + n_near] = np.kron(np.eye(n_metrics), near)
    means[1:n_said, 1 + n_near :] = np.eye(n_said - 1)
    return means
