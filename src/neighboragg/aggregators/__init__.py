"""Aggregators: evidence about each class in, trust vector out."""

from neighboragg._public import publish as _publish
from neighboragg.aggregators._base import Aggregator
from neighboragg.aggregators._evidence import Evidence, Opinion, laplacian_similarity, log_evidence
from neighboragg.aggregators._network import NetworkAggregator, gcn_weights
from neighboragg.aggregators._pool import PoolAggregator

__all__ = [
    "Aggregator",
    "Evidence",
    "NetworkAggregator",
    "Opinion",
    "PoolAggregator",
    "gcn_weights",
    "laplacian_similarity",
    "log_evidence",
]

_publish(globals())
