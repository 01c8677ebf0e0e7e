"""The reference rows of a search, and the normalization that makes single precision accurate."""

from copy import copy
from dataclasses import dataclass

import numpy as np

from neighboragg._core.types import FloatArray, IntArray
from neighboragg._store.objects import Stored

# Rows per block of the table. The compiled search uses the same number, and saved files contain the table: a change of
# its layout must raise `_store.file.FORMAT`.
BLOCK_ROWS = 24
CHECKED_BLOCKS = 2**13 // BLOCK_ROWS  # blocks that are computed or compared at a time
LARGEST_SINGLE = 1e15  # sums of squares stay finite in single precision
LARGEST_EXPONENT = 400  # of the scale: the scaled rows stay finite in double precision


@dataclass(frozen=True)
class Normalization(Stored):
    """Center and scale that make coordinates small enough for single precision; the scale is a power of two."""

    center: FloatArray
    scale: float

    @classmethod
    def of(cls, rows: FloatArray) -> "Normalization":
        """Choose center and scale from (a sample of) the rows."""
        sample = rows[:: max(1, len(rows) // 10_000)].astype(np.float64)
        center = np.median(sample, axis=0)
        reach = float(np.abs(sample - center).max(initial=0.0))
        exponent = min(-int(np.floor(np.log2(reach))), LARGEST_EXPONENT) if reach > 0 else 0
        return cls(center, 2.0**exponent)

    def scaled(self, rows: FloatArray) -> FloatArray:
        """Normalized rows, in double precision."""
        return (rows.astype(np.float64) - self.center) * self.scale


class Reference(Stored):
    """The reference rows, sorted by (class, id), and their single-precision copy for the product."""

    def __init__(self, rows: FloatArray, codes: IntArray, n_classes: int) -> None:
        self.ids = np.argsort(codes, kind="stable")
        self.rows = rows[self.ids]
        self.starts = np.searchsorted(codes[self.ids], np.arange(n_classes + 1))
        self.normalization = Normalization.of(self.rows)
        self.table = self._table()

    def _table(self) -> FloatArray:
        n, d = self.rows.shape
        table = np.empty((-(-n // BLOCK_ROWS), d + 1, BLOCK_ROWS), dtype=np.float32)
        for blocks in table_parts(len(table)):
            table[blocks] = self._blocks(blocks)
        return table

    def _blocks(self, blocks: slice) -> FloatArray:
        """Compute some blocks of the table, with zeros after the last row."""
        return table_of(
            self.normalization.scaled(self.rows[blocks.start * BLOCK_ROWS : blocks.stop * BLOCK_ROWS])
        )

    @property
    def sizes(self) -> IntArray:
        """Rows of each class."""
        return np.diff(self.starts)

    def in_order(self) -> tuple[FloatArray, IntArray]:
        """Rows and codes in the order of their ids."""
        position = np.argsort(self.ids)
        return self.rows[position], np.repeat(np.arange(len(self.sizes)), self.sizes)[position]

    def positions_of(self, ids: IntArray) -> IntArray:
        """Positions of rows with these ids among the sorted rows; -1 stays -1."""
        position = np.empty(len(self.ids) + 1, dtype=np.int64)
        position[self.ids] = np.arange(len(self.ids))
        position[-1] = -1
        return position[ids]

    def classes(self, first: int, stop: int) -> tuple["Reference", int]:
        """A view of some consecutive classes, and the position of its first row in this reference."""
        low, high = int(self.starts[first]) // BLOCK_ROWS * BLOCK_ROWS, int(self.starts[stop])
        part = copy(self)
        # Starts at the beginning of a block; rows before the first class belong to no class of the view.
        part.starts = self.starts[first : stop + 1] - low
        part.rows, part.ids = self.rows[low:high], self.ids[low:high]
        part.table = self.table[low // BLOCK_ROWS : -(-high // BLOCK_ROWS)]
        return part, low

    def table_of(self, low: int, high: int) -> FloatArray:
        """The single-precision copy of rows `low` to `high`, one row after another."""
        first = low // BLOCK_ROWS
        blocks = self.table[first : -(-high // BLOCK_ROWS)]
        flat = blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])
        return flat[low - first * BLOCK_ROWS : high - first * BLOCK_ROWS]


def table_of(scaled: FloatArray) -> FloatArray:
    """[−2y, |y|²] of normalized rows, in single precision and in blocks, with zeros after the last row."""
    norms = np.minimum(np.einsum("nd,nd->n", scaled, scaled), LARGEST_SINGLE**2)
    flat = np.column_stack([-2 * to_single(scaled), norms.astype(np.float32)])
    flat = np.pad(flat, ((0, -len(flat) % BLOCK_ROWS), (0, 0)))
    return flat.reshape(-1, BLOCK_ROWS, flat.shape[1]).transpose(0, 2, 1)


def to_single(scaled: FloatArray) -> FloatArray:
    """Convert normalized rows to single precision, clipped to keep their squares finite."""
    return np.clip(scaled, -LARGEST_SINGLE, LARGEST_SINGLE).astype(np.float32)


def table_parts(n_blocks: int) -> list[slice]:
    """Slices of the table that are small enough to process in double precision."""
    return [slice(start, start + CHECKED_BLOCKS) for start in range(0, n_blocks, CHECKED_BLOCKS)]
