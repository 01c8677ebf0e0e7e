"""Confidence and trust over a plane, for data with two features."""

from typing import TYPE_CHECKING, Any

import numpy as np

from neighboragg._core.checks import check_integer, check_labels, check_rows, check_same_length
from neighboragg._core.packages import import_extra
from neighboragg._core.types import ArrayLike, FloatArray
from neighboragg.exceptions import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["TrustSurfaceDisplay"]

MARGIN = 0.1


class TrustSurfaceDisplay:
    """Where a classifier is confident, and where it deserves trust, side by side over two features.

    Make one with `from_estimator`.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
        The grid of each feature.
    confidence, trust : ndarray of shape (n, n)
        Of the predicted class at each point; rows go with `y`.
    points : ndarray of shape (m, 2), default=None
        Rows to draw.
    labels : ndarray of shape (m,), default=None
        Their classes, which give them colors.

    Attributes
    ----------
    axes_ : tuple of matplotlib Axes
        Those of confidence and trust, after `plot`.
    figure_ : matplotlib Figure
    """

    axes_: "tuple[Axes, Axes]"
    figure_: "Figure | SubFigure"

    def __init__(
        self,
        x: FloatArray,
        y: FloatArray,
        confidence: FloatArray,
        trust: FloatArray,
        *,
        points: FloatArray | None = None,
        labels: Any = None,
    ) -> None:
        self.x, self.y = x, y
        self.confidence, self.trust = confidence, trust
        self.points, self.labels = points, labels

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        resolution: int = 60,
        figure: "Figure | SubFigure | None" = None,
    ) -> "TrustSurfaceDisplay":
        """Ask a model for points all over the plane, and draw what it says.

        Parameters
        ----------
        model : TrustedClassifier
            Fitted on two features.
        X : array-like of shape (m, 2)
            Rows to draw, which also say how far the plane reaches.
        y : array-like of shape (m,)
        resolution : int, default=60
            Points along each feature.
        figure : matplotlib Figure, default=None
            To draw on; None makes a new one.

        Returns
        -------
        display : TrustSurfaceDisplay

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.linear_model import LogisticRegression
        >>> from neighboragg import TrustedClassifier
        >>> from neighboragg.metrics import TrustSurfaceDisplay
        >>> X, y = make_moons(300, noise=0.1, random_state=0)
        >>> model = TrustedClassifier(LogisticRegression(), random_state=0).fit(X, y)
        >>> TrustSurfaceDisplay.from_estimator(model, X, y, resolution=10).trust.shape
        (10, 10)
        """
        owner = cls.__name__
        rows, labels = check_rows(X, "X", owner), check_labels(y, "y", owner)
        check_same_length(rows, "X", labels, "y", owner)
        if rows.shape[1] != 2 or not len(rows):
            raise InvalidInputError(
                f"X passed to {owner} must have rows with two features. Got an array of shape {rows.shape}.\n"
                "Hint: a plane has two directions; choose two features, or reduce the others, e.g. by PCA(2)."
            )
        n = check_integer(resolution, "resolution", owner, minimum=2)
        low, high = rows.min(axis=0), rows.max(axis=0)
        reach = MARGIN * np.where(high > low, high - low, 1.0)
        grid = [np.linspace(low[j] - reach[j], high[j] + reach[j], n) for j in range(2)]
        plane = np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, 2)
        found = model.assess(plane)
        return cls(
            grid[0],
            grid[1],
            found.probability.reshape(n, n),
            found.trust.reshape(n, n),
            points=rows,
            labels=labels,
        ).plot(figure)

    def plot(
        self, figure: "Figure | SubFigure | None" = None, *, cmap: str = "RdYlGn"
    ) -> "TrustSurfaceDisplay":
        """Draw both surfaces with the same colors.

        Parameters
        ----------
        figure : matplotlib Figure, default=None
            To draw on; None makes a new one.
        cmap : str, default="RdYlGn"
            Colors from 0 to 1.

        Returns
        -------
        display : TrustSurfaceDisplay
            The display itself.
        """
        pyplot = import_extra("matplotlib.pyplot", extra="cli", purpose=type(self).__name__)
        self.figure_ = figure or pyplot.figure(figsize=(9, 4), layout="constrained")
        left, right = self.figure_.subplots(1, 2, sharex=True, sharey=True)
        for axes, surface, title in ((left, self.confidence, "Confidence"), (right, self.trust, "Trust")):
            image = axes.contourf(
                self.x, self.y, surface, levels=np.linspace(0, 1, 21), cmap=cmap, vmin=0, vmax=1, alpha=0.8
            )
            if self.points is not None:
                codes = np.unique(self.labels, return_inverse=True)[1]
                axes.scatter(
                    *self.points.T, c=codes, cmap="tab10", vmax=9, s=8, edgecolors="black", linewidths=0.3
                )
            axes.set_title(title)
        self.figure_.colorbar(image, ax=[left, right], label="In the predicted class")
        self.axes_ = (left, right)
        return self
