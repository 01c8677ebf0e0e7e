"""An index of the rows of one class: built without some of them, tuned on queries it has not seen, then completed."""

from typing import Any, NamedTuple

import numpy as np

from neighboragg._typing import FloatArray, IntArray
from neighboragg.neighbors._exact_search import exact_search
from neighboragg.neighbors._faiss_index import INDEXES, Lists
from neighboragg.neighbors._numpy_search import refine
from neighboragg.neighbors._recall import recall_interval, shares_found
from neighboragg.neighbors._reference import Reference, to_single

__all__ = ["ClassIndex", "Tuning"]

MORE_CANDIDATES = 4  # than neighbors: single precision may have the last ones in another order
# A row that is read from a list takes as long as ten of the exact search, which reads them in blocks for many queries
# at a time: 8 to 13 in measurements with 8 to 512 features.
READING_COST = 10.0
CLEARLY = 2.0  # times as fast, to be worth an index


class Tuning(NamedTuple):
    """How widely an index is searched, the share of neighbors that this finds, and its confidence limits."""

    breadth: int
    recall: float
    interval: tuple[float, float]


class ClassIndex:
    """The rows of one class in an index of faiss.

    Parameters
    ----------
    faiss : module
    kind : {"hnsw", "ivf"}
    reference : Reference
        The rows of all classes.
    code : int
        Which class it is of.
    held : ndarray of int
        Positions in the reference rows that the index is built without, until :meth:`complete` adds them.
    """

    def __init__(self, faiss: Any, kind: str, reference: Reference, code: int, held: IntArray) -> None:
        low, high = int(reference.starts[code]), int(reference.starts[code + 1])
        self._frame, self._rows = reference.frame, reference.rows[low:high]
        own = held[(held >= low) & (held < high)] - low
        self._n_held = len(own)
        # Rows of the index by number: those it was built of, then those held apart.
        self._places = np.concatenate([np.setdiff1d(np.arange(high - low), own), own])
        self._index = INDEXES[kind](faiss, self._single(self._rows[self._built_of]))

    @property
    def _built_of(self) -> IntArray:
        return self._places[: len(self._places) - self._n_held]

    def complete(self) -> None:
        """Add the rows that were held apart."""
        if self._n_held:
            self._index.add(self._single(self._rows[self._places[-self._n_held :]]))

    def tune(self, queries: FloatArray, k: int, recall: float, *, cheaply: bool) -> Tuning:
        """Search ever more widely until the recall is surely reached, or as widely as may be.

        Parameters
        ----------
        queries : ndarray of shape (n, n_features)
            Rows that the index was not built of.
        k : int
        recall : float
            Reached if the lower confidence limit is.
        cheaply : bool
            Only as widely as may take less than half the time of the exact search.
        """
        rows = self._rows[self._built_of]
        exact = exact_search(Reference(rows, np.zeros(len(rows), dtype=np.int64), 1), queries, k)[0][:, 0]
        most = self._index.largest_breadth
        if cheaply:
            most = max(1, min(most, self._cheap_breadth()))
        breadth = min(self._index.first_breadth(k + MORE_CANDIDATES), most)
        while True:
            shares = shares_found(self.nearest(queries, k, k, None, breadth)[0], exact)
            interval = recall_interval(shares)
            if interval[0] >= recall or breadth == most:
                return Tuning(breadth, float(shares.mean()), interval)
            breadth = min(breadth + -(-breadth // 2), most)

    def nearest(
        self, queries: FloatArray, k: int, n_neighbors: int, hidden: IntArray | None, breadth: int
    ) -> tuple[FloatArray, IntArray]:
        """Distances and positions in the class of about the k nearest rows; (inf, -1) where too few were found.

        `n_neighbors` is the number that the breadth was found for.
        """
        found = self._index.candidates(self._single(queries), n_neighbors + MORE_CANDIDATES, breadth)
        places = np.where(found < 0, -1, self._places[found])
        return refine(self._rows, places, queries, k, hidden)

    def is_clearly_cheaper(self, queries: FloatArray, breadth: int) -> bool:
        """Whether a search of the lists takes less than half as long as the exact one, by the rows they read."""
        if not isinstance(self._index, Lists):
            return False
        # More than on average, as lists that are read often are long.
        n_read = self._index.n_read(self._single(queries), breadth)
        return CLEARLY * (self._index.n_lists + READING_COST * n_read) < len(self._rows)

    def _cheap_breadth(self) -> int:
        """The number of lists beyond which a search is not clearly cheaper, if all are of the same length."""
        if not isinstance(self._index, Lists):
            return 0
        n, n_lists = len(self._rows), self._index.n_lists
        return int((n / CLEARLY - n_lists) / READING_COST * n_lists / n)

    def _single(self, rows: FloatArray) -> FloatArray:
        return np.ascontiguousarray(to_single(self._frame.scaled(rows)))
