"""Search among rows that do not fit in memory, block by block."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from neighboragg._core.checks import check_labels, check_memory, check_rows, check_same_length, encode_labels
from neighboragg._core.inputs import draw_sample
from neighboragg._core.threads import n_threads
from neighboragg._core.types import Array, ArrayLike, FloatArray, IntArray
from neighboragg._store.objects import Savable, Stored
from neighboragg.exceptions import InvalidInputError
from neighboragg.search._blocks import (
    Blocks,
    count_features,
    count_rows,
    gather,
    map_rows,
    open_rows,
    read_segments,
)
from neighboragg.search._in_memory import ClasswiseNeighbors
from neighboragg.search._index import ClasswiseSearch, Exact, Streamed, check_search

# Memory while a block is searched. Per value: the block, its sorted copy and derived arrays; more for cosine, which
# normalizes the rows. Per thread: products and the rows selected from them.
VALUE_NBYTES = {"cosine": 80, "euclidean": 48}
THREAD_NBYTES = 48 * 10**6
# By neighbor of a query: neighbors found before and in this block, side by side, in order, and the order.
NEIGHBOR_NBYTES = 160
QUERIES_NBYTES = 16 * 10**6
MINIMUM_NBYTES = 16 * 10**6  # of blocks
GATHERED_ROWS = 4096  # in a block while a sample is read


class StreamedNeighbors(ClasswiseSearch, Savable, BaseEstimator):
    """Exact search for the K nearest reference rows of each class, reading the reference rows in blocks."""

    class_count_: IntArray
    _segments: tuple[Blocks, ...]
    _components: FloatArray | None
    _codes: IntArray

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

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        components: FloatArray | None = None,
    ) -> Self:
        """Record the source of the reference rows; `components` map each row after it is read."""
        self._check_params()
        check_search(self._how, type(self).__name__, (Streamed,))
        self._free_nbytes()
        self._segments, self._components = open_rows(X), components
        self._codes = self._encode(count_rows(self._segments), y, classes)
        self.n_features_in_ = count_features(self._segments) if components is None else components.shape[1]
        self._count()
        return self

    def _neighbors_of(
        self, queries: FloatArray, k: int, exclude: IntArray | None
    ) -> tuple[FloatArray, IntArray]:
        distances = np.full((len(queries), len(self.classes_), k), np.inf)
        ids = np.full(distances.shape, -1, dtype=np.int64)
        if count_rows(self._segments) != self.n_samples_fit_:
            raise InvalidInputError(
                f"{type(self).__name__} was fitted on {self.n_samples_fit_} rows, but the source now has "
                f"{count_rows(self._segments)}.\n"
                "Hint: fit it again; the files that it reads must not change."
            )
        for start, block in self._blocks(self._block_rows()) if len(queries) else ():
            index = self._index_block(start, block, k)
            excluded = None if exclude is None else _among(exclude - start, len(block))
            step = max(1, QUERIES_NBYTES // (NEIGHBOR_NBYTES * len(self.classes_) * k))
            for first in range(0, len(queries), step):
                part = slice(first, first + step)
                found, positions = index.kneighbors(
                    queries[part], exclude=None if excluded is None else excluded[part]
                )
                merge_nearest(
                    distances[part], ids[part], found, np.where(positions < 0, -1, positions + start)
                )
        return distances, ids

    def _neighbors_of_reference(self, k: int) -> tuple[FloatArray, IntArray]:
        shape = (self.n_samples_fit_, len(self.classes_), k)
        distances, ids = np.empty(shape), np.empty(shape, dtype=np.int64)
        # As many queries as fit in memory next to a block: each of these parts takes a pass over all rows.
        for start, queries in self._blocks(max(1, self._block_rows() // 2)):
            part = slice(start, start + len(queries))
            rows = check_rows(queries, "X", type(self).__name__)
            distances[part], ids[part] = self._neighbors_of(rows, k, np.arange(part.start, part.stop))
        return distances, ids

    def _blocks(self, size: int) -> Iterator[tuple[int, FloatArray]]:
        """Every block of reference rows, mapped, with the id of its first row."""
        start = 0
        for block in read_segments(self._segments, size):
            yield start, block if self._components is None else map_rows(block, self._components)
            start += len(block)
        if start != self.n_samples_fit_:
            raise InvalidInputError(
                f"There were {self.n_samples_fit_} rows to be read in blocks, and there are {start} of them now.\n"
                "Hint: do not write to files that are being read."
            )

    def _index_block(self, start: int, block: FloatArray, k: int) -> ClasswiseNeighbors:
        index = ClasswiseNeighbors(k, search=Exact(self._how.metric), n_jobs=self.n_jobs)
        index._lasting = False
        try:
            codes = self._codes[start : start + len(block)]
            return index.fit(block, codes, classes=np.arange(len(self.classes_)))
        except ValueError as error:
            raise InvalidInputError(
                f"Reference rows {start} to {start + len(block) - 1} of StreamedNeighbors cannot be searched: {error}"
            ) from error

    def _block_rows(self) -> int:
        width = VALUE_NBYTES[self._how.metric] * (self.n_features_in_ + 1)
        return max(1, self._free_nbytes() // width)

    def _free_nbytes(self) -> int:
        """Memory for blocks, without the share of threads and queries."""
        taken = THREAD_NBYTES * n_threads(self.n_jobs) + QUERIES_NBYTES
        return check_memory(self._how.memory, "memory", "Streamed", minimum=taken + MINIMUM_NBYTES) - taken

    @property
    def _how(self) -> Streamed:
        return Streamed() if self.search is None else self.search

    def _count(self) -> None:
        self.n_samples_fit_ = len(self._codes)
        self.class_count_ = np.bincount(self._codes, minlength=len(self.classes_))


def _among(ids: IntArray, n: int) -> IntArray | None:
    """Ids within a block of n rows, -1 for other rows; None if no id is in the block."""
    here = (ids >= 0) & (ids < n)
    return np.where(here, ids, -1) if here.any() else None


def merge_nearest(distances: FloatArray, ids: IntArray, found: FloatArray, found_ids: IntArray) -> None:
    """Merge new neighbors into the current ones, in place, by distance and then id."""
    # Queries whose nearest new neighbor is farther than the last current one do not change.
    moving = (found[..., 0] <= distances[..., -1]) & (found_ids[..., 0] >= 0)
    if not moving.any():
        return
    k = distances.shape[-1]
    both = np.concatenate([distances[moving], found[moving]], axis=-1)
    both_ids = np.concatenate([ids[moving], found_ids[moving]], axis=-1)
    order = np.lexsort((both_ids, both))[..., :k]
    distances[moving] = np.take_along_axis(both, order, axis=-1)
    ids[moving] = np.take_along_axis(both_ids, order, axis=-1)


def index_for(search: Any, *, n_neighbors: int, metric: str, n_jobs: int | None) -> Any:
    """An unfitted index for a way to search, with another metric."""
    how = clone(search).set_params(metric=metric)
    kind = StreamedNeighbors if isinstance(how, Streamed) else ClasswiseNeighbors
    return kind(n_neighbors, search=how, n_jobs=n_jobs)


MAX_SAMPLED = 50_000


@dataclass(frozen=True, eq=False)
class Sample(Stored):
    """The training rows that the learned parts have seen."""

    rows: IntArray
    n_rows: int

    def positions(self, rows: IntArray) -> IntArray:
        """Positions among all training rows, then validation rows, as those among the sample, then validation rows."""
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        sampled = np.where(self.rows[at] == rows, at, -1)
        return np.where(rows >= self.n_rows, rows - self.n_rows + len(self.rows), sampled)


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """Training rows that are read in blocks, their classes as positions in `classes`, and the sample of them."""

    segments: tuple[Blocks, ...]
    codes: IntArray
    classes: Array
    sample: Sample

    def sampled_rows(self) -> FloatArray:
        """The rows of the sample, read in one pass over all."""
        return gather(self.segments, self.sample.rows, GATHERED_ROWS)


def sample_of(codes: IntArray, random_state: Any) -> Sample:
    """The training rows that learned parts see."""
    # Not drawn from a shared generator, which would change later draws.
    seed = random_state if isinstance(random_state, int) else 0
    return Sample(draw_sample(codes, MAX_SAMPLED, seed), len(codes))


def stream_rows(
    X: Any, y: ArrayLike, classes: ArrayLike | None, random_state: Any, owner: str
) -> StreamedRows:
    """Training rows to be read in blocks, with their labels checked and a sample drawn."""
    if isinstance(X, Mapping):
        raise InvalidInputError(f"X passed to {owner} has several views, which Streamed does not support.")
    segments, labels = open_rows(X), check_labels(y, "y", owner)
    check_same_length(range(count_rows(segments)), "X", labels, "y", owner)
    if not len(labels):
        raise InvalidInputError(f"X passed to {owner} has no rows.")
    known = np.unique(labels) if classes is None else np.asarray(classes)
    codes = encode_labels(labels, known, "y", owner)
    return StreamedRows(segments, codes, known, sample_of(codes, random_state))
