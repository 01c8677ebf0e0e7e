"""From vectors to class-wise neighbors: exact, streamed or approximate."""

from neighboragg._core.packages import publish as _publish
from neighboragg.search._blocks import ArrayBlocks as ArrayBlocks
from neighboragg.search._blocks import Blocks as Blocks
from neighboragg.search._blocks import map_rows as map_rows
from neighboragg.search._blocks import open_rows as open_rows
from neighboragg.search._in_memory import ClasswiseNeighbors
from neighboragg.search._in_memory import dense_rows as dense_rows
from neighboragg.search._index import Approximate, Exact, Streamed
from neighboragg.search._index import check_search as check_search
from neighboragg.search._kernel import kernel_in_use as kernel_in_use
from neighboragg.search._learned_metric import learn_metric as learn_metric
from neighboragg.search._streamed import Sample as Sample
from neighboragg.search._streamed import StreamedNeighbors as StreamedNeighbors
from neighboragg.search._streamed import StreamedRows as StreamedRows
from neighboragg.search._streamed import index_for as index_for
from neighboragg.search._streamed import sample_of as sample_of
from neighboragg.search._streamed import stream_rows as stream_rows

__all__ = ["Approximate", "ClasswiseNeighbors", "Exact", "Streamed"]

_publish(globals())
