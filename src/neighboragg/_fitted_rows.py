"""Rows that a model has been fitted on, found again among others by their vectors."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from neighboragg._binomial import upper_limit
from neighboragg._typing import Array, BoolArray, FloatArray, IntArray

__all__ = ["Copies", "copy_share", "find_copies", "more_than_by_chance", "row_hashes"]

# Probability of crying wolf, and of underestimating how often rows are equal by chance.
TAIL = 1e-3


@dataclass(frozen=True)
class Copies:
    """For each row the first of the equal rows in sorted order, and how many there are."""

    first: IntArray
    count: IntArray

    @property
    def found(self) -> BoolArray:
        """Which rows have an equal one."""
        return self.count > 0


def row_hashes(vectors: FloatArray) -> Array:
    """A 64-bit number for each row, the same for equal rows.

    In single precision, so that sums in another order, as in a batch of another size, do not matter.
    """
    rounded = np.ascontiguousarray(vectors, dtype=np.float32) + np.float32(0.0)  # -0.0 becomes 0.0
    bits = rounded.view(np.uint32).astype(np.uint64)
    total = np.zeros(len(bits), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in range(bits.shape[1]):
            total += _mixed(bits[:, column] + (np.uint64(column + 1) << np.uint64(32)))
    return total.view(np.int64)


def find_copies(hashes: Array, known: Array) -> Copies:
    """Where each hash is in the sorted hashes of the known rows."""
    first = np.searchsorted(known, hashes, side="left")
    return Copies(first, np.searchsorted(known, hashes, side="right") - first)


def copy_share(known: Array) -> float:
    """Share of the known rows, as sorted hashes, that are equal to another of them."""
    same = known[1:] == known[:-1]
    return float((np.append(same, False) | np.append(False, same)).mean())


def more_than_by_chance(n_copies: int, n_rows: int, share: float, n_known: int) -> bool:
    """Whether more rows are copies of known ones than known rows are copies of each other."""
    if not n_copies:
        return False
    chance = float(upper_limit(round(share * n_known), n_known, TAIL))
    return bool(binom.sf(n_copies - 1, n_rows, chance) < TAIL)


def _mixed(x: Array) -> Array:
    """Bits spread by the finalizer of the SplitMix64 generator."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
