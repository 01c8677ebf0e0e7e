"""The exact search of this machine on one thread: the compiled one, or NumPy's."""

import numpy as np

from neighboragg._threads import ONE_THREAD
from neighboragg._typing import FloatArray, IntArray
from neighboragg.neighbors._kernel import can_search, kernel_in_use, search_compiled
from neighboragg.neighbors._numpy_search import search_with_numpy
from neighboragg.neighbors._reference import Reference

__all__ = ["exact_search"]


def exact_search(
    reference: Reference, rows: FloatArray, k: int, hidden: IntArray | None = None
) -> tuple[FloatArray, IntArray]:
    """Distances and ids, each (n, C, k), of the nearest rows of each class by (distance, id).

    `hidden` holds the position of the reference row that each query must not find, -1 for none.
    """
    shape = (len(rows), len(reference.sizes), k)
    distances, ids = np.full(shape, np.inf), np.full(shape, -1, dtype=np.int64)
    if not len(reference.rows):
        return distances, ids
    library = kernel_in_use().library if can_search(reference, k) else None
    if library is not None:
        search_compiled(library, reference, rows, hidden, distances, ids)
    else:
        with ONE_THREAD:
            search_with_numpy(reference, rows, hidden, distances, ids)
    return distances, ids
