"""Approximate search with inverted lists of faiss, tuned to a recall that is measured on held-out rows."""

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, BoolArray, FloatArray, IntArray
from neighboragg._store.objects import Stored
from neighboragg.exceptions import MissingExtraError, TrustWarning
from neighboragg.search._exact_search import exact_search, refine
from neighboragg.search._index import Approximate, recall_interval, shares_found
from neighboragg.search._reference import Reference, to_single

TRAINING_ROWS, TRAINING_ROUNDS = 40, 8  # rows per list center, and iterations of k-means
MORE_CANDIDATES = (
    4  # candidates beyond k, because single precision may change the order of the last neighbors
)
# Reading a row from a list costs as much as ten rows of the exact search, which reads blocks for many queries at once:
# 8 to 13 in measurements with 8 to 512 features.
READING_COST = 10.0
CLEARLY = 2.0  # an index must be this many times as fast as the exact search
SMALLEST_CLASS = 4096  # rows; in smaller classes the exact search is always faster
SMALLEST_WORTHWHILE = 100_000  # rows; only in larger classes lists are built to measure whether they pay off
ROWS_PER_NEIGHBOR = 32  # minimum in a class with lists
TUNING_QUERIES = 1000  # but at most a tenth of the rows
TUNING_SEED = 0


def import_faiss(owner: str) -> Any:
    """Import faiss, or raise an error that tells how to install it."""
    return import_extra("faiss", extra="approximate", purpose=f"The approximate search of {owner}")


def has_faiss() -> bool:
    """Whether faiss can be imported."""
    try:
        import_faiss("")
    except MissingExtraError:
        return False
    return True


