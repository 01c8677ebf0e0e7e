"""Several views of the same rows, stacked into one matrix for storage and split for search."""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np

from neighboragg._core.checks import check_rows
from neighboragg._core.types import FloatArray
from neighboragg.exceptions import InvalidInputError

#: Name of the only view of plain rows, and of its learned metric.
FEATURES, LEARNED = "features", "learned metric"


def learned(view: str) -> str:
    """Name of the learned metric of a view."""
    return LEARNED if view == FEATURES else f"{view}, {LEARNED}"


def view_of(name: str) -> str:
    """Name of the view that belongs to a learned metric, or of the view itself."""
    return FEATURES if name == LEARNED else name.removesuffix(f", {LEARNED}")


def stack_views(views: Mapping[str, Any], name: str, owner: str) -> tuple[FloatArray, dict[str, int]]:
    """Concatenate the columns of all views; also return the number of columns of each view."""
    for view in views:
        if not isinstance(view, str):
            raise InvalidInputError(
                f"The names of the views of {name} passed to {owner} must be str. Got {view!r}."
            )
    rows = {view: check_rows(X, f"{name}[{view!r}]", owner) for view, X in views.items()}
    lengths = {view: len(found) for view, found in rows.items()}
    if len(set(lengths.values())) != 1:
        given = ", ".join(f"{view!r} {n}" for view, n in lengths.items()) or "no views"
        raise InvalidInputError(
            f"The views of {name} passed to {owner} must have the same number of rows. Got {given}.\n"
            "Hint: pass one vector per row in each view, in the same order."
        )
    return np.hstack(list(rows.values())), {view: found.shape[1] for view, found in rows.items()}


def stack_known_views(
    views: Mapping[str, Any], widths: Mapping[str, int], name: str, owner: str
) -> FloatArray:
    """Concatenate the views that were seen in fit, in the order of fit, whatever the order of the mapping."""
    given = {view: views[view] for view in widths if view in views}
    rows, found = stack_views(given if len(given) == len(views) else views, name, owner)
    if found != widths or len(given) != len(views):
        raise InvalidInputError(
            f"{name} passed to {owner} has the views {found}, but fit had {widths} (with the number "
            "of features of each).\nHint: pass the same views."
        )
    return rows


def columns_of(widths: Mapping[str, int]) -> dict[str, slice]:
    """The columns of each view in the stacked matrix."""
    ends = accumulate(widths.values())
    return {view: slice(end - width, end) for (view, width), end in zip(widths.items(), ends, strict=True)}


def split_views(vectors: FloatArray, widths: Mapping[str, int]) -> dict[str, FloatArray]:
    """Split a stacked matrix into its views by name."""
    return {view: vectors[:, columns] for view, columns in columns_of(widths).items()}
