"""Trust methods: NeighborAgg and baselines, all with one array contract."""

from neighboragg._public import publish as _publish
from neighboragg.methods._base import FitData, TrustMethod
from neighboragg.methods._explanation import Explanation
from neighboragg.methods._knn_distance import KNNDistance
from neighboragg.methods._knn_vote import KNNVote
from neighboragg.methods._logits import Energy, LogitMethod, MaxLogit
from neighboragg.methods._mahalanobis import Mahalanobis
from neighboragg.methods._neighbor_agg import NeighborAgg
from neighboragg.methods._neighbor_gcn import NeighborGCN
from neighboragg.methods._nn_guide import NNGuide
from neighboragg.methods._probability_scores import (
    GeneralizedEntropy,
    Margin,
    MaxConfidence,
    NegativeEntropy,
)
from neighboragg.methods._relative_mahalanobis import RelativeMahalanobis
from neighboragg.methods._remembered_opinions import RememberedOpinions
from neighboragg.methods._row_values import RowValues
from neighboragg.methods._temperature import TemperatureScaling
from neighboragg.methods._top_label import TopLabelCalibration
from neighboragg.methods._true_class_probability import TrueClassProbability, spread_trust
from neighboragg.methods._trust_score import TrustScore
from neighboragg.methods._tuned import Tuned

__all__ = [
    "Energy",
    "Explanation",
    "FitData",
    "GeneralizedEntropy",
    "KNNDistance",
    "KNNVote",
    "LogitMethod",
    "Mahalanobis",
    "Margin",
    "MaxConfidence",
    "MaxLogit",
    "NNGuide",
    "NegativeEntropy",
    "NeighborAgg",
    "NeighborGCN",
    "RelativeMahalanobis",
    "RememberedOpinions",
    "RowValues",
    "TemperatureScaling",
    "TopLabelCalibration",
    "TrueClassProbability",
    "TrustMethod",
    "TrustScore",
    "Tuned",
    "spread_trust",
]

_publish(globals())
