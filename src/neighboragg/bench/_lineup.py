"""Who takes part: base classifiers as the paper sets them, and every trust method."""

from collections.abc import Callable
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
)

__all__ = ["BASES", "BEST", "COMPARED", "DEFAULT", "ENTRANTS", "PAPER_METHOD", "Entrant"]

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


ENTRANTS: dict[str, Entrant] = {
    "Confidence": Entrant(MaxConfidence),
    "TempScaling": Entrant(TemperatureScaling),
    "TopLabel": Entrant(TopLabelCalibration),
    "TCP": Entrant(TrueClassProbability),
    "Mahalanobis": Entrant(Mahalanobis),
    "kNN vote": Entrant(KNNVote),
    "TrustScore": Entrant(TrustScore),
    "GCN-1hop": Entrant(NeighborGCN),
    "NeighOnly": Entrant(_network(inputs="neighbors")),
    "ProbOnly": Entrant(_network(inputs="proba")),
    "Network": Entrant(_network()),
    "Pool": Entrant(NeighborAgg, "tamed"),
    "Pool + opinions": Entrant(lambda: NeighborAgg(second_opinions="auto"), "tamed"),
}
#: The paper's own method, ours by default, and ours with more computation.
PAPER_METHOD, DEFAULT, BEST = "Network", "Pool", "Pool + opinions"
#: What stands in every comparison: all but the ablations.
COMPARED = tuple(name for name in ENTRANTS if name not in ("NeighOnly", "ProbOnly"))
