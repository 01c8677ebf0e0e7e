"""Rows that were seen in fit, recognized by a number for each."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.special import bdtrc

from neighboragg._core.stats import upper_limit
from neighboragg._core.types import Array, BoolArray, FloatArray, IntArray
from neighboragg._store.objects import Stored
from neighboragg.exceptions import FittedRowsWarning, InvalidInputError, TrustWarning

# Probability of a false alarm, and of underestimating how often rows are equal by chance.
TAIL = 1e-3
# Up to this share of duplicates among the rows of fit, a row equal to one of them is assumed to be that row.
COMMON_COPIES = 0.01
# Values hashed at a time; they fit in the cache.
HASHED_VALUES = 2**15
MIXING = [
    (np.array(shift, dtype=np.uint64), np.array(factor, dtype=np.uint64))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
]
LAST_SHIFT = np.array(31, dtype=np.uint64)


_warns: ContextVar[bool] = ContextVar("warns", default=True)


@contextmanager
def without_warning() -> Iterator[None]:
    """Do not warn about a batch within the block, in this thread: the caller reads the assessment itself."""
    token = _warns.set(False)
    try:
        yield
    finally:
        _warns.reset(token)


def warn_of_batch(note: str, *, stacklevel: int) -> None:
    """Warn of what makes a batch unlike the rows of fit, unless the caller reads its notes."""
    if _warns.get():
        warnings.warn(note, TrustWarning, stacklevel=stacklevel + 1)


@dataclass(frozen=True)
class Seen:
    """Which rows of a batch are exact copies of rows of fit."""

    copies: BoolArray
    #: For each row the position of the row of fit that must not be its own neighbor, or -1; None if there is none.
    positions: IntArray | None
    by_chance: bool


class FittedRows(Stored):
    """Hashes that recognize rows of fit."""

    def __init__(self, hashes: IntArray, codes: IntArray) -> None:
        self.positions = np.argsort(hashes, kind="stable")
        self.hashes = hashes[self.positions]
        self.codes = codes[self.positions]
        self.share_of_copies = _share_of_copies(self.hashes)

    def find(self, vectors: FloatArray, owner: str, codes: IntArray | None = None) -> Seen:
        """Recognize rows of fit in a batch; warn if there are more than chance explains."""
        queries = row_hashes(vectors)
        first = self.hashes.searchsorted(queries)
        copies = self.hashes.take(first, mode="clip") == queries
        if not copies.any():
            return Seen(copies, None, by_chance=True)
        by_chance = not _more_than_by_chance(queries, copies, self._chance_of_a_copy)
        if not by_chance and _warns.get():
            warnings.warn(
                f"{copies_among(copies, owner)}. The classifier has seen them, so their trust looks better than for "
                "new rows.\n"
                "Hint: pass rows that were not used in fit; neighboragg.find_mislabeled checks the labels of "
                "fitted rows.",
                FittedRowsWarning,
                stacklevel=4,
            )
        if codes is None and self.share_of_copies > COMMON_COPIES:
            return Seen(copies, None, by_chance)
        if codes is not None:
            end = self.hashes.searchsorted(queries, side="right")
            for row in np.flatnonzero(end - first > 1):
                twins = np.arange(first[row], end[row])
                first[row] = twins[(self.codes[twins] == codes[row]).argmax()]
        return Seen(copies, np.where(copies, self.positions.take(first, mode="clip"), -1), by_chance)

    @cached_property
    def _chance_of_a_copy(self) -> float:
        """Largest chance of being a copy that the rows of fit are compatible with."""
        return _chance_of_a_copy(self.share_of_copies, len(self.hashes))


def copies_among(copies: BoolArray, owner: str) -> str:
    """How many rows passed to a model are copies of rows that it was fitted on, in words."""
    n, n_rows = int(np.count_nonzero(copies)), len(copies)
    return (
        f"{n} of {n_rows} rows passed to {owner} ({n / n_rows:.0%}) are exact copies of rows it was fitted on"
    )


def check_validation_rows(hashes: IntArray, hashes_val: IntArray, owner: str) -> None:
    """Refuse validation rows if most are training rows; warn if more are than chance explains."""
    ordered = np.sort(hashes)
    copies = ordered.take(ordered.searchsorted(hashes_val), mode="clip") == hashes_val
    if not copies.any():
        return
    if not _more_than_by_chance(
        hashes_val, copies, _chance_of_a_copy(_share_of_copies(ordered), len(ordered))
    ):
        return
    n, n_rows = int(np.count_nonzero(copies)), len(copies)
    found = f"{n} of {n_rows} rows of X_val passed to {owner}.fit ({n / n_rows:.0%}) are exact copies of rows of X"
    hint = "Hint: pass rows as X_val that the classifier was not trained on, and leave them out of X."
    if n > n_rows / 2:
        raise InvalidInputError(
            f"{found}. Trust learned from rows that the classifier was trained on is over-confident.\n{hint}"
        )
    warnings.warn(
        f"{found}. The classifier was trained on them, so trust may be over-confident.\n{hint}",
        FittedRowsWarning,
        stacklevel=4,
    )


def _more_than_by_chance(hashes: IntArray, copies: BoolArray, chance: float) -> bool:
    # Equal rows count once: if one is a copy, all of them are.
    n_copies, n_rows = len(np.unique(hashes[copies])), len(np.unique(hashes))
    return bool(bdtrc(n_copies - 1, n_rows, chance) < TAIL)


def _chance_of_a_copy(share_of_copies: float, n: int) -> float:
    """The largest chance of being a copy that is compatible with the duplicates among n rows of fit."""
    return float(upper_limit(round(share_of_copies * n), n, TAIL))


def row_hashes(vectors: FloatArray) -> IntArray:
    """A 64-bit number for each row, the same for equal rows."""
    n, width = vectors.shape
    total = np.empty(n, dtype=np.uint64)
    place = _places(width)
    step = max(1, HASHED_VALUES // max(1, width))
    for start in range(0, n, step):
        part = slice(start, start + step)
        with np.errstate(over="ignore"):  # values beyond single precision are all alike
            rounded = np.add(vectors[part], 0.0, dtype=np.float32, casting="same_kind")  # -0.0 becomes 0.0
        np.add.reduce(_mixed(rounded.view(np.uint32) + place), axis=1, out=total[part])  # wraps around
    return total.view(np.int64)


@cache
def _places(width: int) -> Array:
    """Number of each column, in the upper half."""
    return np.arange(1, width + 1, dtype=np.uint64) << np.uint64(32)


def _mixed(x: Array) -> Array:
    """Bits spread by the finalizer of the SplitMix64 generator, in place."""
    for shift, factor in MIXING:
        x ^= x >> shift
        x *= factor
    x ^= x >> LAST_SHIFT
    return x


def _share_of_copies(hashes: Array) -> float:
    """Share of the rows, as sorted hashes, that are equal to another of them."""
    same = hashes[1:] == hashes[:-1]
    return float((np.append(same, False) | np.append(False, same)).mean())
