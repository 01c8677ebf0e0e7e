"""Trust methods that only comparisons need."""

from benchmarks.methods._entropies import GeneralizedEntropy, Margin, NegativeEntropy
from benchmarks.methods._knn_distance import KNNDistance
from benchmarks.methods._knn_vote import KNNVote
from benchmarks.methods._logits import Energy, MaxLogit
from benchmarks.methods._nn_guide import NNGuide
from benchmarks.methods._relative_mahalanobis import RelativeMahalanobis
from benchmarks.methods._tuned import Tuned

__all__ = [
    "Energy",
    "GeneralizedEntropy",
    "KNNDistance",
    "KNNVote",
    "Margin",
    "MaxLogit",
    "NNGuide",
    "NegativeEntropy",
    "RelativeMahalanobis",
    "Tuned",
]
