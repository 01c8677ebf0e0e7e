"""Class-wise neighbors: exact search, the learned metric, the density filter."""

from neighboragg._public import publish as _publish
from neighboragg.neighbors._classwise import ClasswiseNeighbors
from neighboragg.neighbors._density import dense_rows
from neighboragg.neighbors._learned_metric import default_rank, learn_metric

__all__ = ["ClasswiseNeighbors", "default_rank", "dense_rows", "learn_metric"]

_publish(globals())
