"""The risk-coverage plot, read back from its artists."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgba

from neighboragg.exceptions import InvalidInputError, InvalidParameterError, MissingExtraError
from neighboragg.metrics import RiskCoverageDisplay, aurc, risk_coverage_curve
from neighboragg.metrics._bootstrap import risk_coverage_band

mpl.use("Agg")

from matplotlib import pyplot as plt

CORRECT = np.array([True, True, False, True, True, False, True, False])
TRUST = np.array([0.9, 0.8, 0.8, 0.8, 0.5, 0.3, 0.3, 0.1])


def test_line_is_the_expected_risk_at_every_threshold_and_between():
    display = RiskCoverageDisplay.from_predictions(CORRECT, TRUST)
    x, y = display.line_.get_data()
    curve = risk_coverage_curve(CORRECT, TRUST)
    assert (x[0], x[-1]) == (0.0, 1.0)
    assert (np.diff(x) > 0).all()
    assert np.isin(curve.coverage, x).all()
    np.testing.assert_allclose(y[np.isin(x, curve.coverage)], curve.risk, atol=1e-12)
    np.testing.assert_allclose(y, curve.expected_risk(x))
    # Within the tie of three rows below the first: no error at 1/8, one in four at 1/2.
    np.testing.assert_allclose(y[x == 0.25], (1 / 3) / 2)


def test_axes_figure_and_labels():
    figure, axes = plt.subplots()
    display = RiskCoverageDisplay.from_predictions(CORRECT, TRUST, ax=axes)
    assert display.ax_ is axes
    assert display.figure_ is figure
    assert display.line_ in axes.get_lines()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Coverage", "Selective risk")
    assert axes.get_xlim() == (0.0, 1.0)
    assert (display.band_, display.oracle_line_) == (None, None)


def test_a_new_figure_unless_axes_are_given():
    first = RiskCoverageDisplay.from_predictions(CORRECT, TRUST)
    second = RiskCoverageDisplay.from_predictions(CORRECT, TRUST)
    assert first.figure_ is not second.figure_


def test_names_in_the_legend(legend_of):
    area = f"AURC = {aurc(CORRECT, TRUST):.3f}"
    assert legend_of(RiskCoverageDisplay.from_predictions(CORRECT, TRUST)) == [area]
    display = RiskCoverageDisplay.from_predictions(CORRECT, TRUST, name="pool")
    assert legend_of(display) == [f"pool ({area})"]
    assert legend_of(display.plot(name="other")) == [f"other ({area})"]
    curve = risk_coverage_curve(CORRECT, TRUST)
    assert legend_of(RiskCoverageDisplay(curve=curve, name="bare").plot()) == ["bare"]
    assert RiskCoverageDisplay(curve=curve).plot().ax_.get_legend() is None


def test_several_scores_share_axes(legend_of):
    display = RiskCoverageDisplay.from_predictions(CORRECT, TRUST, name="a")
    RiskCoverageDisplay.from_predictions(CORRECT, -TRUST, name="b", ax=display.ax_)
    assert len(display.ax_.get_lines()) == 2
    assert [text.split()[0] for text in legend_of(display)] == ["a", "b"]
    # The worse curve is not cut off by limits that the first has set.
    assert display.ax_.get_ylim()[1] >= 1.0


def test_line_options_reach_matplotlib(legend_of):
    display = RiskCoverageDisplay.from_predictions(CORRECT, TRUST, color="red", linewidth=3, label="mine")
    assert display.line_.get_color() == "red"
    assert display.line_.get_linewidth() == 3
    assert legend_of(display) == ["mine"]


def test_band_has_the_bootstrap_limits_and_the_color_of_its_line():
    display = RiskCoverageDisplay.from_predictions(
        CORRECT, TRUST, confidence_level=0.8, n_resamples=50, random_state=0, color="green"
    )
    band = risk_coverage_band(CORRECT, TRUST, confidence_level=0.8, n_resamples=50, random_state=0)
    (path,) = display.band_.get_paths()
    for i in range(len(band.coverage)):
        edges = path.vertices[np.isclose(path.vertices[:, 0], band.coverage[i])][:, 1]
        assert (edges.min(), edges.max()) == pytest.approx((band.low[i], band.high[i]))
    assert tuple(display.band_.get_facecolor()[0]) == to_rgba("green", alpha=0.2)
    assert display.band.confidence_level == 0.8


def test_oracle_is_the_curve_of_a_perfect_order(legend_of):
    display = RiskCoverageDisplay.from_predictions(CORRECT, TRUST, plot_oracle=True)
    x, y = display.oracle_line_.get_data()
    perfect = risk_coverage_curve(CORRECT, CORRECT)
    np.testing.assert_allclose(y, perfect.expected_risk(x), atol=1e-12)
    assert CORRECT.mean() in x
    assert legend_of(display)[1] == "Best possible"
    assert (display.curve.expected_risk(x) >= y - 1e-12).all()


@pytest.mark.parametrize("value", [True, False])
def test_oracle_with_one_kind_of_row(value):
    display = RiskCoverageDisplay.from_predictions([value] * 4, TRUST[:4], plot_oracle=True)
    x, y = display.oracle_line_.get_data()
    np.testing.assert_allclose(y[x > 0], float(not value))
    np.testing.assert_allclose(display.line_.get_ydata(), float(not value))


def test_bad_input_is_named_before_anything_is_drawn():
    with pytest.raises(InvalidInputError) as caught:
        RiskCoverageDisplay.from_predictions([True, False], [0.1])
    assert str(caught.value) == (
        "correct and trust passed to risk_coverage_curve must have the same number of rows. Got 2 and 1."
    )
    with pytest.raises(InvalidParameterError) as caught:
        RiskCoverageDisplay.from_predictions([True, False], [0.1, 0.2], confidence_level=95)
    assert str(caught.value) == (
        "The 'confidence_level' parameter of risk_coverage_band must be a number in (0, 1). Got 95 instead."
    )
    assert plt.get_fignums() == []


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    display = RiskCoverageDisplay(curve=risk_coverage_curve(CORRECT, TRUST))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError) as caught:
        display.plot()
    assert str(caught.value) == (
        "RiskCoverageDisplay needs the package 'matplotlib', which is not installed.\n"
        'Hint: pip install "neighboragg[cli]"'
    )


@pytest.mark.full
def test_importing_plots_does_not_import_matplotlib():
    script = "import sys, neighboragg.metrics; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_drawing_does_not_switch_interactive_mode():
    before = plt.isinteractive(), mpl.get_backend()
    RiskCoverageDisplay.from_predictions(CORRECT, TRUST, plot_oracle=True)
    assert (plt.isinteractive(), mpl.get_backend()) == before
