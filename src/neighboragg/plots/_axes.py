"""Axes to draw on."""

from typing import TYPE_CHECKING

from neighboragg._optional import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["axes_for"]


def axes_for(display: object, ax: "Axes | None") -> "Axes":
    """The given axes, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = import_extra("matplotlib.pyplot", extra="cli", purpose=type(display).__name__)
    axes: Axes = pyplot.subplots(layout="constrained")[1]
    return axes
