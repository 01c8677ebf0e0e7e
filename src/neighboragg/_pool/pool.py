"""The pool: log-linear weights of experts, and the guard that falls back to the classifier."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from neighboragg._core.checks import check_integer, check_real
from neighboragg._core.stats import softmax
from neighboragg._core.types import FloatArray, IntArray
from neighboragg._core.views import learned
from neighboragg._pool.evidence import Evidence
from neighboragg._pool.experts import (
    CLASSIFIER,
    Expert,
    NeighborDistances,
    Probabilities,
    evidence_tensor,
    joined_logs,
    joined_means,
    learn_experts,
    prior_groups,
    usual_counts,
)
from neighboragg._pool.weights import fit_pool, guard_weight
from neighboragg._store.objects import Savable


class Contributions(NamedTuple):
    """Contributions of experts to the log trust of every class, of shape (n, C, E), and their names."""

    names: list[str]
    groups: list[str]
    spaces: list[str]
    values: FloatArray


class Aggregator(Savable, BaseEstimator, ABC):
    """Turns evidence into a trust vector; fitted on validation rows."""

    #: Default number of neighbors per class.
    default_n_neighbors: ClassVar[int]
    #: Whether it also uses distances in the learned metric.
    uses_learned_metric: ClassVar[bool]
    #: Whether it uses second opinions.
    uses_opinions: ClassVar[bool] = False
    #: Whether validation rows serve as reference rows (each leaving itself out).
    indexes_validation: ClassVar[bool]
    #: Whether rows may count differently in its fit.
    weighs_rows: ClassVar[bool] = False

    @property
    def uses_neighbors(self) -> bool:
        """Whether it uses distances."""
        return True

    @abstractmethod
    def fit(self, evidence: Evidence, codes: IntArray) -> Self:
        """Learn from validation rows and their classes, given as positions in the class axis."""

    @abstractmethod
    def predict_trust(self, evidence: Evidence) -> FloatArray:
        """Trust in every class, shape (n, C); rows sum to one."""

    @abstractmethod
    def contributions(self, evidence: Evidence) -> Contributions:
        """Contribution of each expert to the log trust of every class."""


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
        """The same from evidence that comes some rows at a time, so all distances are never in memory at once."""
        penalty = check_real(self.penalty, "penalty", type(self).__name__, low=0, high=np.inf)
        experts, observed, weight = list[Expert](), [], []
        for evidence in parts():
            experts = experts or self._experts(evidence)
            observed.append([expert.observe(evidence) for expert in experts])
            weight.append(evidence.row_weights)
        self.experts_ = learn_experts(experts, observed)
        tensor = evidence_tensor(self.experts_, parts(), len(codes))
        groups = prior_groups(self.experts_)
        nonnegative = np.array([not expert.signed for expert in self.experts_ for _ in expert.names])
        pool = fit_pool(
            tensor,
            codes,
            groups,
            penalty=penalty,
            nonnegative=nonnegative,
            sample_weight=np.concatenate(weight),
        )
        self.guard_weight_ = 1.0
        if self.guard:
            self.guard_weight_ = guard_weight(
                tensor, codes, groups, penalty=penalty, nonnegative=nonnegative, start=pool
            )
        self.scale_, self.prior_ = pool.scale, pool.prior
        self.theta_ = self.guard_weight_ * pool.theta + (1 - self.guard_weight_) * pool.first_alone
        self.slopes_ = joined_means(self.experts_) @ (self.theta_ / self.scale_)
        return self

    def predict_trust(self, evidence: Evidence) -> FloatArray:
        """Trust in every class."""
        # All weights at once, without the evidence of each expert; a constant common to all classes changes nothing.
        return softmax(joined_logs(self.experts_, evidence) @ self.slopes_)

    def contributions(self, evidence: Evidence) -> Contributions:
        """Contribution of each expert to the log trust of every class."""
        groups, spaces = (
            [getattr(expert, field) for expert in self.experts_ for _ in expert.names]
            for field in ("group", "space")
        )
        tensor = evidence_tensor(self.experts_, [evidence], len(evidence))
        return Contributions(self.expert_names, groups, spaces, tensor * (self.theta_ / self.scale_))

    @property
    def expert_names(self) -> list[str]:
        """Names of the fitted experts, one for each weight in `theta_`."""
        return [name for expert in self.experts_ for name in expert.names]

    def _experts(self, evidence: Evidence) -> list[Expert]:
        """The classifier, to which the guard falls back, distances in each space, and the second opinions."""
        counts = self._counts(evidence.feature_distances.shape[2])
        return [
            Probabilities(CLASSIFIER, CLASSIFIER),
            *(
                # Of a view and its learned metric, the metric is expected to be better.
                NeighborDistances(space, counts, expected=learned(space) not in evidence.distances)
                for space in evidence.distances
            ),
            *(Probabilities(name, floor=evidence.floors.get(name)) for name in evidence.opinions),
        ]

    def _counts(self, available: int) -> tuple[int, ...]:
        if self.neighbor_counts is None:
            return tuple(usual_counts(available))
        owner = type(self).__name__
        return tuple(
            min(check_integer(k, "neighbor_counts", owner, minimum=1), available)
            for k in self.neighbor_counts
        )
