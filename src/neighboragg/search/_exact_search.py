"""Exact search: compiled if possible, otherwise NumPy, with the same results."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self

import numpy as np

from neighboragg._core.threads import ONE_THREAD
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg.search._kernel import can_search, kernel_in_use, search_compiled
from neighboragg.search._reference import LARGEST_SINGLE, Normalization, Reference, to_single

UNIT_ROUNDOFF = 2.0**-24
SMALLEST_SINGLE = 2.0**-126  # smaller values lose some or all digits
CACHE_ELEMENTS = 2**18  # differences computed at a time: 2 MB, which fits in the cache
PANEL_ROWS = 2**10  # small classes with up to this many rows in total share one matrix product
PRODUCT_ELEMENTS = 2**22  # values of the product computed at a time: 16 MB
N_SUMS = 8  # partial sums of a squared distance


@dataclass(frozen=True)
class Queries:
    """A batch of query rows as given and in single precision, with their normalized norms."""

    rows: FloatArray
    single: FloatArray
    norms: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, normalization: Normalization) -> "Queries":
        """Normalize query rows."""
        # Queries beyond the range of single precision are never certified, so their norms can be clipped.
        scaled = np.clip(normalization.scaled(rows), -(LARGEST_SINGLE**2), LARGEST_SINGLE**2)
        norms = np.sqrt(np.einsum("nd,nd->n", scaled, scaled))
        return cls(rows, np.column_stack([to_single(scaled), np.ones(len(rows), np.float32)]), norms)

    def __getitem__(self, chosen: Array | slice) -> "Queries":
        return Queries(self.rows[chosen], self.single[chosen], self.norms[chosen])

    def __len__(self) -> int:
        return len(self.rows)


class Product(Protocol):
    """Squared distances in single precision, up to a constant for each query; used to propose candidates."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Queries and reference rows."""

    def __getitem__(self, chosen: Any) -> Self:
        """Some queries, or some reference rows."""

    def smallest(self, width: int) -> tuple[IntArray, FloatArray]:
        """Ascending positions of the `width` smallest values of each query, and the largest of those values."""


class HostProduct:
    """A product in an array."""

    def __init__(self, values: FloatArray) -> None:
        self._values = values

    @property
    def shape(self) -> tuple[int, ...]:
        return self._values.shape

    def __getitem__(self, chosen: Any) -> "HostProduct":
        return HostProduct(self._values[chosen])

    def smallest(self, width: int) -> tuple[IntArray, FloatArray]:
        return _smallest(self._values, width)


