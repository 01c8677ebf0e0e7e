"""Scores of labels as a histogram, with the cut between flagged and kept ones."""

from typing import TYPE_CHECKING, Any

import numpy as np

from neighboragg._typing import ArrayLike
from neighboragg._validation import check_same_length, check_scores
from neighboragg.plots._axes import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

__all__ = ["LabelScoreDisplay"]

KEPT_COLOR, FLAGGED_COLOR = "#4477aa", "#ee6677"


class LabelScoreDisplay:
    """Histogram of label scores, flagged rows in another color, with the threshold as a line.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Score of each label; low is suspicious. Infinite ones are drawn at the end of the axis.
    mask : array-like of bool of shape (n,)
        Which labels are flagged.
    threshold : float, default=None
        Score below which a label is flagged. None or an infinite value draws no line.

    Attributes
    ----------
    kept_, flagged_ : matplotlib BarContainer
        Bars of the labels that are kept and flagged, after `plot`.
    line_ : matplotlib Line2D or None
        The threshold.
    ax_ : matplotlib Axes
        Axes with the histogram.
    figure_ : matplotlib Figure
        Figure with the axes.

    See Also
    --------
    neighboragg.mislabel.MislabelResult.plot_scores : The same for what was found.

    Notes
    -----
    Rows are counted on a logarithmic axis unless `log` says otherwise: flagged labels are few.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from neighboragg.plots import LabelScoreDisplay
    >>> display = LabelScoreDisplay([-2.0, 1.0, 3.0], [True, False, False], threshold=0.0).plot(bins=5)
    >>> [int(bar.get_height()) for bar in display.flagged_]
    [1, 0, 0, 0, 0]
    """

    kept_: "BarContainer"
    flagged_: "BarContainer"
    line_: "Line2D | None"
    ax_: "Axes"
    figure_: "Figure | SubFigure"

    def __init__(self, scores: ArrayLike, mask: ArrayLike, threshold: float | None = None) -> None:
        owner = type(self).__name__
        self.scores = check_scores(scores, "scores", owner)
        self.mask = np.asarray(mask, dtype=bool)
        check_same_length(self.scores, "scores", self.mask, "mask", owner)
        self.threshold = threshold

    def plot(
        self, ax: "Axes | None" = None, *, bins: int = 50, log: bool = True, **kwargs: Any
    ) -> "LabelScoreDisplay":
        """Draw the histogram.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None makes a new figure.
        bins : int, default=50
            Number of bars from the lowest score to the highest.
        log : bool, default=True
            Whether to count rows on a logarithmic axis.
        **kwargs : dict
            Further arguments of matplotlib's ``bar`` for both kinds of bars.

        Returns
        -------
        display : LabelScoreDisplay
            The display itself.
        """
        axes = axes_for(self, ax)
        self.ax_, self.figure_ = axes, axes.figure
        finite = self.scores[np.isfinite(self.scores)]
        edges = np.histogram_bin_edges(finite, bins=bins)
        scores = np.clip(self.scores, edges[0], edges[-1])
        kept = np.histogram(scores[~self.mask], edges)[0]
        flagged = np.histogram(scores[self.mask], edges)[0]
        shape: dict[str, Any] = {"width": np.diff(edges), "align": "edge", "log": log} | kwargs
        of_kept: dict[str, Any] = {"bottom": flagged, "color": KEPT_COLOR, "label": f"kept ({kept.sum():,})"}
        of_flagged: dict[str, Any] = {"color": FLAGGED_COLOR, "label": f"flagged ({flagged.sum():,})"}
        self.kept_ = axes.bar(edges[:-1], kept, **(of_kept | shape))
        self.flagged_ = axes.bar(edges[:-1], flagged, **(of_flagged | shape))
        if log:
            axes.set_ylim(bottom=0.5)  # a bar of one label is seen
        self.line_ = None
        if self.threshold is not None and np.isfinite(self.threshold):
            self.line_ = axes.axvline(
                self.threshold, color="0.2", linestyle="--", label=f"threshold ({self.threshold:.3g})"
            )
        axes.set(xlabel="Score of the label (low is suspicious)", ylabel="Labels")
        axes.legend(loc="upper left")  # where the fewest labels are; "best" warns where it is slow
        return self
