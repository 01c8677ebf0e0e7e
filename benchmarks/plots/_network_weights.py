"""What the paper's aggregator has learned: its two weight matrices, and how they complement each other."""

from typing import TYPE_CHECKING, Any

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import FloatArray
from neighboragg._pool.network import NetworkAggregator
from neighboragg.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["NetworkWeightsDisplay"]


class NetworkWeightsDisplay:
    """Weights of neighbors and of probabilities as heat maps.

    Parameters
    ----------
    neighbor_weights : ndarray of shape (C, C * K)
        W_h: column c * K + k belongs to the k-th nearest row of class c.
    probability_weights : ndarray of shape (C, C)
        W_p.

    Attributes
    ----------
    correlation : float
        Pearson's, over classes, of the mean of the diagonal block of W_h and the diagonal entry of W_p. Negative where
        classes with little weight on their neighbors have much on the classifier. NaN for two classes or fewer.
    axes_ : tuple of matplotlib Axes
        Those of W_h and W_p, after `plot`.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.metrics import NetworkWeightsDisplay
    >>> neighbors = np.kron(np.diag([1.0, 2.0, 3.0]), np.ones((1, 5)))
    >>> display = NetworkWeightsDisplay(neighbors, np.diag([3.0, 2.0, 1.0]))
    >>> round(display.correlation, 2)
    -1.0
    """

    axes_: "tuple[Axes, Axes]"
    figure_: "Figure | SubFigure"

    def __init__(self, neighbor_weights: FloatArray, probability_weights: FloatArray) -> None:
        n_classes = len(probability_weights)
        if probability_weights.shape != (n_classes, n_classes) or (
            neighbor_weights.ndim != 2
            or len(neighbor_weights) != n_classes
            or neighbor_weights.shape[1] % n_classes
        ):
            raise InvalidParameterError(
                "The weights of NetworkWeightsDisplay must be matrices of shape (C, C * K) and (C, C). "
                f"Got {neighbor_weights.shape} and {probability_weights.shape}."
            )
        self.neighbor_weights = neighbor_weights
        self.probability_weights = probability_weights
        self.correlation = self._correlation()

    @classmethod
    def from_aggregator(
        cls, aggregator: NetworkAggregator, *, figure: "Figure | SubFigure | None" = None
    ) -> "NetworkWeightsDisplay":
        """Draw the weights of a fitted network.

        Parameters
        ----------
        aggregator : NetworkAggregator
            Fitted, such as ``NeighborAgg("network").fit(…).aggregator_``.
        figure : matplotlib Figure, default=None
            To draw on; None makes a new one.

        Returns
        -------
        display : NetworkWeightsDisplay
        """
        return cls(aggregator.W_h_, aggregator.W_p_).plot(figure)

    def plot(
        self, figure: "Figure | SubFigure | None" = None, *, cmap: str = "viridis"
    ) -> "NetworkWeightsDisplay":
        """Draw both matrices side by side, on one scale each.

        Parameters
        ----------
        figure : matplotlib Figure, default=None
            To draw on; None makes a new one.
        cmap : str, default="viridis"
            Colors, bright for large weights.

        Returns
        -------
        display : NetworkWeightsDisplay
            The display itself.
        """
        pyplot = import_extra("matplotlib.pyplot", extra="cli", purpose=type(self).__name__)
        self.figure_ = figure or pyplot.figure(figsize=(11, 3.5), layout="constrained")
        left, right = self.figure_.subplots(1, 2, width_ratios=[3, 1])
        n_classes = len(self.probability_weights)
        width = self.neighbor_weights.shape[1] // n_classes
        for axes, weights in ((left, self.neighbor_weights), (right, self.probability_weights)):
            image = axes.imshow(weights, cmap=cmap, aspect="auto", interpolation="nearest")
            self.figure_.colorbar(image, ax=axes)
            axes.set_ylabel("Class")
        for edge in range(1, n_classes):
            left.axvline(edge * width - 0.5, color="white", linewidth=0.5)
        left.set_xticks((np.arange(n_classes) + 0.5) * width - 0.5, [str(c) for c in range(n_classes)])
        left.set(xlabel=f"Neighbors, {width} of each class", title="Weights of neighbors")
        right.set(xlabel="Probability", title=f"Of probabilities; correlation {self.correlation:.2f}")
        self.axes_ = (left, right)
        return self

    def _correlation(self) -> float:
        n_classes = len(self.probability_weights)
        if n_classes < 3:
            return float("nan")
        blocks: Any = self.neighbor_weights.reshape(n_classes, n_classes, -1)
        of_neighbors = blocks[np.arange(n_classes), np.arange(n_classes)].mean(axis=1)
        return float(np.corrcoef(of_neighbors, np.diag(self.probability_weights))[0, 1])
