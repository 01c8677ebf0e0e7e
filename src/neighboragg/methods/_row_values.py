"""Values of rows beside those of their neighbors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["RowValues"]

SHOWN_COLUMNS = 3


@dataclass(frozen=True, eq=False)
class RowValues:
    """Data frames of the rows that are explained and of those their neighbors come from.

    Parameters
    ----------
    rows : data frame
    reference : sequence of data frames
        With the same columns; neighbors are numbered through all of them.
    """

    rows: Any
    reference: Sequence[Any]

    def difference(self, row: int, position: int) -> str:
        """The columns in which a neighbor differs most, measured by how much they vary."""
        for frame in self.reference:
            if position < len(frame):
                break
            position -= len(frame)
        found = []
        for name in self.rows.columns:
            here, there = np.asarray(self.rows[name])[row], np.asarray(frame[name])[position]
            if (size := _size(here, there, self._spreads.get(name))) > 0:
                found.append((size, f"{name} {_text(there)}, here {_text(here)}"))
        largest = sorted(found, key=lambda pair: -pair[0])[:SHOWN_COLUMNS]
        return "; ".join(text for _, text in largest) or "equal in all columns"

    @cached_property
    def _spreads(self) -> dict[Any, float]:
        """Standard deviations of the columns of numbers."""
        frame = self.reference[0]
        columns = {name: np.asarray(frame[name]) for name in frame.columns}
        return {
            name: float(np.nanstd(values.astype(np.float64))) or 1.0
            for name, values in columns.items()
            if values.dtype.kind in "iuf"
        }


def _size(here: Any, there: Any, spread: float | None) -> float:
    """Difference in standard deviations; 1 for categories that differ, 0 for vectors, which do not fit a line."""
    if np.ndim(here) or np.ndim(there):
        return 0.0
    if _is_missing(here) or _is_missing(there):
        return 0.0 if _is_missing(here) and _is_missing(there) else 1.0
    if spread is None or isinstance(here, str):
        return float(here != there)
    return abs(float(here) - float(there)) / spread


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def _text(value: Any) -> str:
    if not isinstance(value, float | np.floating):
        return str(value)
    number = float(value)
    return f"{number:,.0f}" if 1e4 <= abs(number) < 1e15 else f"{number:.4g}"
