"""Candidates for neighbors among the rows of one class, from an index of faiss: a graph (HNSW) or lists (IVF).

An index is built on one thread, row by row in a given order, so that the same rows give the same index, and a query
gets the same candidates whichever others are asked with it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from neighboragg._optional import import_extra
from neighboragg._typing import FloatArray, IntArray
from neighboragg.exceptions import MissingExtraError
from neighboragg.neighbors._exact_search import exact_search
from neighboragg.neighbors._reference import Reference

__all__ = ["INDEXES", "Graph", "Index", "Lists", "has_faiss", "import_faiss"]

LINKS, BUILDING_BREADTH = 16, 64
TRAINING_ROWS, TRAINING_ROUNDS = 40, 8  # rows for each center of a list, and rounds of k-means


def import_faiss(owner: str) -> Any:
    """The library, or an error that says how to get it."""
    return import_extra("faiss", extra="approximate", purpose=f"An approximate 'algorithm' of {owner}")


def has_faiss() -> bool:
    """Whether the library can be imported."""
    try:
        import_faiss("")
    except MissingExtraError:
        return False
    return True


class Index(Protocol):
    """Rows of one class, in single precision, that candidates are found among; its rows are numbered as added."""

    largest_breadth: int

    def first_breadth(self, width: int) -> int:
        """The narrowest search for so many candidates."""

    def add(self, rows: FloatArray) -> None:
        """Add rows after those it was built of."""

    def candidates(self, queries: FloatArray, width: int, breadth: int) -> IntArray:
        """Numbers of about the nearest rows, (n, width), in any order; -1 where there were no more."""


class Graph:
    """Every row is linked to near ones, and a search follows links: hierarchical navigable small worlds.

    Its breadth is `efSearch`, the number of rows from which links are followed.
    """

    def __init__(self, faiss: Any, rows: FloatArray) -> None:
        self._faiss = faiss
        self._index = faiss.IndexHNSWFlat(rows.shape[1], LINKS)
        self._index.hnsw.efConstruction = BUILDING_BREADTH
        self.largest_breadth = max(1, len(rows) // 8)
        self.add(rows)

    def first_breadth(self, width: int) -> int:
        return width

    def add(self, rows: FloatArray) -> None:
        with _one_thread(self._faiss):
            self._index.add(rows)

    def candidates(self, queries: FloatArray, width: int, breadth: int) -> IntArray:
        how = self._faiss.SearchParametersHNSW(efSearch=breadth)
        with _one_thread(self._faiss):
            return np.asarray(self._index.search(queries, width, params=how)[1])


class Lists:
    """Every row is in the list of its nearest center, and a search reads the lists of the centers nearest to it.

    Its breadth is `nprobe`, the number of lists. Which ones is found by our own search: that of faiss rounds in one way
    for few queries and in another for many.
    """

    def __init__(self, faiss: Any, rows: FloatArray) -> None:
        self._faiss = faiss
        n_lists = max(1, int(2 * np.sqrt(len(rows))))
        self._quantizer = faiss.IndexFlatL2(rows.shape[1])
        self._index = faiss.IndexIVFFlat(self._quantizer, rows.shape[1], n_lists)
        training = self._index.cp
        training.niter, training.max_points_per_centroid, training.min_points_per_centroid = (
            TRAINING_ROUNDS,
            TRAINING_ROWS,
            1,
        )
        self.largest_breadth = max(1, n_lists // 2)
        with _one_thread(faiss):
            self._index.train(rows)
        self.add(rows)
        centers = self._quantizer.reconstruct_n(0, n_lists)
        self._centers = Reference(centers, np.zeros(n_lists, dtype=np.int64), 1)

    def first_breadth(self, width: int) -> int:
        return 1

    def add(self, rows: FloatArray) -> None:
        with _one_thread(self._faiss):
            self._index.add(rows)

    def candidates(self, queries: FloatArray, width: int, breadth: int) -> IntArray:
        distances, lists = self._nearest_lists(queries, breadth)
        # Not by parameters of the search, which this one does not take; threads of ours all set the same.
        self._index.nprobe = breadth
        with _one_thread(self._faiss):
            # It takes the distances of the centers for other kinds of lists than these.
            found = self._index.search_preassigned(queries, width, lists, distances.astype(np.float32))
        return np.asarray(found[1])

    def n_read(self, queries: FloatArray, breadth: int) -> float:
        """Rows that the lists of a query hold, on average."""
        sizes = np.array([self._index.invlists.list_size(i) for i in range(self._index.nlist)])
        return float(sizes[self._nearest_lists(queries, breadth)[1]].sum(axis=1).mean())

    @property
    def n_lists(self) -> int:
        """Lists, and so centers."""
        return int(self._index.nlist)

    def _nearest_lists(self, queries: FloatArray, breadth: int) -> tuple[FloatArray, IntArray]:
        distances, lists = exact_search(self._centers, queries, breadth)
        return distances[:, 0], lists[:, 0]


INDEXES: dict[str, Callable[[Any, FloatArray], Index]] = {"hnsw": Graph, "ivf": Lists}


@contextmanager
def _one_thread(faiss: Any) -> Iterator[None]:
    """No threads of faiss's own; OpenMP counts them for each thread of ours apart."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
