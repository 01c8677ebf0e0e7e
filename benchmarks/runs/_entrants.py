"""Who takes part in the benchmarks: every method of a comparison, and baselines tuned on validation rows."""

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.methods import KNNVote, Tuned
from neighboragg import NeighborAgg
from neighboragg._pool.network import NetworkAggregator
from neighboragg.methods import (
    Mahalanobis,
    NeighborGCN,
    TopLabelCalibration,
    TrueClassProbability,
    TrustMethod,
    TrustScore,
)
from neighboragg.trust._compare import METHODS, Entrant

__all__ = ["BEST", "COMPARED", "DEFAULT", "ENTRANTS", "FAST", "PAPER_METHOD"]


def _network(**params: Any) -> Callable[[], TrustMethod]:
    return lambda: NeighborAgg(NetworkAggregator(bandwidth=1.0, **params))


def _tuned(make: Callable[[], TrustMethod], cv: int = 5, **grid: Sequence[Any]) -> Entrant:
    return Entrant(lambda: Tuned(make(), grid, cv=cv))


#: Baselines with their authors' settings come first, then "…, tuned": the setting chosen on validation rows.
#: Trust Score takes the second nearest row in its authors' code, and the nearest in their paper.
ENTRANTS: dict[str, Entrant] = {
    **{name: METHODS[name] for name in ("Confidence", "TempScaling", "TopLabel")},
    "TopLabel, tuned": _tuned(
        lambda: TopLabelCalibration(break_ties=True), points_per_bin=[5, 10, 20, 50, 100, 200]
    ),
    "TCP": METHODS["TCP"],
    "TCP, tuned": _tuned(TrueClassProbability, penalty=[1e-4, 1e-3, 1e-2], n_hidden=[16, 64]),
    "Mahalanobis": METHODS["Mahalanobis"],
    "Mahalanobis, tuned": _tuned(Mahalanobis, shrinkage=["auto", 0.0, 0.1, 0.5, 1.0]),
    "kNN vote": Entrant(KNNVote),
    "kNN vote, tuned": _tuned(
        KNNVote, n_neighbors=[5, 10, 20, 50, 100, 200], weights=["uniform", "distance"]
    ),
    "TrustScore": METHODS["TrustScore"],
    "TrustScore, nearest": Entrant(lambda: TrustScore(n_neighbors=1)),
    "TrustScore, tuned": _tuned(TrustScore, n_neighbors=[1, 2, 5, 10, 20]),
    "GCN-1hop": METHODS["GCN-1hop"],
    "GCN-1hop, tuned": _tuned(NeighborGCN, cv=3, n_neighbors=[5, 20], penalty=[1e-6, 1e-5, 1e-4]),
    "NeighOnly": Entrant(_network(inputs="neighbors")),
    "ProbOnly": Entrant(_network(inputs="proba")),
    "Network": METHODS["Network"],
    "Network, tuned": _tuned(
        _network(), cv=3, aggregator__bandwidth=[1.0, "median"], aggregator__penalty=[1e-4, 1e-3]
    ),
    **{name: METHODS[name] for name in ("Pool, fast", "Pool", "Pool, best")},
}
#: The paper's own method, ours by default, and ours with less and with more computation.
PAPER_METHOD, DEFAULT, FAST, BEST = "Network", "Pool", "Pool, fast", "Pool, best"
#: What stands in every comparison: all but the ablations.
COMPARED = tuple(name for name in ENTRANTS if name not in ("NeighOnly", "ProbOnly"))
