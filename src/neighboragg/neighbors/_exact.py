"""Exact nearest rows in every class: fast candidates, refined and certified.

Distances from a single-precision matrix product change with blocking and lose digits near zero. So the
product only proposes candidates; their distances are recomputed by direct difference in double precision,
and a rounding-error bound certifies that no other row can be nearer. What cannot be certified (ties,
duplicates, extreme values) is searched wider, and finally against every row. The result depends on the
data alone, never on batches, threads or shards.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from neighboragg._typing import Array, FloatArray, IntArray
from neighboragg.persistence import Stored, require

__all__ = ["Frame", "Queries", "Reference"]

UNIT_ROUNDOFF = 2.0**-24
SMALLEST_SINGLE = 2.0**-126  # what is smaller loses digits, or all of them
LARGEST_SINGLE = 1e15  # sums of squares stay finite in single precision
LARGEST_EXPONENT = 400  # of the scale: rows of any size times it stay finite in double precision
CACHE_ELEMENTS = 2**18  # differences refined at a time: 2 MB, so that they stay in cache
PANEL_ROWS = 2**10  # small classes share one matrix product up to this many rows
CHECKED_ROWS = 2**13  # rows looked at together when an index is loaded
PRODUCT_ELEMENTS = 2**22  # values of the product at a time: 16 MB


@dataclass(frozen=True)
class Frame:
    """Center and scale that make single precision accurate: coordinates small, scale a power of two."""

    center: FloatArray
    scale: float

    @classmethod
    def of(cls, rows: FloatArray) -> "Frame":
        """Choose the frame from (a sample of) the rows."""
        sample = rows[:: max(1, len(rows) // 10_000)].astype(np.float64)
        center = np.median(sample, axis=0)
        reach = float(np.abs(sample - center).max(initial=0.0))
        exponent = min(-int(np.floor(np.log2(reach))), LARGEST_EXPONENT) if reach > 0 else 0
        return cls(center, 2.0**exponent)

    def scaled(self, rows: FloatArray) -> FloatArray:
        """Rows in the frame, in double precision."""
        return (rows.astype(np.float64) - self.center) * self.scale


@dataclass(frozen=True)
class Queries:
    """A batch of query rows: as given, in single precision for the product, and their norms in the frame."""

    rows: FloatArray
    single: FloatArray
    norms: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, frame: Frame) -> "Queries":
        """Prepare query rows for a frame."""
        # Nothing beyond the range of single precision is certified, so that its norm need only be that large.
        scaled = np.clip(frame.scaled(rows), -(LARGEST_SINGLE**2), LARGEST_SINGLE**2)
        norms = np.sqrt(np.einsum("nd,nd->n", scaled, scaled))
        return cls(rows, np.column_stack([_to_single(scaled), np.ones(len(rows), np.float32)]), norms)

    def __getitem__(self, chosen: Array | slice) -> "Queries":
        return Queries(self.rows[chosen], self.single[chosen], self.norms[chosen])

    def __len__(self) -> int:
        return len(self.rows)


class Reference(Stored):
    """The reference rows, sorted by (class, id), and their single-precision copy for the product.

    Parameters
    ----------
    rows : ndarray of shape (n, n_features)
    codes : ndarray of shape (n,)
        Class of each row; ids are the positions in these arrays.
    n_classes : int
    """

    def __init__(self, rows: FloatArray, codes: IntArray, n_classes: int) -> None:
        self.ids = np.argsort(codes, kind="stable")
        self.rows = rows[self.ids]
        self.starts = np.searchsorted(codes[self.ids], np.arange(n_classes + 1))
        self.frame = Frame.of(self.rows)
        self.table = self._table(slice(None))

    def _table(self, part: slice) -> FloatArray:
        """[−2y, |y|²] of some rows; its product with [x, 1] is the squared distance less |x|², the same for all."""
        scaled = self.frame.scaled(self.rows[part])
        norms = np.minimum(np.einsum("nd,nd->n", scaled, scaled), LARGEST_SINGLE**2)
        return np.column_stack([-2 * _to_single(scaled), norms.astype(np.float32)])

    def _saved_state(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "frame"}

    def _after_load(self) -> None:
        n, width = self.rows.shape
        require(self.rows.dtype in (np.float32, np.float64), "rows of an index are not floats")
        require(
            n > 0 and self.ids.shape == (n,) and self.ids.dtype.kind == "i",
            "an index has other ids than rows",
        )
        require(self.starts.ndim == 1 and self.starts.dtype.kind == "i", "an index has no classes")
        sizes = np.diff(self.starts)
        require(
            len(sizes) and self.starts[0] == 0 and self.starts[-1] == n,
            "an index has rows outside its classes",
        )
        require((sizes >= 0).all(), "an index has classes of fewer than no rows")
        codes = np.repeat(np.arange(len(sizes)), sizes)
        require((np.sort(self.ids) == np.arange(n)).all(), "an index has ids that are not those of its rows")
        require((np.lexsort((self.ids, codes)) == np.arange(n)).all(), "an index is not in the order of ids")
        parts = [slice(start, start + CHECKED_ROWS) for start in range(0, n, CHECKED_ROWS)]
        require(all(np.isfinite(self.rows[part]).all() for part in parts), "rows of an index are not finite")
        self.frame = Frame.of(self.rows)
        # A stored table can be mapped from the file and shared; it is believed only if it is what would be made.
        stored = isinstance(self.table, np.ndarray) and self.table.dtype == np.float32
        if not (stored and self.table.shape == (n, width + 1)) or any(
            (self._table(part) != self.table[part]).any() for part in parts
        ):
            self.table = self._table(slice(None))

    @property
    def sizes(self) -> IntArray:
        """Rows of each class."""
        return np.diff(self.starts)

    def in_order(self) -> tuple[FloatArray, IntArray]:
        """Rows and codes in the order of their ids."""
        position = np.argsort(self.ids)
        return self.rows[position], np.repeat(np.arange(len(self.sizes)), self.sizes)[position]

    def nearest(
        self, queries: Queries, distances: FloatArray, ids: IntArray, excluded: IntArray | None
    ) -> None:
        """Fill `distances` and `ids`, each (n, C, K), with the nearest rows of each class by (distance, id).

        `excluded` holds the id that each query must not find, -1 for none.
        """
        excluded = None if excluded is None else self._positions(excluded)
        for panel in self._panels():
            low, high = self.starts[panel.start], self.starts[panel.stop]
            step = max(16, PRODUCT_ELEMENTS // max(1, high - low))
            for start in range(0, len(queries), step):
                part = slice(start, start + step)
                some = queries[part]
                product = some.single @ self.table[low:high].T
                for c in panel:
                    block = slice(self.starts[c], self.starts[c + 1])
                    excluded_here = None if excluded is None else _within(excluded[part], block)
                    distances[part, c], ids[part, c] = self._nearest_in(
                        block,
                        some,
                        product[:, block.start - low : block.stop - low],
                        distances.shape[2],
                        excluded_here,
                    )

    def _nearest_in(
        self, block: slice, queries: Queries, product: FloatArray, k: int, excluded: IntArray | None
    ) -> tuple[FloatArray, IntArray]:
        """Nearest rows of one class; missing ones are (inf, -1)."""
        n, size = product.shape
        distances = np.full((n, k), np.inf)
        ids = np.full((n, k), -1, dtype=np.int64)
        if not size:
            return distances, ids
        rows, row_ids = self.rows[block], self.ids[block]
        pending = np.arange(n)
        for width in (k + 1 + (excluded is not None), 4 * k + 32, size):
            chosen = slice(None) if len(pending) == n else pending
            squared, positions, certain = _search(
                rows,
                self.frame,
                queries[chosen],
                product[chosen],
                k,
                None if excluded is None else excluded[chosen],
                min(width, size),
            )
            found = positions.shape[1]
            done = pending[certain]
            distances[done, :found] = np.sqrt(squared[certain])
            ids[done, :found] = np.where(np.isinf(squared), -1, row_ids[positions])[certain]
            pending = pending[~certain]
            if not len(pending):
                break
        return distances, ids

    def _panels(self) -> Iterator[range]:
        """Runs of consecutive classes that share a product: many small ones, or a single large one."""
        first = 0
        for c in range(1, len(self.starts)):
            if c == len(self.starts) - 1 or self.starts[c + 1] - self.starts[first] > PANEL_ROWS:
                yield range(first, c)
                first = c

    def _positions(self, wanted: IntArray) -> IntArray:
        """Where rows with these ids stand in the sorted rows; -1 stays -1."""
        position = np.empty(len(self.ids) + 1, dtype=np.int64)
        position[self.ids] = np.arange(len(self.ids))
        position[-1] = -1
        return position[wanted]


def _within(positions: IntArray, block: slice) -> IntArray | None:
    """Positions relative to a block, -1 outside of it; None if all are."""
    inside = (positions >= block.start) & (positions < block.stop)
    return np.where(inside, positions - block.start, -1) if inside.any() else None


def _search(
    rows: FloatArray,
    frame: Frame,
    queries: Queries,
    product: FloatArray,
    n_neighbors: int,
    excluded: IntArray | None,
    width: int,
) -> tuple[FloatArray, IntArray, Array]:
    """Nearest among `width` candidates, and for which queries they are certainly the nearest of all."""
    everything = width >= len(rows)
    if everything:
        squared = _squared_to_all(rows, queries.rows)
        positions = np.broadcast_to(np.arange(len(rows)), squared.shape)
        reached = np.full(len(queries), np.inf)
    else:
        positions, last = _smallest(product, width)
        reached = last + queries.norms**2
        squared = _squared_to_candidates(rows, positions, queries.rows)
    if excluded is not None:
        squared[positions == excluded[:, None]] = np.inf
    order = np.argsort(squared, axis=1, kind="stable")[:, :n_neighbors]
    squared = np.take_along_axis(squared, order, axis=1)
    positions = np.take_along_axis(positions, order, axis=1)
    if everything:
        return squared, positions, np.ones(len(queries), dtype=bool)
    return squared, positions, _certain(frame, queries, squared[:, -1], reached)


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


def _certain(frame: Frame, queries: Queries, squared_last: FloatArray, reached: FloatArray) -> Array:
    """Whether every row that was not a candidate is farther than the last neighbor kept.

    A row with norm beyond |x| + r is farther than r by the triangle inequality. For all others the error of
    the product is at most about (d + 8) u (2 |x| + r)², and as many times the smallest number where terms
    underflow, so their squared distance exceeds `reached` minus that, if |x| + r is small enough that neither
    they nor the query were clipped.
    """
    radius = np.minimum(np.sqrt(squared_last) * frame.scale, LARGEST_SINGLE)
    terms = 1.1 * (len(frame.center) + 8)
    error = terms * (UNIT_ROUNDOFF * (2.0 * queries.norms + radius) ** 2 + 4.0 * SMALLEST_SINGLE)
    unclipped = queries.norms + radius < LARGEST_SINGLE
    return np.asarray(unclipped & (radius**2 < reached - error))


def _squared_to_candidates(rows: FloatArray, positions: IntArray, queries: FloatArray) -> FloatArray:
    """Squared distances by direct difference, cache-sized blocks at a time."""
    n, width = positions.shape
    squared = np.empty((n, width))
    step = max(1, CACHE_ELEMENTS // (width * rows.shape[1]))
    for start in range(0, n, step):
        part = slice(start, start + step)
        differences = rows[positions[part]].astype(np.float64)
        differences -= queries[part, None, :]
        np.einsum("nkd,nkd->nk", differences, differences, out=squared[part])
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
            squared[start : start + step, top : top + height] = np.einsum(
                "nkd,nkd->nk", differences, differences
            )
    return squared


def _to_single(scaled: FloatArray) -> FloatArray:
    return np.clip(scaled, -LARGEST_SINGLE, LARGEST_SINGLE).astype(np.float32)
