"""Approximate nearest rows in every class: indexes propose, distances are those of the exact search.

Every class that is large enough has an index. How widely it must be searched is found out on queries that it was not
built of, whose neighbors are known from the exact search. A class whose index does not reach the recall that was asked
for is searched exactly.
"""

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from neighboragg._typing import Array, FloatArray, IntArray
from neighboragg.exceptions import RecallWarning
from neighboragg.neighbors._class_index import ClassIndex, Tuning
from neighboragg.neighbors._exact_search import exact_search
from neighboragg.neighbors._faiss_index import INDEXES, has_faiss, import_faiss
from neighboragg.neighbors._reference import Reference
from neighboragg.persistence import Stored, require

__all__ = [
    "ALGORITHMS",
    "EXACT",
    "LARGEST_RECALL",
    "ApproximateSearch",
    "Approximation",
    "approximate",
    "search_for",
]

AUTO, EXACT = "auto", "exact"
ALGORITHMS = (AUTO, EXACT, *sorted(INDEXES))
SMALLEST_CLASS = 4096  # rows; fewer are searched exactly before an index has been entered
SMALLEST_AUTO = 100_000  # rows of a class that "auto" builds lists for, to see whether they are worth it
ROWS_PER_NEIGHBOR = 32  # in a class with an index, at least
TUNING_QUERIES = 1000  # and at most a tenth of the rows
LARGEST_RECALL = 0.995  # little more can be shown by so many queries, were all neighbors found
TUNING_SEED = 0


@dataclass(frozen=True, eq=False)
class Approximation(Stored):
    """How each class is searched, and what share of its nearest rows is found so.

    Parameters
    ----------
    n_neighbors : int
        Neighbors that the recall is of.
    algorithm : ndarray of str of shape (n_classes,)
        "exact", "hnsw" or "ivf".
    breadth : ndarray of int of shape (n_classes,)
        How widely an index is searched; 0 where there is none.
    recall : ndarray of shape (n_classes,)
        Estimate; 1 where the search is exact.
    interval : ndarray of shape (n_classes, 2)
        Its limits at a confidence level of 95%.
    """

    n_neighbors: int
    algorithm: Array
    breadth: IntArray
    recall: FloatArray
    interval: FloatArray

    @classmethod
    def of(cls, n_classes: int, n_neighbors: int, kind: str, tuned: dict[int, Tuning]) -> "Approximation":
        """Some classes with an index of a kind; the others are searched exactly."""
        algorithm = np.where(np.isin(np.arange(n_classes), list(tuned)), kind, EXACT)
        breadth, recall = np.zeros(n_classes, dtype=np.int64), np.ones(n_classes)
        interval = np.ones((n_classes, 2))
        for c, tuning in tuned.items():
            breadth[c], recall[c], interval[c] = tuning
        return cls(n_neighbors, algorithm, breadth, recall, interval)

    @cached_property
    def is_exact(self) -> bool:
        """Whether no class has an index."""
        return bool((self.algorithm == EXACT).all())

    def runs(self) -> Iterator[tuple[int, int]]:
        """Consecutive classes that are searched together: those without an index, and each other one alone."""
        first = 0
        for c in range(1, len(self.algorithm) + 1):
            if c == len(self.algorithm) or not (self.algorithm[c - 1 : c + 1] == EXACT).all():
                yield first, c
                first = c

    def check_sizes(self, sizes: IntArray) -> None:
        """Refuse a file whose classes are not of the sizes that have an index."""
        require(len(self.algorithm) == len(sizes), "an index has other classes than rows")
        chosen = self.algorithm != EXACT
        require((sizes[chosen] > self.n_neighbors).all(), "an index has too few rows to search")
        require((self.breadth <= sizes).all(), "an index is searched more widely than it is large")

    def _after_load(self) -> None:
        n, used = len(self.algorithm), set(self.algorithm.tolist()) - {EXACT}
        require(self.algorithm.ndim == 1 and used <= set(INDEXES), "an index has an unknown algorithm")
        require(len(used) <= 1, "an index has several algorithms")
        require(
            self.breadth.shape == (n,)
            and self.breadth.dtype.kind == "i"
            and ((self.breadth > 0) == (self.algorithm != EXACT)).all(),
            "an index does not say how widely to search",
        )
        require(self.recall.shape == (n,) and self.interval.shape == (n, 2), "an index has no recall")
        require(isinstance(self.n_neighbors, int) and self.n_neighbors > 0, "an index has no neighbors")


class ApproximateSearch:
    """The reference rows with the indexes of their classes, ready to be searched.

    Parameters
    ----------
    reference : Reference
    approximation : Approximation
    indexes : dict of int to ClassIndex
        By class.
    """

    def __init__(
        self, reference: Reference, approximation: Approximation, indexes: dict[int, ClassIndex]
    ) -> None:
        self._n_neighbors, self._breadth = approximation.n_neighbors, approximation.breadth
        self._parts = [
            (first, stop, *reference.classes(first, stop), indexes.get(first))
            for first, stop in approximation.runs()
        ]

    def __call__(
        self, rows: FloatArray, hidden: IntArray | None, distances: FloatArray, ids: IntArray
    ) -> None:
        """Fill `distances` and `ids`, each (n, C, K), with about the nearest rows of each class by (distance, id).

        `hidden` holds the position of the reference row that each query must not find, -1 for none.
        """
        k = distances.shape[2]
        for first, stop, part, low, index in self._parts:
            own = None
            if hidden is not None:
                own = np.where((hidden >= low) & (hidden < low + len(part.rows)), hidden - low, -1)
            if index is None:
                distances[:, first:stop], ids[:, first:stop] = exact_search(part, rows, k, own)
            else:
                distances[:, first], ids[:, first] = self._from_index(
                    part, index, int(self._breadth[first]), rows, k, own
                )

    def _from_index(
        self,
        part: Reference,
        index: ClassIndex,
        breadth: int,
        rows: FloatArray,
        k: int,
        hidden: IntArray | None,
    ) -> tuple[FloatArray, IntArray]:
        start = int(part.starts[0])
        own = None if hidden is None else hidden - start
        distances, places = index.nearest(rows, k, self._n_neighbors, own, breadth)
        ids = np.where(places < 0, -1, part.ids[start + places])
        # An index may end before there are enough; a class with one has more rows than that.
        lacking = np.flatnonzero(places[:, -1] < 0)
        if len(lacking):
            own = None if hidden is None else hidden[lacking]
            nearest, found = exact_search(part, rows[lacking], k, own)
            distances[lacking], ids[lacking] = nearest[:, 0], found[:, 0]
        return distances, ids


