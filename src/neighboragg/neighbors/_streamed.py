"""The K nearest reference rows in every class, where the reference rows do not fit in memory."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from neighboragg._typing import Array, ArrayLike, FloatArray, IntArray
from neighboragg._validation import (
    check_choice,
    check_integer,
    check_labels,
    check_memory,
    check_rows,
    encode_labels,
)
from neighboragg.exceptions import InvalidInputError
from neighboragg.neighbors._blocks import Blocks, as_blocks
from neighboragg.neighbors._classwise import METRICS, ClasswiseNeighbors, _n_threads
from neighboragg.persistence import Savable, require

__all__ = ["StreamedNeighbors", "merge_nearest"]

# Of memory while a block is searched. By value: the block, its sorted copy and what is made of it; more for cosine,
# where rows are brought to length one. By thread: products and what is selected from them.
VALUE_NBYTES = {"cosine": 80, "euclidean": 48}
THREAD_NBYTES = 48 * 10**6
# By neighbor of a query: what was found before and in this block, side by side, in order, and the order.
NEIGHBOR_NBYTES = 160
QUERIES_NBYTES = 16 * 10**6
MINIMUM_NBYTES = 16 * 10**6  # of blocks


class StreamedNeighbors(Savable, BaseEstimator):
    """Exact search for the K nearest reference rows of each class, reading the reference rows in blocks.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbors to find in every class.
    metric : {"euclidean", "cosine"}, default="euclidean"
    memory : int or str, default="1 GB"
        Memory that a search may take beside the queries, the labels and the result, in bytes or as text. Blocks are
        as large as it allows.
    n_jobs : int, default=None
        Threads; each takes 48 MB of `memory`.

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

    See Also
    --------
    ClasswiseNeighbors : The same for rows in memory.

    Notes
    -----
    Every block is searched by :class:`ClasswiseNeighbors`, and what was found is merged by distance, then row id. A
    distance depends on its two rows alone, and a search in memory has the same order, so that results have the bits
    that it gives, for any size of blocks.

    `fit` reads no rows, so that values which are not finite are noticed by a search. Every search reads all rows once:
    ask for many queries at a time. Labels are held in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.neighbors import StreamedNeighbors
    >>> X = np.array([[0.0], [1.0], [5.0], [7.0]])  # or numpy.load("rows.npy", mmap_mode="r"), or "rows.parquet"
    >>> index = StreamedNeighbors(n_neighbors=2, memory="200 MB").fit(X, ["a", "a", "b", "b"])
    >>> distances, indices = index.kneighbors([[2.0]])
    >>> distances
    array([[[1., 2.],
            [3., 5.]]])
    >>> indices
    array([[[1, 0],
            [2, 3]]])
    """

    classes_: Array
    class_count_: IntArray
    n_features_in_: int
    n_samples_fit_: int
    _blocks: Blocks
    _codes: IntArray

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        metric: str = "euclidean",
        memory: int | str = "1 GB",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.memory = memory
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: ArrayLike, *, classes: ArrayLike | None = None) -> Self:
        """Remember where the reference rows are.

        Parameters
        ----------
        X : array, path-like, pyarrow Dataset, list of these, or Blocks
            See :func:`as_blocks`.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), default=None
            All classes, where some may have no row. Defaults to the labels in `y`.

        Returns
        -------
        self : StreamedNeighbors
        """
        owner = type(self).__name__
        check_integer(self.n_neighbors, "n_neighbors", owner, minimum=1)
        check_choice(self.metric, "metric", owner, choices=METRICS)
        self._free_nbytes()
        blocks, labels = as_blocks(X), check_labels(y, "y", owner)
        if blocks.n_rows != len(labels):
            raise InvalidInputError(
                f"X and y passed to {owner} must have the same number of rows. "
                f"Got {blocks.n_rows} and {len(labels)}."
            )
        if not len(labels):
            raise InvalidInputError(f"X passed to {owner} has no rows; at least one is needed to search.")
        known = np.unique(labels if classes is None else np.asarray(classes))
        codes = encode_labels(labels, known, "y", owner)
        self.classes_, self.n_features_in_ = known, blocks.n_features
        self._blocks, self._codes = blocks, codes
        self._count()
        return self

    def kneighbors(
        self,
        X: ArrayLike | None = None,
        n_neighbors: int | None = None,
        *,
        exclude: ArrayLike | None = None,
    ) -> tuple[FloatArray, IntArray]:
        """Find the nearest reference rows of each class.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features), default=None
            Query rows. None queries every reference row, each leaving itself out.
        n_neighbors : int, default=None
            Neighbors per class; defaults to the constructor's.
        exclude : array-like of shape (n_queries,), default=None
            Id of the reference row that each query is and must not find; -1 for none.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_classes, n_neighbors)
            Ascending in the last axis; inf where a class has fewer rows.
        indices : ndarray of shape (n_queries, n_classes, n_neighbors)
            Ids of the reference rows (their position in the rows fitted); -1 where a class has fewer.
        """
        check_is_fitted(self)
        owner = type(self).__name__
        k = check_integer(
            self.n_neighbors if n_neighbors is None else n_neighbors, "n_neighbors", owner, minimum=1
        )
        if X is None:
            return self._neighbors_of_reference(k)
        queries = check_rows(X, "X", owner, n_features=self.n_features_in_)
        excluded = np.full(len(queries), -1) if exclude is None else np.asarray(exclude)
        if excluded.shape != (len(queries),) or (excluded.size and excluded.dtype.kind not in "iu"):
            raise InvalidInputError(
                f"exclude passed to {owner} must hold one row id or -1 for each of the {len(queries)} queries. "
                f"Got shape {excluded.shape} and dtype {excluded.dtype}."
            )
        if excluded.size and (excluded.min() < -1 or excluded.max() >= self.n_samples_fit_):
            raise InvalidInputError(
                f"exclude passed to {owner} must hold row ids below {self.n_samples_fit_}, or -1. "
                f"Got {excluded.min()} to {excluded.max()}."
            )
        return self._search(queries, k, excluded.astype(np.int64))

    def _search(self, queries: FloatArray, k: int, excluded: IntArray) -> tuple[FloatArray, IntArray]:
        distances = np.full((len(queries), len(self.classes_), k), np.inf)
        ids = np.full(distances.shape, -1, dtype=np.int64)
        step = max(1, QUERIES_NBYTES // (NEIGHBOR_NBYTES * len(self.classes_) * k))
        for start, index in self._indexed_blocks() if len(queries) else ():
            own = excluded - start
            own[(own < 0) | (own >= index.n_samples_fit_)] = -1
            for first in range(0, len(queries), step):
                part = slice(first, first + step)
                exclude = own[part] if (own[part] >= 0).any() else None
                found, places = index.kneighbors(queries[part], k, exclude=exclude)
                merge_nearest(distances[part], ids[part], found, np.where(places < 0, -1, places + start))
        return distances, ids

    def _indexed_blocks(self) -> Iterator[tuple[int, ClasswiseNeighbors]]:
        """The id of the first row of each block, and the block ready for a search."""
        classes, start = np.arange(len(self.classes_)), 0
        for block in self._blocks.read(self._block_rows()):
            index = ClasswiseNeighbors(self.n_neighbors, metric=self.metric, n_jobs=self.n_jobs)
            try:
                index.fit(block, self._codes[start : start + len(block)], classes=classes)
            except ValueError as error:
                raise InvalidInputError(
                    f"Reference rows {start} to {start + len(block) - 1} of {type(self).__name__} cannot be searched: "
                    f"{error}"
                ) from error
            yield start, index
            start += len(block)
        if start != self.n_samples_fit_:
            raise InvalidInputError(
                f"{type(self).__name__} was fitted on {self.n_samples_fit_} rows, and finds {start} of them now.\n"
                "Hint: fit it again; the files that it reads must not change."
            )

    def _neighbors_of_reference(self, k: int) -> tuple[FloatArray, IntArray]:
        shape = (self.n_samples_fit_, len(self.classes_), k)
        distances, ids = np.empty(shape), np.empty(shape, dtype=np.int64)
        start = 0
        # As many queries as can be held beside a block: each of these parts takes a pass over all rows.
        for queries in self._blocks.read(max(1, self._block_rows() // 2)):
            part = slice(start, start + len(queries))
            rows = check_rows(queries, "X", type(self).__name__)
            distances[part], ids[part] = self._search(rows, k, np.arange(part.start, part.stop))
            start = part.stop
        return distances, ids

    def _block_rows(self) -> int:
        width = VALUE_NBYTES[self.metric] * (self.n_features_in_ + 1)
        return max(1, self._free_nbytes() // width)

    def _free_nbytes(self) -> int:
        """Memory for blocks, beside what threads and queries take."""
        taken = THREAD_NBYTES * _n_threads(self.n_jobs) + QUERIES_NBYTES
        owner = type(self).__name__
        return check_memory(self.memory, "memory", owner, minimum=taken + MINIMUM_NBYTES) - taken

    def _count(self) -> None:
        self.n_samples_fit_ = len(self._codes)
        self.class_count_ = np.bincount(self._codes, minlength=len(self.classes_))

    def _after_load(self) -> None:
        if not hasattr(self, "_blocks"):
            return  # a parameter, not fitted
        require(isinstance(self._blocks, Blocks), "an index has no rows")
        require(self.metric in METRICS, "an index has an unknown metric")
        require(isinstance(self.classes_, np.ndarray) and self.classes_.ndim == 1, "an index has no classes")
        require(self._blocks.n_features == self.n_features_in_, "an index has other features than it says")
        n, codes = self._blocks.n_rows, self._codes
        require(
            n and isinstance(codes, np.ndarray) and codes.shape == (n,), "an index has other labels than rows"
        )
        require(
            codes.dtype.kind == "i" and codes.min() >= 0 and codes.max() < len(self.classes_),
            "an index has labels outside its classes",
        )
        self._count()


def merge_nearest(distances: FloatArray, ids: IntArray, found: FloatArray, found_ids: IntArray) -> None:
    """Put neighbors found elsewhere among those found so far, in place, by distance and then id.

    Parameters
    ----------
    distances, ids : ndarray of shape (n, n_classes, K)
        Nearest so far, ascending; missing ones are (inf, -1).
    found, found_ids : ndarray of shape (n, n_classes, K)
        Of other rows, in the same form.
    """
    # Nothing moves where the nearest of these is farther than the last of those.
    moving = (found[..., 0] <= distances[..., -1]) & (found_ids[..., 0] >= 0)
    if not moving.any():
        return
    k = distances.shape[-1]
    both = np.concatenate([distances[moving], found[moving]], axis=-1)
    both_ids = np.concatenate([ids[moving], found_ids[moving]], axis=-1)
    order = np.lexsort((both_ids, both))[..., :k]
    distances[moving] = np.take_along_axis(both, order, axis=-1)
    ids[moving] = np.take_along_axis(both_ids, order, axis=-1)
