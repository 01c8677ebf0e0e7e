"""Class-wise neighbors among rows in memory."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from neighboragg._core.checks import check_rows
from neighboragg._core.threads import ONE_THREAD, n_threads
from neighboragg._core.types import ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg._store.objects import Savable
from neighboragg.search._approximate import Approximation, approximate, search_for
from neighboragg.search._device import table_on
from neighboragg.search._exact_search import search_with_numpy
from neighboragg.search._index import Approximate, ClasswiseSearch, Exact, check_search
from neighboragg.search._kernel import can_search, kernel_in_use, search_compiled, warn_if_slow
from neighboragg.search._reference import Reference

BATCH_ROWS = 2048
TILE_ROWS = 32  # queries that the compiled search takes together; batches are whole numbers of it


class ClasswiseNeighbors(ClasswiseSearch, Savable, BaseEstimator):
    """The K nearest reference rows of each class.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbors to find in every class.
    search : Exact or Approximate, default=None
        How to search; None means ``Exact()``.
    n_jobs : int, default=None
        Threads; None means 1 unless in a :func:`joblib.parallel_config` context, -1 means all cores.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels; they order the class axis of every result.
    class_count_ : ndarray of shape (n_classes,)
        Reference rows of each class.
    n_features_in_ : int
        Number of features seen in fit.
    n_samples_fit_ : int
        Number of reference rows.
    is_exact_ : ndarray of bool of shape (n_classes,)
        Which classes are searched exactly.
    recall_ : ndarray of shape (n_classes,)
        Estimated share of the nearest rows that is found; 1 where the search is exact.
    recall_interval_ : ndarray of shape (n_classes, 2)
        Limits of the recall at a confidence level of 95%.

    Notes
    -----
    Results of an exact search are a function of the data alone: equal bits for any batch and `n_jobs`, for
    float32 and float64 copies of the same values, on any processor, and whether the search is compiled or NumPy's
    (:func:`neighboragg.show_versions` says which). Candidates come from a product in single precision, their
    distances are recomputed by direct difference in double precision in a defined order of summation, ties
    are ordered by row id, and a rounding-error bound certifies that no neighbor was missed.

    Rows found by an approximate search have exactly the same distances and order as in an exact search, but some
    neighbors are missing and replaced by farther ones. The recall is measured against the exact search, on up to 1,000
    reference rows that are added to the indexes only afterward, and for `n_neighbors` neighbors: a search for more is
    exact. An index is built on one thread, so on one machine the same rows give the same results. It is not saved,
    and built again by the first search after :func:`neighboragg.load`.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.search import ClasswiseNeighbors
    >>> X = np.array([[0.0], [1.0], [5.0], [7.0]])
    >>> index = ClasswiseNeighbors(n_neighbors=2).fit(X, ["a", "a", "b", "b"])
    >>> distances, indices = index.kneighbors([[2.0]])
    >>> distances
    array([[[1., 2.],
            [3., 5.]]])
    >>> indices
    array([[[1, 0],
            [2, 3]]])
    """

    is_exact_: BoolArray
    recall_: FloatArray
    recall_interval_: FloatArray
    _reference: Reference
    _approximation: Approximation
    # Whether it is searched repeatedly, so investing time and memory in faster searches pays off.
    _lasting = True

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        search: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.search = search
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike, *, classes: ArrayLike | None = None) -> Self:
        """Index the reference rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), default=None
            All classes, including classes without rows. Defaults to the labels in `y`.

        Returns
        -------
        self : ClasswiseNeighbors
        """
        self._check_params()
        rows = check_rows(X, "X", type(self).__name__)
        codes = self._encode(len(rows), y, classes)
        self.n_features_in_ = rows.shape[1]
        self._build(self._as_vectors(rows), codes)
        return self

    def _neighbors_of_reference(self, k: int) -> tuple[FloatArray, IntArray]:
        return self._kneighbors(self._reference.in_order()[0], k, np.arange(self.n_samples_fit_))

    def _neighbors_of(
        self, queries: FloatArray, k: int, exclude: IntArray | None
    ) -> tuple[FloatArray, IntArray]:
        return self._kneighbors(self._as_vectors(queries), k, exclude)

    def _build(self, vectors: FloatArray, codes: IntArray) -> None:
        self._reference = Reference(vectors, codes, len(self.classes_))
        self._approximation = approximate(
            self._reference,
            self._how if isinstance(self._how, Approximate) else None,
            n_neighbors=self.n_neighbors,
            classes=self.classes_,
            n_threads=n_threads(self.n_jobs),
            owner=type(self).__name__,
        )
        self._count()

    def _count(self) -> None:
        self.n_samples_fit_ = len(self._reference.rows)
        self.class_count_ = self._reference.sizes
        self.is_exact_ = ~self._approximation.has_lists
        self.recall_, self.recall_interval_ = self._approximation.recall, self._approximation.interval

    def _check_params(self) -> None:
        super()._check_params()
        check_search(self.search, type(self).__name__, (Exact, Approximate))

    @property
    def _how(self) -> Exact | Approximate:
        return Exact() if self.search is None else self.search

    def _kneighbors(
        self, queries: FloatArray, k: int, exclude: IntArray | None
    ) -> tuple[FloatArray, IntArray]:
        shape = (len(queries), len(self.classes_), k)
        distances, indices = np.empty(shape), np.empty(shape, dtype=np.int64)
        positions = None if exclude is None else self._reference.positions_of(exclude)
        if not self._approximation.is_exact and k <= self._approximation.n_neighbors:
            self._search_approximately(queries, positions, distances, indices)
        elif isinstance(self._how, Exact) and self._how.device is not None:
            self._search_on_device(self._how.device, queries, positions, distances, indices)
        else:
            self._search_exactly(queries, positions, distances, indices)
        return self._as_asked(distances), indices

    def _search_approximately(
        self, queries: FloatArray, positions: IntArray | None, distances: FloatArray, indices: IntArray
    ) -> None:
        search = search_for(self._reference, self._approximation, n_threads(self.n_jobs), type(self).__name__)

        def work(batch: slice) -> None:
            exclude = None if positions is None else positions[batch]
            search(queries[batch], exclude, distances[batch], indices[batch])

        self._in_batches(work, len(queries))

    def _search_on_device(
        self,
        device: Any,
        queries: FloatArray,
        positions: IntArray | None,
        distances: FloatArray,
        indices: IntArray,
    ) -> None:
        table = table_on(self._reference, device, type(self._how).__name__)
        for batch in self._batches(len(queries), 1):
            exclude = None if positions is None else positions[batch]
            part = distances[batch], indices[batch]
            search_with_numpy(self._reference, queries[batch], exclude, *part, multiply=table.product)

    def _search_exactly(
        self, queries: FloatArray, positions: IntArray | None, distances: FloatArray, indices: IntArray
    ) -> None:
        kernel, reference = kernel_in_use(), self._reference
        library = kernel.library if can_search(reference, distances.shape[2]) else None
        if library is not None and len(queries) == 1:
            search_compiled(library, reference, queries, positions, distances, indices)
            return
        search = (
            search_with_numpy if library is None else partial(search_compiled, library, lasting=self._lasting)
        )

        def work(batch: slice) -> None:
            exclude = None if positions is None else positions[batch]
            search(reference, queries[batch], exclude, distances[batch], indices[batch])

        if library is not None:
            self._in_batches(work, len(queries))
        else:
            warn_if_slow(kernel, reference, len(queries))
            # Each job is a thread with its own product; threads within the product would compete with them.
            with ONE_THREAD:
                self._in_batches(work, len(queries))

    def _as_asked(self, distances: FloatArray) -> FloatArray:
        """Distances in the metric; those found are Euclidean."""
        return distances**2 / 2.0 if self._how.metric == "cosine" else distances

    def _in_batches(self, work: Callable[[slice], None], n: int) -> None:
        """Call `work` with slices of n queries, on as many threads as there are jobs."""
        n_jobs = n_threads(self.n_jobs) if n > 1 else 1
        batches = list(self._batches(n, n_jobs))
        if min(n_jobs, len(batches)) <= 1:
            for batch in batches:
                work(batch)
        else:
            with ThreadPoolExecutor(n_jobs) as pool:
                list(pool.map(work, batches))

    def _batches(self, n: int, n_jobs: int) -> Iterator[slice]:
        """Consecutive slices of about a batch, a whole number of rounds for the jobs."""
        rounds = max(1, round(n / (BATCH_ROWS * n_jobs)))
        size = max(1, -(-n // (rounds * n_jobs)))
        size = -(-size // TILE_ROWS) * TILE_ROWS
        return (slice(start, start + size) for start in range(0, n, size))

    def _as_vectors(self, rows: FloatArray) -> FloatArray:
        return rows if self._how.metric == "euclidean" else _on_sphere(rows)


def _on_sphere(rows: FloatArray) -> FloatArray:
    """Unit rows, whose squared distance is twice the cosine distance; a zero row gets an axis of its own."""
    norms = np.linalg.norm(rows.astype(np.float64), axis=1)
    zero = norms == 0
    return np.column_stack([rows / np.where(zero, 1.0, norms)[:, None], zero])


def dense_rows(
    X: FloatArray, codes: IntArray, *, share: float, n_neighbors: int = 10, n_jobs: int | None = None
) -> BoolArray:
    """Mask of rows to keep when the sparsest `share` of every class is dropped."""
    keep = np.ones(len(X), dtype=bool)
    if share == 0:
        return keep
    for c in np.unique(codes):
        members = np.flatnonzero(codes == c)
        n_dropped = min(int(share * len(members)), len(members) - 1)
        if n_dropped == 0:
            continue
        k = min(n_neighbors, len(members) - 1)
        index = ClasswiseNeighbors(k, n_jobs=n_jobs).fit(X[members], codes[members])
        radius = index.kneighbors()[0][:, 0, -1]
        keep[members[np.argsort(-radius, kind="stable")[:n_dropped]]] = False
    return keep
