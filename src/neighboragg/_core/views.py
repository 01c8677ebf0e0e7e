"""Several views of the same rows: stacked for storage, taken apart for search."""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np

from neighboragg._core.checks import check_rows
from neighboragg._core.types import FloatArray
from neighboragg.exceptions import InvalidInputError

#: The only view of plain rows, and its learned metric.
FEATURES, LEARNED = "features", "learned metric"


def learned(view: str) -> str:
    """What the learned metric of a view is called."""
    return LEARNED if view == FEATURES else f"{view}, {LEARNED}"


def view_of(name: str) -> str:
    """The view that a learned metric is of, or the view itself."""
    return FEATURES if name == LEARNED else name.removesuffix(f", {LEARNED}")


def stack_views(views: Mapping[str, Any], name: str, owner: str) -> tuple[FloatArray, dict[str, int]]:
    """All views side by side, and the number of columns of each."""
    for view in views:
        if not isinstance(view, str):
            raise InvalidInputError(
                f"The views of {name} passed to {owner} must be called by str. Got {view!r}."
            )
    rows = {view: check_rows(X, f"{name}[{view!r}]", owner) for view, X in views.items()}
    lengths = {view: len(found) for view, found in rows.items()}
    if len(set(lengths.values())) != 1:
        given = ", ".join(f"{view!r} {n}" for view, n in lengths.items()) or "no view at all"
        raise InvalidInputError(
            f"The views of {name} passed to {owner} must have the same number of rows. Got {given}.\n"
            "Hint: each view needs a vector for every row, in the same order."
        )
    return np.hstack(list(rows.values())), {view: found.shape[1] for view, found in rows.items()}


def columns_of(widths: Mapping[str, int]) -> dict[str, slice]:
    """Where each view is."""
    ends = accumulate(widths.values())
    return {view: slice(end - width, end) for (view, width), end in zip(widths.items(), ends, strict=True)}


def split_views(vectors: FloatArray, widths: Mapping[str, int]) -> dict[str, FloatArray]:
    """The views by name, from all of them side by side."""
    return {view: vectors[:, columns] for view, columns in columns_of(widths).items()}
