"""Who takes part in the benchmarks: every method of a comparison, and baselines tuned on validation rows."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.methods import KNNVote, Tuned
from neighboragg import NeighborAgg
from neighboragg._pool.network import NetworkAggregator
from neighboragg._pool.opinions import RememberedOpinions
from neighboragg.methods import (
    Mahalanobis,
    MaxConfidence,
    NeighborGCN,
    TemperatureScaling,
    TopLabelCalibration,
    TrueClassProbability,
    TrustMethod,
    TrustScore,
)
from neighboragg.metrics import trust_metrics
from neighboragg.trust._compare import Cell, Entrant

__all__ = ["BEST", "COMPARED", "DEFAULT", "ENTRANTS", "FAST", "PAPER_METHOD", "score_entrants"]


# More than any table shows.
DIGITS = 6

#: Trust methods by name: baselines with their authors' settings, the paper's network, ours with growing effort.
METHODS: dict[str, Entrant] = {
    "Confidence": Entrant(MaxConfidence),
    "TempScaling": Entrant(TemperatureScaling),
    "TopLabel": Entrant(TopLabelCalibration),
    "TCP": Entrant(TrueClassProbability),
    "Mahalanobis": Entrant(Mahalanobis),
    "TrustScore": Entrant(TrustScore),
    "GCN-1hop": Entrant(NeighborGCN),
    "Network": Entrant(lambda: NeighborAgg(NetworkAggregator(bandwidth=1.0))),
    "Pool, fast": Entrant(lambda: NeighborAgg(effort="fast"), "quantiles"),
    "Pool": Entrant(NeighborAgg, "quantiles"),
    "Pool, best": Entrant(lambda: NeighborAgg(effort="best"), "quantiles"),
}


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


def score_entrants(cell: Cell, entrants: Mapping[str, Entrant], **changes: Any) -> Iterator[dict[str, Any]]:
    """Metrics and CPU seconds of each entrant on a cell; `changes` are set on those that know them."""
    for name, entrant in entrants.items():
        method = entrant.make()
        known = method.get_params()
        method.set_params(**{key: value for key, value in changes.items() if key in known})
        start = time.process_time() + RememberedOpinions.saved()
        trust = cell.trust(method, entrant.vectors)
        seconds = time.process_time() + RememberedOpinions.saved() - start
        found = {metric: round(value, DIGITS) for metric, value in trust_metrics(cell.correct, trust).items()}
        yield {"method": name, "cpu_seconds": round(seconds, 3), **found}
