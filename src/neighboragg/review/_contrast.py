"""Which values of a row differ from those of its neighbors."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from neighboragg.review._items import Neighbor, ReviewItem, ReviewSet

__all__ = ["ColumnContrast", "column_scales", "contrast", "show_value"]

# A column is marked if it lies at least this far from the neighbors, in standard deviations of the column
# (a category that no neighbor shares counts as one), and is among the farthest few.
_SMALLEST_GAP = 0.75
_MOST_MARKS = 3
_MOST_SCALED = 5_000


@dataclass(frozen=True, slots=True)
class ColumnContrast:
    """One column of a row beside what is usual among the neighbors of the given and the suggested class."""

    name: str
    value: str | None
    usual: tuple[str | None, str | None]
    gaps: tuple[float, float]
    unlike: tuple[bool, bool]


def column_scales(review_set: ReviewSet) -> dict[str, float]:
    """Standard deviation of each numeric column over rows and neighbors of the review set, or some of them."""
    items = review_set.items[:: 1 + len(review_set.items) // _MOST_SCALED]
    contents = [item.content for item in items]
    contents += [neighbor.content for item in items for neighbor in item.neighbors]
    scales = {}
    for name in review_set.columns:
        numbers = [float(content[name]) for content in contents if _is_number(content.get(name))]  # type: ignore[arg-type]
        spread = float(np.std(numbers)) if numbers else 0.0
        scales[name] = spread if spread > 0.0 else 1.0
    return scales


def contrast(item: ReviewItem, columns: Sequence[str], scales: Mapping[str, float]) -> list[ColumnContrast]:
    """Compare each column of a table row with the neighbors of both classes."""
    names = [name for name in columns if name in item.content]
    groups = (item.given_neighbors, item.suggested_neighbors)
    gaps = [
        [_gap(item.content[name], _values(group, name), scales[name]) for name in names] for group in groups
    ]
    marks = [_marks(group) for group in gaps]
    return [
        ColumnContrast(
            name=name,
            value=show_value(item.content[name]),
            usual=(_usual(_values(groups[0], name)), _usual(_values(groups[1], name))),
            gaps=(gaps[0][place], gaps[1][place]),
            unlike=(place in marks[0], place in marks[1]),
        )
        for place, name in enumerate(names)
    ]


def show_value(value: Any) -> str | None:
    """Return a value as text, None for a missing one."""
    if _is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def _values(neighbors: Sequence[Neighbor], name: str) -> list[Any]:
    return [neighbor.content.get(name) for neighbor in neighbors]


def _gap(value: Any, others: list[Any], scale: float) -> float:
    """Distance to the median in standard deviations, or the share of neighbors with another category."""
    if not others:
        return 0.0
    if _is_number(value) and (numbers := [float(other) for other in others if _is_number(other)]):
        return abs(float(value) - float(np.median(numbers))) / scale
    return sum(show_value(other) != show_value(value) for other in others) / len(others)


def _usual(others: list[Any]) -> str | None:
    """Median of numbers, else the most frequent value."""
    if not others:
        return ""
    if numbers := [float(other) for other in others if _is_number(other)]:
        return show_value(float(np.median(numbers)))
    return Counter(show_value(other) for other in others).most_common(1)[0][0]


def _marks(gaps: list[float]) -> set[int]:
    farthest = sorted(range(len(gaps)), key=lambda place: (-gaps[place], place))[:_MOST_MARKS]
    return {place for place in farthest if gaps[place] >= _SMALLEST_GAP}


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not _is_missing(value)


def _is_missing(value: Any) -> bool:
    # Only NaN differs from itself.
    return value is None or bool(value != value)
