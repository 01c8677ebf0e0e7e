"""Plots of the risk-coverage curve and of the reliability curve."""

from typing import TYPE_CHECKING, Any

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import ArrayLike
from neighboragg.metrics._bootstrap import RiskCoverageBand, risk_coverage_band
from neighboragg.metrics._calibration import ReliabilityCurve, reliability_curve
from neighboragg.metrics._selective import RiskCoverageCurve, aurc, risk_coverage_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D


def axes_for(display: object, ax: "Axes | None") -> "Axes":
    """The given axes, or the axes of a new figure."""
    if ax is not None:
        return ax
    pyplot = import_extra("matplotlib.pyplot", extra="cli", purpose=type(display).__name__)
    axes: Axes = pyplot.subplots(layout="constrained")[1]
    return axes


# The curve is also drawn at these coverages, because it bends between its thresholds.
GRID = np.linspace(0.0, 1.0, 101)


class RiskCoverageDisplay:
    """Plot of selective risk against coverage, optionally with a bootstrap band and the best possible curve.

    Use `from_predictions` to create one; the constructor takes precomputed results.

    Parameters
    ----------
    curve : RiskCoverageCurve
        The curve, from `neighboragg.metrics.risk_coverage_curve`.
    aurc : float, default=None
        Area under the curve, for the legend.
    band : RiskCoverageBand, default=None
        Bootstrap limits around the curve; `from_predictions` computes them.
    name : str, default=None
        Name of the trust score, for the legend.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The curve, after `plot`.
    band_ : matplotlib PolyCollection or None
        The bootstrap band.
    oracle_line_ : matplotlib Line2D or None
        The curve of the best possible order.
    ax_ : matplotlib Axes
        Axes with the curve.
    figure_ : matplotlib Figure
        Figure with the axes.

    See Also
    --------
    neighboragg.metrics.risk_coverage_curve : The points of the curve.

    Notes
    -----
    Between two thresholds the line shows the expected risk when tied rows are accepted in random order, so it is
    curved. To the left of the highest threshold it extends the risk of that threshold to coverage 0.

    Examples
    --------
    >>> from neighboragg.metrics import risk_coverage_curve
    >>> from neighboragg.metrics import RiskCoverageDisplay
    >>> display = RiskCoverageDisplay(curve=risk_coverage_curve([True, False], [0.9, 0.1]))
    >>> display.curve.risk.tolist()
    [0.0, 0.5]
    """

    line_: "Line2D"
    band_: "PolyCollection | None"
    oracle_line_: "Line2D | None"
    ax_: "Axes"
    figure_: "Figure | SubFigure"

    def __init__(
        self,
        *,
        curve: RiskCoverageCurve,
        aurc: float | None = None,
        band: RiskCoverageBand | None = None,
        name: str | None = None,
    ) -> None:
        self.curve = curve
        self.aurc = aurc
        self.band = band
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        correct: ArrayLike,
        trust: ArrayLike,
        *,
        name: str | None = None,
        ax: "Axes | None" = None,
        confidence_level: float | None = None,
        n_resamples: int = 200,
        random_state: int | np.random.RandomState | None = None,
        plot_oracle: bool = False,
        **kwargs: Any,
    ) -> "RiskCoverageDisplay":
        """Compute and plot the curve of a trust score.

        Parameters
        ----------
        correct : array-like of shape (n_samples,)
            Whether each prediction was correct; boolean, or the integers 0 and 1.
        trust : array-like of shape (n_samples,)
            Trust in each prediction, higher for more trusted.
        name : str, default=None
            Name of the trust score, for the legend.
        ax : matplotlib Axes, default=None
            Axes to plot on. None makes a new figure.
        confidence_level : float, default=None
            Pointwise level of the bootstrap band, in (0, 1). None means no band.
        n_resamples : int, default=200
            Number of bootstrap resamples behind the band.
        random_state : int, RandomState instance or None, default=None
            Seed of the resampling; pass an int for a reproducible band.
        plot_oracle : bool, default=False
            Whether to plot the best curve that any trust could reach with these errors.
        **kwargs : dict
            Further arguments of matplotlib's ``plot`` for the curve.

        Returns
        -------
        display : RiskCoverageDisplay
            The display, plotted.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from neighboragg.metrics import RiskCoverageDisplay
        >>> display = RiskCoverageDisplay.from_predictions([True, False], [0.9, 0.1], name="trust")
        >>> display.line_.get_label()
        'trust (AURC = 0.250)'
        """
        band = None
        if confidence_level is not None:
            band = risk_coverage_band(
                correct,
                trust,
                confidence_level=confidence_level,
                n_resamples=n_resamples,
                random_state=random_state,
            )
        display = cls(
            curve=risk_coverage_curve(correct, trust), aurc=aurc(correct, trust), band=band, name=name
        )
        return display.plot(ax=ax, plot_oracle=plot_oracle, **kwargs)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        name: str | None = None,
        plot_oracle: bool = False,
        **kwargs: Any,
    ) -> "RiskCoverageDisplay":
        """Plot the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None makes a new figure.
        name : str, default=None
            Name for the legend. None means the display's own.
        plot_oracle : bool, default=False
            Whether to plot the best curve that any trust could reach with these errors.
        **kwargs : dict
            Further arguments of matplotlib's ``plot`` for the curve.

        Returns
        -------
        display : RiskCoverageDisplay
            The display itself.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from neighboragg.metrics import risk_coverage_curve
        >>> from neighboragg.metrics import RiskCoverageDisplay
        >>> display = RiskCoverageDisplay(curve=risk_coverage_curve([True, False], [0.9, 0.1])).plot()
        >>> float(display.line_.get_ydata()[-1])
        0.5
        """
        axes = axes_for(self, ax)
        self.ax_, self.figure_ = axes, axes.figure
        coverage = np.union1d(self.curve.coverage, GRID)
        line_kwargs = {"label": self._label(name)} | kwargs
        (self.line_,) = axes.plot(coverage, self.curve.expected_risk(coverage), **line_kwargs)
        self.band_ = self._draw_band(axes)
        self.oracle_line_ = self._draw_oracle(axes) if plot_oracle else None
        axes.set(xlabel="Coverage", ylabel="Selective risk", xlim=(0.0, 1.0))
        # matplotlib gives unnamed lines a label with an underscore and leaves them out here.
        if axes.get_legend_handles_labels()[1]:
            axes.legend(loc="upper left")
        return self

    def _label(self, name: str | None) -> str | None:
        """Text of the legend; None leaves the curve out of it."""
        shown = self.name if name is None else name
        area = None if self.aurc is None else f"AURC = {self.aurc:.3f}"
        return f"{shown} ({area})" if shown and area else shown or area

    def _draw_band(self, axes: "Axes") -> "PolyCollection | None":
        if self.band is None:
            return None
        return axes.fill_between(
            self.band.coverage,
            self.band.low,
            self.band.high,
            color=self.line_.get_color(),
            alpha=0.2,
            linewidth=0,
        )

    def _draw_oracle(self, axes: "Axes") -> "Line2D":
        """Rank all errors last: the risk is zero up to the accuracy, and every further row is an error."""
        accuracy = 1.0 - self.curve.risk[-1]
        coverage = np.union1d(GRID, accuracy)
        wrong = np.maximum(coverage - accuracy, 0.0)
        risk = np.divide(wrong, coverage, out=np.zeros_like(coverage), where=coverage > accuracy)
        (line,) = axes.plot(coverage, risk, color="0.4", linestyle="--", label="Best possible")
        return line


class ReliabilityDisplay:
    """Plot of the share of correct predictions against trust; perfectly calibrated trust lies on the diagonal.

    Use `from_predictions` to create one; the constructor takes precomputed results.

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
    >>> from neighboragg.metrics import ReliabilityDisplay
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
        """Plot the curve, and the diagonal if the axes are empty.

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