def search_with_numpy(
    reference: Reference,
    rows: FloatArray,
    hidden: IntArray | None,
    distances: FloatArray,
    ids: IntArray,
    multiply: Callable[..., Product] | None = None,
) -> None:
    """Fill `distances` and `ids`, each (n, C, K), with the nearest rows of each class by (distance, id)."""
    queries = Queries.of(rows, reference.normalization)
    starts = reference.starts
    for panel in _panels(starts):
        low, high = int(starts[panel.start]), int(starts[panel.stop])
        product_with = (
            _array_product(reference.table_of(low, high))
            if multiply is None
            else partial(multiply, low=low, high=high)
        )
        step = max(16, PRODUCT_ELEMENTS // max(1, high - low))
        for start in range(0, len(queries), step):
            part = slice(start, start + step)
            some = queries[part]
            product = product_with(some.single)
            for c in panel:
                block = slice(starts[c], starts[c + 1])
                distances[part, c], ids[part, c] = _nearest_in(
                    reference,
                    block,
                    some,
                    product[:, int(block.start - low) : int(block.stop - low)],
                    distances.shape[2],
                    None if hidden is None else _within(hidden[part], block),
                )


def refine(
    rows: FloatArray, candidates: IntArray, queries: FloatArray, k: int, hidden: IntArray | None
) -> tuple[FloatArray, IntArray]:
    """Distances and positions, each (n, k), of the nearest candidates by (distance, position); -1 for missing ones."""
    positions = np.sort(np.where(candidates < 0, len(rows), candidates), axis=1)
    distances = np.sqrt(_squared_to_candidates(rows, np.minimum(positions, len(rows) - 1), queries))
    distances[positions == len(rows)] = np.inf
    if hidden is not None:
        distances[positions == hidden[:, None]] = np.inf
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    distances = np.take_along_axis(distances, order, axis=1)
    positions = np.take_along_axis(positions, order, axis=1)
    return distances, np.where(np.isinf(distances), -1, positions)


def _array_product(table: FloatArray) -> Callable[[FloatArray], Product]:
    return lambda single: HostProduct(single @ table.T)


def _nearest_in(
    reference: Reference,
    block: slice,
    queries: Queries,
    product: Product,
    k: int,
    hidden: IntArray | None,
) -> tuple[FloatArray, IntArray]:
    """Nearest rows of one class; (inf, -1) for missing ones."""
    n, size = product.shape
    distances = np.full((n, k), np.inf)
    ids = np.full((n, k), -1, dtype=np.int64)
    if not size:
        return distances, ids
    rows, row_ids = reference.rows[block], reference.ids[block]
    pending = np.arange(n)
    for width in (k + 1 + (hidden is not None), 4 * k + 32, size):
        chosen = slice(None) if len(pending) == n else pending
        nearest, positions, certain = _search(
            rows,
            reference.normalization,
            queries[chosen],
            product[chosen],
            k,
            None if hidden is None else hidden[chosen],
            min(width, size),
        )
        found = positions.shape[1]
        done = pending[certain]
        distances[done, :found] = nearest[certain]
        ids[done, :found] = np.where(np.isinf(nearest), -1, row_ids[positions])[certain]
        pending = pending[~certain]
        if not len(pending):
            break
    return distances, ids


def _panels(starts: IntArray) -> Iterator[range]:
    """Ranges of consecutive classes that share a product: many small classes, or one large class."""
    first = 0
    for c in range(1, len(starts)):
        if c == len(starts) - 1 or starts[c + 1] - starts[first] > PANEL_ROWS:
            yield range(first, c)
            first = c


def _within(positions: IntArray, block: slice) -> IntArray | None:
    """Positions relative to a block, -1 for positions outside; None if all are outside."""
    inside = (positions >= block.start) & (positions < block.stop)
    return np.where(inside, positions - block.start, -1) if inside.any() else None


def _search(
    rows: FloatArray,
    normalization: Normalization,
    queries: Queries,
    product: Product,
    n_neighbors: int,
    hidden: IntArray | None,
    width: int,
) -> tuple[FloatArray, IntArray, Array]:
    """Nearest among `width` candidates, and a mask of the queries for which they are certainly the nearest of all."""
    everything = width >= len(rows)
    if everything:
        distances = np.sqrt(_squared_to_all(rows, queries.rows))
        positions = np.broadcast_to(np.arange(len(rows)), distances.shape)
    else:
        positions, last = product.smallest(width)
        distances = np.sqrt(_squared_to_candidates(rows, positions, queries.rows))
    if hidden is not None:
        distances[positions == hidden[:, None]] = np.inf
    # Sort by the reported distance, then by id: two squares with the same root count as a tie.
    order = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    distances = np.take_along_axis(distances, order, axis=1)
    positions = np.take_along_axis(positions, order, axis=1)
    if everything:
        return distances, positions, np.ones(len(queries), dtype=bool)
    return distances, positions, _certain(normalization, queries, distances[:, -1], last + queries.norms**2)


def _smallest(values: FloatArray, width: int) -> tuple[IntArray, FloatArray]:
    """Ascending positions of the `width` smallest values of each row, and the largest of those values."""
    n, size = values.shape
    last = np.partition(values, width - 1, axis=1)[:, width - 1]
    chosen = values <= last[:, None]
    tied = np.flatnonzero(np.count_nonzero(chosen, axis=1) > width)
    if len(tied):
        chosen[tied] = False
        chosen[tied[:, None], np.argpartition(values[tied], width - 1, axis=1)[:, :width]] = True
    flat = np.flatnonzero(chosen).reshape(n, width)
    return flat - size * np.arange(n)[:, None], last.astype(np.float64)


def _certain(
    normalization: Normalization, queries: Queries, last_distances: FloatArray, reached: FloatArray
) -> Array:
    """Whether every row that is not a candidate is farther away than the last neighbor."""
    radius = np.minimum(last_distances * normalization.scale, LARGEST_SINGLE)
    terms = 1.1 * (len(normalization.center) + 8)
    error = terms * (UNIT_ROUNDOFF * (2.0 * queries.norms + radius) ** 2 + 4.0 * SMALLEST_SINGLE)
    unclipped = queries.norms + radius < LARGEST_SINGLE
    return np.asarray(unclipped & (radius**2 < reached - error))


def _squared_to_candidates(rows: FloatArray, positions: IntArray, queries: FloatArray) -> FloatArray:
    """Squared distances by direct difference, in blocks that fit in the cache."""
    n, width = positions.shape
    squared = np.empty((n, width))
    step = max(1, CACHE_ELEMENTS // (width * rows.shape[1]))
    for start in range(0, n, step):
        part = slice(start, start + step)
        differences = rows[positions[part]].astype(np.float64)
        differences -= queries[part, None, :]
        squared[part] = _sums_of_squares(differences)
    return squared


def _squared_to_all(rows: FloatArray, queries: FloatArray) -> FloatArray:
    """Squared distances from every query to every row by direct difference."""
    n, size, n_features = len(queries), *rows.shape
    squared = np.empty((n, size))
    height = max(1, CACHE_ELEMENTS // n_features)
    step = max(1, CACHE_ELEMENTS // (min(height, size) * n_features))
    for top in range(0, size, height):
        some = rows[top : top + height].astype(np.float64)
        for start in range(0, n, step):
            differences = some[None] - queries[start : start + step, None, :]
            squared[start : start + step, top : top + height] = _sums_of_squares(differences)
    return squared


def _sums_of_squares(differences: FloatArray) -> FloatArray:
    """Sum the squares over the last axis in the order of the compiled search; overwrites the differences."""
    np.multiply(differences, differences, out=differences)
    sums = np.zeros((*differences.shape[:-1], N_SUMS))
    for first in range(0, differences.shape[-1], N_SUMS):
        some = differences[..., first : first + N_SUMS]
        sums[..., : some.shape[-1]] += some
    s = np.moveaxis(sums, -1, 0)
    return np.asarray(((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])))


def exact_search(
    reference: Reference, rows: FloatArray, k: int, hidden: IntArray | None = None
) -> tuple[FloatArray, IntArray]:
    """Distances and ids, each (n, C, k), of the nearest rows of each class by (distance, id)."""
    shape = (len(rows), len(reference.sizes), k)
    distances, ids = np.full(shape, np.inf), np.full(shape, -1, dtype=np.int64)
    if not len(reference.rows):
        return distances, ids
    library = kernel_in_use().library if can_search(reference, k) else None
    if library is not None:
        search_compiled(library, reference, rows, hidden, distances, ids)
    else:
        with ONE_THREAD:
            search_with_numpy(reference, rows, hidden, distances, ids)
    return distances, ids
