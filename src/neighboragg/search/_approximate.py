"""Approximate search with faiss, tuned to a recall measured on held-out rows."""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg._store.objects import Stored, require
from neighboragg.exceptions import MissingExtraError, RecallWarning
from neighboragg.search._exact_search import exact_search, refine
from neighboragg.search._index import recall_interval, shares_found
from neighboragg.search._reference import Reference, to_single

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
    """Every row is linked to near ones, and a search follows links: hierarchical navigable small worlds."""

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
    """Every row is in the list of its nearest center, and a search reads the lists of the centers nearest to it."""

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
    """The rows of one class in an index of faiss."""

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
        """Search ever more widely until the recall is surely reached, or as widely as may be."""
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
        """Distances and positions in the class of about the k nearest rows; (inf, -1) where too few were found."""
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
    """How each class is searched, and what share of its nearest rows is found so."""

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
    """The reference rows with the indexes of their classes, ready to be searched."""

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
        """Fill `distances` and `ids`, each (n, C, K), with about the nearest rows of each class by (distance, id)."""
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
    """Build an index for each class that is large enough, and find out how widely it must be searched."""
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
