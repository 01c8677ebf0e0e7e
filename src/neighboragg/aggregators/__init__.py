"""Aggregators: evidence about each class in, trust vector out."""

from neighboragg._public import publish as _publish
from neighboragg.aggregators._base import Aggregator, softmax
from neighboragg.aggregators._distance_scale import (
    DistanceScale,
    log_evidence,
    nearest_distance,
    usual_counts,
)
from neighboragg.aggregators._evidence import Evidence, Opinion, laplacian_similarity
from neighboragg.aggregators._network import NetworkAggregator, gcn_weights
from neighboragg.aggregators._pool_aggregator import PoolAggregator
from neighboragg.aggregators._pool_weights import centered, pool_weights

__all__ = [
    "Aggregator",
    "DistanceScale",
    "Evidence",
    "NetworkAggregator",
    "Opinion",
    "PoolAggregator",
    "centered",
    "gcn_weights",
    "laplacian_similarity",
    "log_evidence",
    "nearest_distance",
    "pool_weights",
    "softmax",
    "usual_counts",
]

_publish(globals())
