"""Approximate search with lists of faiss, tuned to a recall measured on held-out rows."""

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

TRAINING_ROWS, TRAINING_ROUNDS = 40, 8  # rows for each center of a list, and rounds of k-means
MORE_CANDIDATES = 4  # than neighbors: single precision may have the last ones in another order
# A row that is read from a list takes as long as ten of the exact search, which reads them in blocks for many queries
# at a time: 8 to 13 in measurements with 8 to 512 features.
READING_COST = 10.0
CLEARLY = 2.0  # times as fast, to be worth an index
SMALLEST_CLASS = 4096  # rows; smaller classes are searched exactly before an index would have been entered
SMALLEST_WORTHWHILE = 100_000  # rows of a class that lists are built for, to see whether they are worth it
ROWS_PER_NEIGHBOR = 32  # in a class with lists, at least
TUNING_QUERIES = 1000  # and at most a tenth of the rows
TUNING_SEED = 0


def import_faiss(owner: str) -> Any:
    """The library, or an error that says how to get it."""
    return import_extra("faiss", extra="approximate", purpose=f"The approximate search of {owner}")


def has_faiss() -> bool:
    """Whether the library can be imported."""
    try:
        import_faiss("")
    except MissingExtraError:
        return False
    return True


@contextmanager
def _one_thread(faiss: Any) -> Iterator[None]:
    """No threads of faiss's own; OpenMP counts them for each thread of ours apart."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


class Lists:
    """Every row is in the list of its nearest center, and a search reads the lists of the centers nearest to it."""

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
        """Add rows after those it was built of."""
        with _one_thread(self._faiss):
            self._index.add(rows)

    def candidates(self, queries: FloatArray, width: int, n_read: int) -> IntArray:
        """Numbers of about the nearest rows, (n, width), in any order; -1 where there were no more."""
        distances, lists = self._nearest_lists(queries, n_read)
        # Not by parameters of the search, which this one does not take; threads of ours all set the same.
        self._index.nprobe = n_read
        with _one_thread(self._faiss):
            # It takes the distances of the centers for other kinds of lists than these.
            found = self._index.search_preassigned(queries, width, lists, distances.astype(np.float32))
        return np.asarray(found[1])

    def rows_read(self, queries: FloatArray, n_read: int) -> float:
        """Rows in the nearest lists of a query, on average."""
        sizes = np.array([self._index.invlists.list_size(i) for i in range(self.n_lists)])
        return float(sizes[self._nearest_lists(queries, n_read)[1]].sum(axis=1).mean())

    def _nearest_lists(self, queries: FloatArray, n_read: int) -> tuple[FloatArray, IntArray]:
        distances, lists = exact_search(self._centers, queries, n_read)
        return distances[:, 0], lists[:, 0]


class Tuning(NamedTuple):
    """How many lists are read, the share of neighbors that this finds, and its confidence limits."""

    n_read: int
    recall: float
    interval: tuple[float, float]


class ClassIndex:
    """The rows of one class in lists."""

    def __init__(self, faiss: Any, reference: Reference, code: int, held: IntArray) -> None:
        low, high = int(reference.starts[code]), int(reference.starts[code + 1])
        self._frame, self._rows = reference.frame, reference.rows[low:high]
        own = held[(held >= low) & (held < high)] - low
        self._n_held = len(own)
        # Rows of the lists by number: those they were built of, then those held apart.
        self._places = np.concatenate([np.setdiff1d(np.arange(high - low), own), own])
        self._lists = Lists(faiss, self._single(self._rows[self._built_of]))

    @property
    def _built_of(self) -> IntArray:
        return self._places[: len(self._places) - self._n_held]

    def complete(self) -> None:
        """Add the rows that were held apart."""
        if self._n_held:
            self._lists.add(self._single(self._rows[self._places[-self._n_held :]]))

    def tune(self, queries: FloatArray, k: int, recall: float, *, cheaply: bool) -> Tuning:
        """Read ever more lists until the recall is surely reached, or as many as may be."""
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
        """Distances and positions in the class of about the k nearest rows; (inf, -1) where too few were found."""
        found = self._lists.candidates(self._single(queries), n_neighbors + MORE_CANDIDATES, n_read)
        places = np.where(found < 0, -1, self._places[found])
        return refine(self._rows, places, queries, k, hidden)

    def is_clearly_cheaper(self, queries: FloatArray, n_read: int) -> bool:
        """Whether a search of the lists takes less than half as long as the exact one, by the rows they read."""
        # More than on average, as lists that are read often are long.
        rows_read = self._lists.rows_read(self._single(queries), n_read)
        return CLEARLY * (self._lists.n_lists + READING_COST * rows_read) < len(self._rows)

    def _cheap_lists(self) -> int:
        """The number of lists beyond which a search is not clearly cheaper, if all are of the same length."""
        n, n_lists = len(self._rows), self._lists.n_lists
        return int((n / CLEARLY - n_lists) / READING_COST * n_lists / n)

    def _single(self, rows: FloatArray) -> FloatArray:
        return np.ascontiguousarray(to_single(self._frame.scaled(rows)))


@dataclass(frozen=True, eq=False)
class Approximation(Stored):
    """How many lists are read in each class, 0 for an exact search, and what share of its nearest rows is found so."""

    n_neighbors: int
    n_read: IntArray
    recall: FloatArray
    interval: FloatArray

    @classmethod
    def of(cls, n_classes: int, n_neighbors: int, tuned: dict[int, Tuning]) -> "Approximation":
        """Some classes with lists; the others are searched exactly."""
        n_read, recall = np.zeros(n_classes, dtype=np.int64), np.ones(n_classes)
        interval = np.ones((n_classes, 2))
        for c, tuning in tuned.items():
            n_read[c], recall[c], interval[c] = tuning
        return cls(n_neighbors, n_read, recall, interval)

    @property
    def has_lists(self) -> BoolArray:
        """Which classes are not searched exactly."""
        return self.n_read > 0

    @cached_property
    def is_exact(self) -> bool:
        """Whether no class has lists."""
        return not self.has_lists.any()

    def runs(self) -> Iterator[tuple[int, int]]:
        """Consecutive classes that are searched together: those without lists, and each other one alone."""
        first, alone = 0, self.has_lists
        for c in range(1, len(alone) + 1):
            if c == len(alone) or alone[c - 1 : c + 1].any():
                yield first, c
                first = c


class ApproximateSearch:
    """The reference rows with the lists of their classes, ready to be searched."""

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
        """Fill `distances` and `ids`, each (n, C, K), with about the nearest rows of each class by (distance, id)."""
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
        # Lists may end before there are enough; a class with lists has more rows than that.
        lacking = np.flatnonzero(places[:, -1] < 0)
        if len(lacking):
            own = None if hidden is None else hidden[lacking]
            nearest, found = exact_search(part, rows[lacking], k, own)
            distances[lacking], ids[lacking] = nearest[:, 0], found[:, 0]
        return distances, ids


# Lists live as long as the rows they are of. They are not saved: faiss trusts the files it reads.
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
    """Build lists for each class that is large enough, and find out how many of them must be read."""
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
    """The search of reference rows; lists that are no longer there, after a model was loaded, are built again."""
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
    """Lists of some classes, each on one thread, without the rows that tuning takes for queries."""
    faiss, held = import_faiss(owner), _held_apart(reference)
    with ThreadPoolExecutor(n_threads) as pool:
        built = pool.map(lambda c: ClassIndex(faiss, reference, c, held), chosen)
        return dict(zip(chosen, built, strict=True))


def _held_apart(reference: Reference) -> IntArray:
    """Positions of the rows that tuning takes for queries; they depend on the number of rows alone."""
    n = len(reference.rows)
    drawn = np.random.default_rng(TUNING_SEED).choice(n, min(TUNING_QUERIES, -(-n // 10)), replace=False)
    return np.sort(drawn)


def _warn(recall: float, missed: Array, tuning: Tuning, owner: str) -> None:
    first, n_others = missed.tolist()[0], len(missed) - 1
    others = f" and {n_others} other class{'es' * (n_others > 1)}" if n_others else ""
    warnings.warn(
        f"The approximate search of {owner} does not reach the recall {recall:g} in class {first!r}{others}: it "
        f"finds {tuning.recall:.4f}, with a lower confidence limit of {tuning.interval[0]:.4f}. "
        "The search is exact there.\nHint: lower the recall.",
        TrustWarning,
        stacklevel=5,
    )
