"""Plots of label scores and of given against suggested labels."""

from typing import TYPE_CHECKING, Any

import numpy as np

from neighboragg._core.checks import check_integer, check_labels, check_same_length, check_scores
from neighboragg._core.types import ArrayLike
from neighboragg.metrics import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

# Beyond this many classes, counts in the cells are too small to read.
MOST_WRITTEN = 15


class LabelMatrixDisplay:
    """How often each label was given where another is suggested.

    Parameters
    ----------
    given, suggested : array-like of shape (n,)
        Labels as given, and those suggested instead, of the flagged rows.
    max_classes : int, default=30
        Most classes to show: those that occur most often on either side. Pairs with another class are left out,
        and the title says how many.

    Attributes
    ----------
    classes : ndarray of shape (n_shown,)
        The classes shown, sorted.
    counts : ndarray of int of shape (n_shown, n_shown)
        Rows as given, columns as suggested.
    n_hidden : int
        Number of rows that involve a class not shown.
    image_ : matplotlib AxesImage or None
        The matrix, after `plot`; None if there are no labels.
    texts_ : list of matplotlib Text
        The counts written into it; none if there are more than 15 classes.
    ax_ : matplotlib Axes
        Axes with the matrix.
    figure_ : matplotlib Figure
        Figure with the axes.

    See Also
    --------
    neighboragg.MislabelResult.plot_matrix : The same for what was found.

    Examples
    --------
    >>> from neighboragg.metrics import LabelMatrixDisplay
    >>> display = LabelMatrixDisplay(["cat", "cat", "dog"], ["dog", "dog", "cat"])
    >>> display.classes.tolist(), display.counts.tolist()
    (['cat', 'dog'], [[0, 2], [1, 0]])
    """

    image_: "AxesImage | None"
    texts_: "list[Text]"
    ax_: "Axes"
    figure_: "Figure | SubFigure"

    def __init__(self, given: ArrayLike, suggested: ArrayLike, *, max_classes: int = 30) -> None:
        owner = type(self).__name__
        given, suggested = check_labels(given, "given", owner), check_labels(suggested, "suggested", owner)
        check_same_length(given, "given", suggested, "suggested", owner)
        most = check_integer(max_classes, "max_classes", owner, minimum=2)
        classes, codes, sizes = np.unique(
            np.concatenate([given, suggested]), return_inverse=True, return_counts=True
        )
        shown = np.sort(np.argsort(-sizes, kind="stable")[:most])
        place = np.full(len(classes), -1)
        place[shown] = np.arange(len(shown))
        rows, columns = place[codes].reshape(2, -1)
        both = (rows >= 0) & (columns >= 0)
        self.classes = classes[shown]
        self.counts = np.zeros((len(shown), len(shown)), dtype=np.int64)
        np.add.at(self.counts, (rows[both], columns[both]), 1)
        self.n_hidden = int((~both).sum())

    def plot(self, ax: "Axes | None" = None, *, cmap: str = "Blues", **kwargs: Any) -> "LabelMatrixDisplay":
        """Draw the matrix.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None makes a new figure.
        cmap : str, default="Blues"
            Colors, light for few.
        **kwargs : dict
            Further arguments of matplotlib's ``imshow``.

        Returns
        -------
        display : LabelMatrixDisplay
            The display itself.
        """
        axes = axes_for(self, ax)
        self.ax_, self.figure_ = axes, axes.figure
        axes.set(xlabel="Suggested label", ylabel="Given label")
        if not len(self.classes):
            self.image_, self.texts_ = None, [axes.text(0.5, 0.5, "No labels to show", ha="center")]
            return self
        style: dict[str, Any] = {"cmap": cmap, "vmin": 0} | kwargs
        self.image_ = axes.imshow(self.counts, **style)
        self.texts_ = self._write_counts(axes) if len(self.classes) <= MOST_WRITTEN else []
        places, names = range(len(self.classes)), [str(label) for label in self.classes.tolist()]
        # Labels are no formulas, whatever dollar signs are in them.
        axes.set_xticks(places, names, rotation=90 if max(map(len, names)) > 3 else 0, parse_math=False)
        axes.set_yticks(places, names, parse_math=False)
        if self.n_hidden:
            axes.set_title(f"{self.n_hidden:,} more with other labels", fontsize="medium")
        return self

    def _write_counts(self, axes: "Axes") -> "list[Text]":
        half = self.counts.max(initial=0) / 2
        return [
            axes.text(
                j, i, f"{count:,}", ha="center", va="center", color="white" if count > half else "black"
            )
            for (i, j), count in np.ndenumerate(self.counts)
            if count
        ]


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
    neighboragg.MislabelResult.plot_scores : The same for what was found.

    Notes
    -----
    Rows are counted on a logarithmic axis unless `log` says otherwise: flagged labels are few.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from neighboragg.metrics import LabelScoreDisplay
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
