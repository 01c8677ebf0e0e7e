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

# With more classes than this, the counts in the cells would be too small to read.
MAX_WRITTEN = 15


class LabelMatrixDisplay:
    """Matrix that counts how often each label was given for each suggested label."""

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
        """Draw the matrix."""
        axes = axes_for(self, ax)
        self.ax_, self.figure_ = axes, axes.figure
        axes.set(xlabel="Suggested label", ylabel="Given label")
        if not len(self.classes):
            self.image_, self.texts_ = None, [axes.text(0.5, 0.5, "No labels to show", ha="center")]
            return self
        style: dict[str, Any] = {"cmap": cmap, "vmin": 0} | kwargs
        self.image_ = axes.imshow(self.counts, **style)
        self.texts_ = self._write_counts(axes) if len(self.classes) <= MAX_WRITTEN else []
        places, names = range(len(self.classes)), [str(label) for label in self.classes.tolist()]
        # A dollar sign in a label does not start a formula.
        axes.set_xticks(places, names, rotation=90 if max(map(len, names)) > 3 else 0, parse_math=False)
        axes.set_yticks(places, names, parse_math=False)
        if self.n_hidden:
            axes.set_title(f"{self.n_hidden:,} rows with other labels not shown", fontsize="medium")
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
    """Histogram of label scores, flagged rows in another color, with the threshold as a line."""

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
        """Draw the histogram."""
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
            axes.set_ylim(bottom=0.5)  # keeps a bar of one label visible
        self.line_ = None
        if self.threshold is not None and np.isfinite(self.threshold):
            self.line_ = axes.axvline(
                self.threshold, color="0.2", linestyle="--", label=f"threshold ({self.threshold:.3g})"
            )
        axes.set(xlabel="Score of the label (low is suspicious)", ylabel="Labels")
        axes.legend(loc="upper left")  # the emptiest corner; "best" can be slow and then warns
        return self
