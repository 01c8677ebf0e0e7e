"""The reliability curve as a figure."""

from typing import TYPE_CHECKING, Any

from neighboragg._typing import ArrayLike
from neighboragg.metrics import ReliabilityCurve, reliability_curve
from neighboragg.plots._axes import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

__all__ = ["ReliabilityDisplay"]


class ReliabilityDisplay:
    """Share of correct predictions against trust; on the diagonal trust is a probability of being right.

    Make one with `from_predictions`; the constructor takes what has been computed already.

    Parameters
    ----------
    curve : ReliabilityCurve
        From `neighboragg.metrics.reliability_curve`.
    name : str, default=None
        Name of the trust score, for the legend.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The curve, after `plot`.
    ax_ : matplotlib Axes
        Axes with the curve.
    figure_ : matplotlib Figure
        Figure with the axes.

    Examples
    --------
    >>> from neighboragg.metrics import reliability_curve
    >>> from neighboragg.plots import ReliabilityDisplay
    >>> display = ReliabilityDisplay(curve=reliability_curve([True, False], [0.9, 0.1]))
    >>> display.curve.correct.tolist()
    [0.0, 1.0]
    """

    line_: "Line2D"
    ax_: "Axes"
    figure_: "Figure | SubFigure"

    def __init__(self, *, curve: ReliabilityCurve, name: str | None = None) -> None:
        self.curve = curve
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        correct: ArrayLike,
        trust: ArrayLike,
        *,
        n_bins: int = 10,
        name: str | None = None,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> "ReliabilityDisplay":
        """Compute and plot the curve of a trust score.

        Parameters
        ----------
        correct : array-like of shape (n_samples,)
            Whether each prediction was correct; boolean, or the integers 0 and 1.
        trust : array-like of shape (n_samples,)
            Trust in each prediction, in [0, 1].
        n_bins : int, default=10
            Number of bins of equal width.
        name : str, default=None
            Name of the trust score, for the legend.
        ax : matplotlib Axes, default=None
            Axes to plot on. None makes a new figure.
        **kwargs : dict
            Further arguments of matplotlib's ``plot`` for the curve.

        Returns
        -------
        display : ReliabilityDisplay
            The display, plotted.
        """
        return cls(curve=reliability_curve(correct, trust, n_bins=n_bins), name=name).plot(ax=ax, **kwargs)

    def plot(
        self, ax: "Axes | None" = None, *, name: str | None = None, **kwargs: Any
    ) -> "ReliabilityDisplay":
        """Plot the curve, and the diagonal if it is the first one.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None makes a new figure.
        name : str, default=None
            Name for the legend. None means the display's own.
        **kwargs : dict
            Further arguments of matplotlib's ``plot`` for the curve.

        Returns
        -------
        display : ReliabilityDisplay
            The display itself.
        """
        axes = axes_for(self, ax)
        self.ax_, self.figure_ = axes, axes.figure
        if not axes.lines:
            axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        shown = self.name if name is None else name
        (self.line_,) = axes.plot(
            self.curve.trust, self.curve.correct, **({"marker": "o", "label": shown} | kwargs)
        )
        axes.set(xlabel="Trust", ylabel="Share correct", xlim=(0.0, 1.0), ylim=(0.0, 1.0))
        if axes.get_legend_handles_labels()[1]:
            axes.legend(loc="upper left")
        return self