@contextmanager
def _one_thread(faiss: Any) -> Iterator[None]:
    """Limit faiss to one thread; OpenMP stores this limit for each calling thread."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


class Lists:
    """Inverted lists: each row is in the list of its nearest center, and a query reads the lists of nearby centers."""

    def __init__(self, faiss: Any, rows: FloatArray) -> None:
        self._faiss = faiss
        self.n_lists = max(1, int(2 * np.sqrt(len(rows))))
        quantizer = faiss.IndexFlatL2(rows.shape[1])
        self._index = faiss.IndexIVFFlat(quantizer, rows.shape[1], self.n_lists)
        training = self._index.cp
        training.niter, training.max_points_per_centroid, training.min_points_per_centroid = (
            TRAINING_ROUNDS,
            TRAINING_ROWS,
            1,
        )
        with _one_thread(faiss):
            self._index.train(rows)
        self.add(rows)
        self._quantizer = quantizer  # the index does not keep it alive
        centers = quantizer.reconstruct_n(0, self.n_lists)
        self._centers = Reference(centers, np.zeros(self.n_lists, dtype=np.int64), 1)

    def add(self, rows: FloatArray) -> None:
        """Append rows to the lists."""
        with _one_thread(self._faiss):
            self._index.add(rows)

    def candidates(self, queries: FloatArray, width: int, n_read: int) -> IntArray:
        """Numbers of approximately nearest rows, (n, width), in any order; -1 marks missing ones."""
        distances, lists = self._nearest_lists(queries, n_read)
        # search_preassigned does not accept search parameters; all our threads set the same value.
        self._index.nprobe = n_read
        with _one_thread(self._faiss):
            # Lists of this kind do not use the distances of the centers.
            found = self._index.search_preassigned(queries, width, lists, distances.astype(np.float32))
        return np.asarray(found[1])

    def rows_read(self, queries: FloatArray, n_read: int) -> float:
        """Average number of rows that a query reads."""
        sizes = np.array([self._index.invlists.list_size(i) for i in range(self.n_lists)])
        return float(sizes[self._nearest_lists(queries, n_read)[1]].sum(axis=1).mean())

    def _nearest_lists(self, queries: FloatArray, n_read: int) -> tuple[FloatArray, IntArray]:
        distances, lists = exact_search(self._centers, queries, n_read)
        return distances[:, 0], lists[:, 0]


class Tuning(NamedTuple):
    """Number of lists to read, the recall that this reaches, and its confidence limits."""

    n_read: int
    recall: float
    interval: tuple[float, float]


class ClassIndex:
    """The rows of one class in lists."""

    def __init__(self, faiss: Any, reference: Reference, code: int, held: IntArray) -> None:
        low, high = int(reference.starts[code]), int(reference.starts[code + 1])
        self._normalization, self._rows = reference.normalization, reference.rows[low:high]
        own = held[(held >= low) & (held < high)] - low
        self._n_held = len(own)
        # Position of each row of the lists: first the rows they were built from, then the held-out rows.
        self._places = np.concatenate([np.setdiff1d(np.arange(high - low), own), own])
        self._lists = Lists(faiss, self._single(self._rows[self._built_of]))

    @property
    def _built_of(self) -> IntArray:
        return self._places[: len(self._places) - self._n_held]

    def complete(self) -> None:
        """Add the held-out rows."""
        if self._n_held:
            self._lists.add(self._single(self._rows[self._places[-self._n_held :]]))

    def tune(self, queries: FloatArray, k: int, recall: float, *, cheaply: bool) -> Tuning:
        """Increase the number of lists until the lower confidence limit reaches the recall, or up to the maximum."""
        rows = self._rows[self._built_of]
        exact = exact_search(Reference(rows, np.zeros(len(rows), dtype=np.int64), 1), queries, k)[0][:, 0]
        most = max(1, self._lists.n_lists // 2)
        if cheaply:
            most = max(1, min(most, self._cheap_lists()))
        n_read = 1
        while True:
            shares = shares_found(self.nearest(queries, k, k, None, n_read)[0], exact)
            interval = recall_interval(shares)
            if interval[0] >= recall or n_read == most:
                return Tuning(n_read, float(shares.mean()), interval)
            n_read = min(n_read + -(-n_read // 2), most)

    def nearest(
        self, queries: FloatArray, k: int, n_neighbors: int, hidden: IntArray | None, n_read: int
    ) -> tuple[FloatArray, IntArray]:
        """Distances and positions of approximately the k nearest rows of the class; (inf, -1) for missing ones."""
        found = self._lists.candidates(self._single(queries), n_neighbors + MORE_CANDIDATES, n_read)
        places = np.where(found < 0, -1, self._places[found])
        return refine(self._rows, places, queries, k, hidden)

    def is_clearly_cheaper(self, queries: FloatArray, n_read: int) -> bool:
        """Whether searching the lists takes less than half as long as the exact search, judging by the rows read."""
        # Measured on queries, because long lists are read more often than average.
        rows_read = self._lists.rows_read(self._single(queries), n_read)
        return CLEARLY * (self._lists.n_lists + READING_COST * rows_read) < len(self._rows)

    def _cheap_lists(self) -> int:
        """The largest number of lists that is clearly cheaper than the exact search, if all lists are equally long."""
        n, n_lists = len(self._rows), self._lists.n_lists
        return int((n / CLEARLY - n_lists) / READING_COST * n_lists / n)

    def _single(self, rows: FloatArray) -> FloatArray:
        return np.ascontiguousarray(to_single(self._normalization.scaled(rows)))


@dataclass(frozen=True, eq=False)
class Approximation(Stored):
    """Number of lists to read in each class (0 for an exact search), and the measured recall."""

    n_neighbors: int
    n_read: IntArray
    recall: FloatArray
    interval: FloatArray

    @classmethod
    def of(cls, n_classes: int, n_neighbors: int, tuned: dict[int, Tuning]) -> "Approximation":
        """Combine the tuned classes; the others are searched exactly."""
        n_read, recall = np.zeros(n_classes, dtype=np.int64), np.ones(n_classes)
        interval = np.ones((n_classes, 2))
        for c, tuning in tuned.items():
            n_read[c], recall[c], interval[c] = tuning
        return cls(n_neighbors, n_read, recall, interval)

    @property
    def has_lists(self) -> BoolArray:
        """Mask of the classes that are searched with lists."""
        return self.n_read > 0

    @cached_property
    def is_exact(self) -> bool:
        """Whether all classes are searched exactly."""
        return not self.has_lists.any()

    def runs(self) -> Iterator[tuple[int, int]]:
        """Ranges of classes to search together: runs of classes without lists, and each class with lists alone."""
        first, alone = 0, self.has_lists
        for c in range(1, len(alone) + 1):
            if c == len(alone) or alone[c - 1 : c + 1].any():
                yield first, c
                first = c


class ApproximateSearch:
    """A search of reference rows that combines lists and exact classes."""

    def __init__(
        self, reference: Reference, approximation: Approximation, indexes: dict[int, ClassIndex]
    ) -> None:
        self._n_neighbors, self._n_read = approximation.n_neighbors, approximation.n_read
        self._parts = [
            (first, stop, *reference.classes(first, stop), indexes.get(first))
            for first, stop in approximation.runs()
        ]

    def __call__(
        self, rows: FloatArray, hidden: IntArray | None, distances: FloatArray, ids: IntArray
    ) -> None:
        """Fill `distances` and `ids`, each (n, C, K), with approximately the nearest rows of each class."""
        k = distances.shape[2]
        for first, stop, part, low, index in self._parts:
            own = None
            if hidden is not None:
                own = np.where((hidden >= low) & (hidden < low + len(part.rows)), hidden - low, -1)
            if index is None:
                distances[:, first:stop], ids[:, first:stop] = exact_search(part, rows, k, own)
            else:
                distances[:, first], ids[:, first] = self._from_lists(
                    part, index, int(self._n_read[first]), rows, k, own
                )

    def _from_lists(
        self,
        part: Reference,
        index: ClassIndex,
        n_read: int,
        rows: FloatArray,
        k: int,
        hidden: IntArray | None,
    ) -> tuple[FloatArray, IntArray]:
        start = int(part.starts[0])
        own = None if hidden is None else hidden - start
        distances, places = index.nearest(rows, k, self._n_neighbors, own, n_read)
        ids = np.where(places < 0, -1, part.ids[start + places])
        # The lists read may contain fewer than k rows, although the class has more.
        lacking = np.flatnonzero(places[:, -1] < 0)
        if len(lacking):
            own = None if hidden is None else hidden[lacking]
            nearest, found = exact_search(part, rows[lacking], k, own)
            distances[lacking], ids[lacking] = nearest[:, 0], found[:, 0]
        return distances, ids


# Lists live as long as their rows. They are never saved, because faiss does not validate the files it reads.
_searches: "WeakKeyDictionary[Reference, ApproximateSearch]" = WeakKeyDictionary()
_building = Lock()


def approximate(
    reference: Reference,
    search: Approximate | None,
    *,
    n_neighbors: int,
    classes: Array,
    n_threads: int,
    owner: str,
) -> Approximation:
    """Build lists for each class that is large enough, and tune how many of them to read."""
    nothing = Approximation.of(len(reference.sizes), n_neighbors, {})
    if search is None:
        return nothing
    least = max(SMALLEST_CLASS if search.always else SMALLEST_WORTHWHILE, ROWS_PER_NEIGHBOR * n_neighbors)
    large = np.flatnonzero(reference.sizes >= least).tolist()
    if not search.always and (not large or not has_faiss()):
        return nothing
    queries = reference.rows[_held_apart(reference)]
    indexes = _build(reference, large, n_threads, owner)
    with ThreadPoolExecutor(n_threads) as pool:
        tunings = pool.map(
            lambda c: indexes[c].tune(queries, n_neighbors, search.recall, cheaply=not search.always), large
        )
        tuned = dict(zip(large, tunings, strict=True))
    missed = [c for c in large if tuned[c].interval[0] < search.recall]
    for c in large:
        worthwhile = search.always or indexes[c].is_clearly_cheaper(queries, tuned[c].n_read)
        if c in missed or not worthwhile:
            del indexes[c]
    if missed and search.always:
        _warn(search.recall, classes[missed], tuned[missed[0]], owner)
    if not indexes:
        return nothing
    result = Approximation.of(len(reference.sizes), n_neighbors, {c: tuned[c] for c in indexes})
    _keep(reference, result, indexes)
    return result


def search_for(
    reference: Reference, approximation: Approximation, n_threads: int, owner: str
) -> ApproximateSearch:
    """The search of reference rows; rebuilds the lists after a model was loaded."""
    with _building:
        if reference not in _searches:
            chosen = np.flatnonzero(approximation.has_lists).tolist()
            _keep(reference, approximation, _build(reference, chosen, n_threads, owner))
        return _searches[reference]


def _keep(reference: Reference, approximation: Approximation, indexes: dict[int, ClassIndex]) -> None:
    for index in indexes.values():
        index.complete()
    _searches[reference] = ApproximateSearch(reference, approximation, indexes)


def _build(reference: Reference, chosen: list[int], n_threads: int, owner: str) -> dict[int, ClassIndex]:
    """Build the lists of some classes, each on one thread, without the held-out rows."""
    faiss, held = import_faiss(owner), _held_apart(reference)
    with ThreadPoolExecutor(n_threads) as pool:
        built = pool.map(lambda c: ClassIndex(faiss, reference, c, held), chosen)
        return dict(zip(chosen, built, strict=True))


def _held_apart(reference: Reference) -> IntArray:
    """Positions of the held-out rows that tuning uses as queries; they depend only on the number of rows."""
    n = len(reference.rows)
    drawn = np.random.default_rng(TUNING_SEED).choice(n, min(TUNING_QUERIES, -(-n // 10)), replace=False)
    return np.sort(drawn)


def _warn(recall: float, missed: Array, tuning: Tuning, owner: str) -> None:
    first, n_others = missed.tolist()[0], len(missed) - 1
    others = f" and {n_others} other class{'es' * (n_others > 1)}" if n_others else ""
    warnings.warn(
        f"The approximate search of {owner} does not reach the recall {recall:g} in class {first!r}{others}: its "
        f"recall is {tuning.recall:.4f}, with a lower confidence limit of {tuning.interval[0]:.4f}. "
        "Classes that miss the recall are searched exactly.\nHint: lower the recall.",
        TrustWarning,
        stacklevel=5,
    )