# Indexes live as long as the rows they are of. They are not saved: faiss trusts the files it reads.
_searches: "WeakKeyDictionary[Reference, ApproximateSearch]" = WeakKeyDictionary()
_building = Lock()


def approximate(
    reference: Reference,
    *,
    algorithm: str,
    recall: float,
    n_neighbors: int,
    classes: Array,
    n_threads: int,
    owner: str,
) -> Approximation:
    """Build an index for each class that is large enough, and find out how widely it must be searched.

    Parameters
    ----------
    reference : Reference
    algorithm : {"auto", "exact", "hnsw", "ivf"}
    recall : float
        Share of the nearest rows to be found.
    n_neighbors : int
    classes : ndarray of shape (n_classes,)
        Labels, for a warning.
    n_threads : int
        Indexes that are built at a time.
    owner : str
        For errors and warnings.
    """
    n_classes, kind = len(reference.sizes), "ivf" if algorithm == AUTO else algorithm
    nothing = Approximation.of(n_classes, n_neighbors, EXACT, {})
    if algorithm == EXACT:
        return nothing
    least = max(SMALLEST_AUTO if algorithm == AUTO else SMALLEST_CLASS, ROWS_PER_NEIGHBOR * n_neighbors)
    large = np.flatnonzero(reference.sizes >= least).tolist()
    if algorithm == AUTO and (not large or not has_faiss()):
        return nothing
    queries = reference.rows[_held_apart(reference)]
    indexes = _build(reference, kind, large, n_threads, owner)
    with ThreadPoolExecutor(n_threads) as pool:
        tunings = pool.map(
            lambda c: indexes[c].tune(queries, n_neighbors, recall, cheaply=algorithm == AUTO), large
        )
        tuned = dict(zip(large, tunings, strict=True))
    missed = [c for c in large if tuned[c].interval[0] < recall]
    for c in large:
        worthwhile = algorithm != AUTO or indexes[c].is_clearly_cheaper(queries, tuned[c].breadth)
        if c in missed or not worthwhile:
            del indexes[c]
    if missed and algorithm != AUTO:
        _warn(kind, recall, classes[missed], tuned[missed[0]], owner)
    if not indexes:
        return nothing
    result = Approximation.of(n_classes, n_neighbors, kind, {c: tuned[c] for c in indexes})
    _keep(reference, result, indexes)
    return result


def search_for(
    reference: Reference, approximation: Approximation, n_threads: int, owner: str
) -> ApproximateSearch:
    """The search of reference rows; indexes that are no longer there, after a model was loaded, are built again."""
    with _building:
        if reference not in _searches:
            chosen = np.flatnonzero(approximation.algorithm != EXACT).tolist()
            kind = str(approximation.algorithm[chosen[0]])
            _keep(reference, approximation, _build(reference, kind, chosen, n_threads, owner))
        return _searches[reference]


def _keep(reference: Reference, approximation: Approximation, indexes: dict[int, ClassIndex]) -> None:
    for index in indexes.values():
        index.complete()
    _searches[reference] = ApproximateSearch(reference, approximation, indexes)


def _build(
    reference: Reference, kind: str, chosen: list[int], n_threads: int, owner: str
) -> dict[int, ClassIndex]:
    """Indexes of some classes, each on one thread, without the rows that tuning takes for queries."""
    faiss, held = import_faiss(owner), _held_apart(reference)
    with ThreadPoolExecutor(n_threads) as pool:
        built = pool.map(lambda c: ClassIndex(faiss, kind, reference, c, held), chosen)
        return dict(zip(chosen, built, strict=True))


def _held_apart(reference: Reference) -> IntArray:
    """Positions of the rows that tuning takes for queries; they depend on the number of rows alone."""
    n = len(reference.rows)
    drawn = np.random.default_rng(TUNING_SEED).choice(n, min(TUNING_QUERIES, -(-n // 10)), replace=False)
    return np.sort(drawn)


def _warn(kind: str, recall: float, missed: Array, tuning: Tuning, owner: str) -> None:
    first, n_others = missed.tolist()[0], len(missed) - 1
    others = f" and {n_others} other class{'es' * (n_others > 1)}" if n_others else ""
    warnings.warn(
        f"The {kind!r} index of {owner} does not reach the recall {recall:g} in class {first!r}{others}: "
        f"{tuning.recall:.4f} at its widest, with a lower confidence limit of {tuning.interval[0]:.4f}. "
        "The search is exact there.\nHint: another algorithm, or a lower recall.",
        RecallWarning,
        stacklevel=5,
    )
