"""Given against suggested labels as a matrix of counts."""

from typing import TYPE_CHECKING, Any

import numpy as np

from neighboragg._typing import ArrayLike
from neighboragg._validation import check_integer, check_labels, check_same_length
from neighboragg.plots._axes import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage
    from matplotlib.text import Text

__all__ = ["LabelMatrixDisplay"]

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
    neighboragg.mislabel.MislabelResult.plot_matrix : The same for what was found.

    Examples
    --------
    >>> from neighboragg.plots import LabelMatrixDisplay
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
