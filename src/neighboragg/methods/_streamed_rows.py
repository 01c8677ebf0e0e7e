"""Training rows that do not fit in memory, and the sample that stands for them where all must be at hand."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from neighboragg._row_selection import draw_sample
from neighboragg._typing import Array, ArrayLike, IntArray
from neighboragg._validation import check_labels, check_same_length, encode_labels
from neighboragg.exceptions import InvalidInputError
from neighboragg.neighbors import Blocks, as_blocks
from neighboragg.persistence import Stored, require

__all__ = ["Sample", "StreamedRows", "sample_of", "stream_rows"]

MOST_SAMPLED = 50_000


@dataclass(frozen=True, eq=False)
class Sample(Stored):
    """Which of the training rows the learned parts have seen.

    Parameters
    ----------
    rows : ndarray of int of shape (m,)
        Positions in the training rows, ascending.
    n_rows : int
        Number of training rows.
    """

    rows: IntArray
    n_rows: int

    def places(self, positions: IntArray) -> IntArray:
        """Positions among all training rows, then validation rows, as those among the sample, then validation rows.

        -1 for what the learned parts have not seen.
        """
        place = np.minimum(np.searchsorted(self.rows, positions), len(self.rows) - 1)
        seen = np.where(self.rows[place] == positions, place, -1)
        return np.where(positions >= self.n_rows, positions - self.n_rows + len(self.rows), seen)

    def _after_load(self) -> None:
        require(isinstance(self.rows, np.ndarray) and self.rows.dtype.kind == "i", "its sample has no rows")
        require(len(self.rows) and (np.diff(self.rows) > 0).all(), "its sample is not in order")
        require(self.rows[0] >= 0 and self.rows[-1] < self.n_rows, "its sample is not of its rows")


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
