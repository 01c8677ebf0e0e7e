"""Who takes part: base classifiers as the paper sets them, and every trust method."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from neighboragg.aggregators import NetworkAggregator
from neighboragg.methods import (
    KNNVote,
    Mahalanobis,
    MaxConfidence,
    NeighborAgg,
    NeighborGCN,
    TemperatureScaling,
    TopLabelCalibration,
    TrueClassProbability,
    TrustMethod,
    TrustScore,
    Tuned,
)

__all__ = ["BASES", "BEST", "COMPARED", "DEFAULT", "ENTRANTS", "FAST", "PAPER_METHOD", "Entrant"]

#: Base classifiers by name, for a seed. The MLP is scikit-learn's: two hidden layers as in the paper, without
#: batch normalization, stopped early on a tenth of its training rows.
BASES: dict[str, Callable[[int], Any]] = {
    "LR": lambda seed: LogisticRegression(max_iter=5000),
    "RF": lambda seed: RandomForestClassifier(random_state=seed),
    "MLP": lambda seed: MLPClassifier((200, 70), early_stopping=True, max_iter=100, random_state=seed),
    "HGB": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}


@dataclass(frozen=True)
class Entrant:
    """A trust method and the vectors it sees: "scaled" features as in the paper, or "tamed" ones."""

    make: Callable[[], TrustMethod]
    vectors: str = "scaled"


def _network(**params: Any) -> Callable[[], TrustMethod]:
    return lambda: NeighborAgg(NetworkAggregator(bandwidth=1.0, **params))


def _tuned(make: Callable[[], TrustMethod], cv: int = 5, **grid: Sequence[Any]) -> Entrant:
    return Entrant(lambda: Tuned(make(), grid, cv=cv))


#: Baselines with their authors' settings come first, then "…, tuned": the setting chosen on validation rows.
#: Trust Score takes the second nearest row in its authors' code, and the nearest in their paper.
ENTRANTS: dict[str, Entrant] = {
    "Confidence": Entrant(MaxConfidence),
    "TempScaling": Entrant(TemperatureScaling),
    "TopLabel": Entrant(TopLabelCalibration),
    "TopLabel, tuned": _tuned(
        lambda: TopLabelCalibration(break_ties=True), points_per_bin=[5, 10, 20, 50, 100, 200]
    ),
    "TCP": Entrant(TrueClassProbability),
    "TCP, tuned": _tuned(TrueClassProbability, penalty=[1e-4, 1e-3, 1e-2], n_hidden=[16, 64]),
    "Mahalanobis": Entrant(Mahalanobis),
    "Mahalanobis, tuned": _tuned(Mahalanobis, shrinkage=["auto", 0.0, 0.1, 0.5, 1.0]),
    "kNN vote": Entrant(KNNVote),
    "kNN vote, tuned": _tuned(
        KNNVote, n_neighbors=[5, 10, 20, 50, 100, 200], weights=["uniform", "distance"]
    ),
    "TrustScore": Entrant(TrustScore),
    "TrustScore, nearest": Entrant(lambda: TrustScore(n_neighbors=1)),
    "TrustScore, tuned": _tuned(TrustScore, n_neighbors=[1, 2, 5, 10, 20]),
    "GCN-1hop": Entrant(NeighborGCN),
    "GCN-1hop, tuned": _tuned(NeighborGCN, cv=3, n_neighbors=[5, 20], penalty=[1e-6, 1e-5, 1e-4]),
    "NeighOnly": Entrant(_network(inputs="neighbors")),
    "ProbOnly": Entrant(_network(inputs="proba")),
    "Network": Entrant(_network()),
    "Network, tuned": _tuned(
        _network(), cv=3, aggregator__bandwidth=[1.0, "median"], aggregator__penalty=[1e-4, 1e-3]
    ),
    "Pool, fast": Entrant(lambda: NeighborAgg(effort="fast"), "tamed"),
    "Pool": Entrant(NeighborAgg, "tamed"),
    "Pool, best": Entrant(lambda: NeighborAgg(effort="best"), "tamed"),
}
#: The paper's own method, ours by default, and ours with less and with more computation.
PAPER_METHOD, DEFAULT, FAST, BEST = "Network", "Pool", "Pool, fast", "Pool, best"
#: What stands in every comparison: all but the ablations.
COMPARED = tuple(name for name in ENTRANTS if name not in ("NeighOnly", "ProbOnly"))
