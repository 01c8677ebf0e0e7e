"""Search among rows that do not fit in memory, block by block."""

from collections.abc import Iterator
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
from neighboragg.search._blocks import Blocks, as_blocks
from neighboragg.search._in_memory import ClasswiseNeighbors
from neighboragg.search._index import ClasswiseSearch, Exact, Streamed, check_search

Found = tuple[
    slice, FloatArray, IntArray
]  # some of the queries, their distances, and the ids of what was found
# Of memory while a block is searched. By value: the block, its sorted copy and what is made of it; more for cosine,
# where rows are brought to length one. By thread: products and what is selected from them.
VALUE_NBYTES = {"cosine": 80, "euclidean": 48}
THREAD_NBYTES = 48 * 10**6
# By neighbor of a query: what was found before and in this block, side by side, in order, and the order.
NEIGHBOR_NBYTES = 160
QUERIES_NBYTES = 16 * 10**6
MINIMUM_NBYTES = 16 * 10**6  # of blocks


@dataclass(frozen=True, eq=False)
class BlockSearch:
    """The search for the neighbors of some queries in one block of reference rows after the other."""

    queries: FloatArray
    k: int
    excluded: IntArray | None
    n_classes: int
    metric: str
    n_jobs: int | None

    def __call__(self, start: int, block: FloatArray, codes: IntArray) -> Iterator[Found]:
        """What is nearest in a block that begins with row `start`."""
        index = ClasswiseNeighbors(self.k, search=Exact(self.metric), n_jobs=self.n_jobs)
        index._lasting = False
        try:
            index.fit(block, codes, classes=np.arange(self.n_classes))
        except ValueError as error:
            raise InvalidInputError(
                f"Reference rows {start} to {start + len(block) - 1} of StreamedNeighbors cannot be searched: {error}"
            ) from error
        own = None if self.excluded is None else _among(self.excluded - start, len(block))
        step = max(1, QUERIES_NBYTES // (NEIGHBOR_NBYTES * self.n_classes * self.k))
        for first in range(0, len(self.queries), step):
            part = slice(first, first + step)
            exclude = None if own is None else own[part]
            distances, places = index.kneighbors(self.queries[part], exclude=exclude)
            yield part, distances, np.where(places < 0, -1, places + start)


def search_blocks(blocks: Blocks, search: BlockSearch, codes: IntArray, size: int) -> Iterator[Found]:
    """What a search finds in one block after the other."""
    start = 0
    for block in blocks.read(size):
        stop = start + len(block)
        yield from search(start, block, codes[start:stop])
        start = stop
    if start != blocks.n_rows:
        raise InvalidInputError(
            f"There were {blocks.n_rows} rows to be read in blocks, and there are {start} of them now.\n"
            "Hint: do not write to files that are being read."
        )


class StreamedNeighbors(ClasswiseSearch, Savable, BaseEstimator):
    """Exact search for the K nearest reference rows of each class, reading the reference rows in blocks."""

    class_count_: IntArray
    _blocks: Blocks
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

    def fit(self, X: Any, y: ArrayLike, *, classes: ArrayLike | None = None) -> Self:
        """Remember where the reference rows are."""
        self._check_params()
        check_search(self._how, type(self).__name__, (Streamed,))
        self._free_nbytes()
        blocks = as_blocks(X)
        self._codes = self._encode(blocks, y, classes)
        self._blocks, self.n_features_in_ = blocks, blocks.n_features
        self._count()
        return self

    def _neighbors_of(
        self, queries: FloatArray, k: int, excluded: IntArray | None
    ) -> tuple[FloatArray, IntArray]:
        distances = np.full((len(queries), len(self.classes_), k), np.inf)
        ids = np.full(distances.shape, -1, dtype=np.int64)
        if self._blocks.n_rows != self.n_samples_fit_:
            raise InvalidInputError(
                f"{type(self).__name__} was fitted on {self.n_samples_fit_} rows, and finds {self._blocks.n_rows} of "
                "them now.\nHint: fit it again; the files that it reads must not change."
            )
        if len(queries):
            search = BlockSearch(queries, k, excluded, len(self.classes_), self._how.metric, self.n_jobs)
            for part, found, places in search_blocks(self._blocks, search, self._codes, self._block_rows()):
                merge_nearest(distances[part], ids[part], found, places)
        return distances, ids

    def _neighbors_of_reference(self, k: int) -> tuple[FloatArray, IntArray]:
        shape = (self.n_samples_fit_, len(self.classes_), k)
        distances, ids = np.empty(shape), np.empty(shape, dtype=np.int64)
        start = 0
        # As many queries as can be held beside a block: each of these parts takes a pass over all rows.
        for queries in self._blocks.read(max(1, self._block_rows() // 2)):
            part = slice(start, start + len(queries))
            rows = check_rows(queries, "X", type(self).__name__)
            distances[part], ids[part] = self._neighbors_of(rows, k, np.arange(part.start, part.stop))
            start = part.stop
        return distances, ids

    def _block_rows(self) -> int:
        width = VALUE_NBYTES[self._how.metric] * (self.n_features_in_ + 1)
        return max(1, self._free_nbytes() // width)

    def _free_nbytes(self) -> int:
        """Memory for blocks, beside what threads and queries take."""
        taken = THREAD_NBYTES * n_threads(self.n_jobs) + QUERIES_NBYTES
        return check_memory(self._how.memory, "memory", "Streamed", minimum=taken + MINIMUM_NBYTES) - taken

    @property
    def _how(self) -> Streamed:
        return Streamed() if self.search is None else self.search

    def _count(self) -> None:
        self.n_samples_fit_ = len(self._codes)
        self.class_count_ = np.bincount(self._codes, minlength=len(self.classes_))


def _among(ids: IntArray, n: int) -> IntArray | None:
    """Ids of rows of a block of n rows, -1 for other rows; None if none is of it."""
    here = (ids >= 0) & (ids < n)
    return np.where(here, ids, -1) if here.any() else None


def merge_nearest(distances: FloatArray, ids: IntArray, found: FloatArray, found_ids: IntArray) -> None:
    """Put neighbors found elsewhere among those found so far, in place, by distance and then id."""
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


def index_for(search: Any, n_neighbors: int, metric: str, n_jobs: int | None) -> Any:
    """An index that is searched as asked, with another metric."""
    how = clone(search).set_params(metric=metric)
    kind = StreamedNeighbors if isinstance(how, Streamed) else ClasswiseNeighbors
    return kind(n_neighbors, search=how, n_jobs=n_jobs)


MOST_SAMPLED = 50_000


@dataclass(frozen=True, eq=False)
class Sample(Stored):
    """Which of the training rows the learned parts have seen."""

    rows: IntArray
    n_rows: int

    def places(self, positions: IntArray) -> IntArray:
        """Positions among all training rows, then validation rows, as those among the sample, then validation rows."""
        place = np.minimum(np.searchsorted(self.rows, positions), len(self.rows) - 1)
        seen = np.where(self.rows[place] == positions, place, -1)
        return np.where(positions >= self.n_rows, positions - self.n_rows + len(self.rows), seen)


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """Training rows that are read in blocks, their classes as positions in `classes`, and the sample of them."""

    blocks: Blocks
    codes: IntArray
    classes: Array
    sample: Sample


def sample_of(codes: IntArray, random_state: Any) -> Sample:
    """The training rows that learned parts are shown."""
    # Not drawn from a generator, which would change what comes after.
    seed = random_state if isinstance(random_state, int) else 0
    return Sample(draw_sample(codes, MOST_SAMPLED, seed), len(codes))


def stream_rows(
    X: Any, y: ArrayLike, classes: ArrayLike | None, random_state: Any, owner: str
) -> StreamedRows:
    """Training rows to be read in blocks, with their labels checked and a sample drawn."""
    blocks, labels = as_blocks(X), check_labels(y, "y", owner)
    check_same_length(blocks, "X", labels, "y", owner)
    if not len(labels):
        raise InvalidInputError(f"X passed to {owner} has no rows.")
    known = np.unique(labels) if classes is None else np.asarray(classes)
    codes = encode_labels(labels, known, "y", owner)
    return StreamedRows(blocks, codes, known, sample_of(codes, random_state))
