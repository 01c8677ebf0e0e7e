"""Class-wise neighbors: exact search, in memory and in blocks; the learned metric, the density filter."""

from neighboragg._public import publish as _publish
from neighboragg.neighbors._blocks import (
    ArrayBlocks,
    Blocks,
    ChainedBlocks,
    LinearBlocks,
    Search,
    as_blocks,
    gather,
    map_rows,
)
from neighboragg.neighbors._classwise import ClasswiseNeighbors
from neighboragg.neighbors._density import dense_rows
from neighboragg.neighbors._kernel import Kernel, kernel_in_use
from neighboragg.neighbors._learned_metric import default_rank, learn_metric
from neighboragg.neighbors._streamed import StreamedNeighbors, merge_nearest

__all__ = [
    "ArrayBlocks",
    "Blocks",
    "ChainedBlocks",
    "ClasswiseNeighbors",
    "Kernel",
    "LinearBlocks",
    "Search",
    "StreamedNeighbors",
    "as_blocks",
    "default_rank",
    "dense_rows",
    "gather",
    "kernel_in_use",
    "learn_metric",
    "map_rows",
    "merge_nearest",
]

_publish(globals())
