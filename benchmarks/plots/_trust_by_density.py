"""Trust and confidence where rows are close together and where they are far apart."""

from typing import TYPE_CHECKING

import numpy as np

from neighboragg._core.checks import check_integer, check_outcomes
from neighboragg._core.types import ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg.exceptions import InvalidInputError
from neighboragg.metrics._displays import axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["TrustByDensityDisplay"]


class TrustByDensityDisplay:
    """Mean trust and mean confidence by local density, for right and for wrong predictions.

    Parameters
    ----------
    correct : array-like of shape (n,)
        Whether each prediction was right.
    trust, confidence : array-like of shape (n,)
    density : array-like of shape (n,)
        How close the neighbors in the predicted class are, such as their mean similarity.
    n_bins : int, default=10
        Bins with about as many rows each.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Densities between the bins; fewer where densities are equal.
    trust, confidence : dict of bool to ndarray of shape (n_bins,)
        Means by bin of right (True) and wrong (False) predictions; NaN where there are none.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from neighboragg.metrics import TrustByDensityDisplay
    >>> correct, trust, confidence = [1, 0, 1, 0], [0.9, 0.2, 0.8, 0.4], [0.9, 0.9, 0.7, 0.7]
    >>> display = TrustByDensityDisplay(correct, trust, confidence, [1, 2, 3, 4], n_bins=2)
    >>> display.trust[True].tolist(), display.trust[False].tolist()
    ([0.9, 0.8], [0.2, 0.4])
    """

    ax_: "Axes"
    figure_: "Figure | SubFigure"

    def __init__(
        self,
        correct: ArrayLike,
        trust: ArrayLike,
        confidence: ArrayLike,
        density: ArrayLike,
        *,
        n_bins: int = 10,
    ) -> None:
        owner = type(self).__name__
        hits, scores = check_outcomes(correct, trust, owner)
        plain = check_outcomes(correct, confidence, owner)[1]
        near = np.asarray(density, dtype=np.float64)
        if near.shape != scores.shape or not np.isfinite(near).all():
            raise InvalidInputError(
                f"density passed to {owner} must be one finite number per row. Got an array of shape {near.shape}."
            )
        most = check_integer(n_bins, "n_bins", owner, minimum=1)
        self.edges = np.unique(np.quantile(near, np.linspace(0, 1, most + 1)))
        bins = np.clip(np.searchsorted(self.edges, near, side="right") - 1, 0, max(len(self.edges) - 2, 0))
        self.trust = {kind: self._means(scores, bins, hits == kind) for kind in (True, False)}
        self.confidence = {kind: self._means(plain, bins, hits == kind) for kind in (True, False)}

    def plot(self, ax: "Axes | None" = None) -> "TrustByDensityDisplay":
        """Draw both scores for right and wrong predictions.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None makes a new figure.

        Returns
        -------
        display : TrustByDensityDisplay
            The display itself.
        """
        axes = axes_for(self, ax)
        self.ax_, self.figure_ = axes, axes.figure
        place = np.arange(1, max(len(self.edges), 2))
        for kind, color in ((True, "tab:green"), (False, "tab:red")):
            word = "right" if kind else "wrong"
            axes.plot(place, self.trust[kind], color=color, marker="o", label=f"trust, {word}")
            axes.plot(
                place,
                self.confidence[kind],
                color=color,
                marker="o",
                linestyle=":",
                label=f"confidence, {word}",
            )
        axes.set(
            xlabel="Local density, from sparse to dense (bins of equal size)",
            ylabel="Mean score",
            ylim=(0, 1.02),
        )
        axes.legend(loc="lower right")
        return self

    def _means(self, scores: FloatArray, bins: IntArray, rows: BoolArray) -> FloatArray:
        n = max(len(self.edges) - 1, 1)
        counts = np.bincount(bins[rows], minlength=n)
        sums = np.bincount(bins[rows], weights=scores[rows], minlength=n)
        return np.divide(sums, counts, out=np.full(n, np.nan), where=counts > 0)
