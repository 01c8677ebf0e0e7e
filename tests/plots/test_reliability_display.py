"""The reliability curve as a figure, and its points."""

import numpy as np
import pytest

from neighboragg.exceptions import InvalidInputError
from neighboragg.metrics import ReliabilityDisplay, expected_calibration_error, reliability_curve


def test_points_are_bin_means():
    curve = reliability_curve([1, 0, 1, 1, 1], [0.1, 0.5, 0.5, 0.95, 1.0], n_bins=10)
    np.testing.assert_allclose(curve.trust, [0.1, 0.5, 0.975])
    np.testing.assert_allclose(curve.correct, [1.0, 0.5, 1.0])
    assert curve.n_rows.tolist() == [1, 2, 2]


def test_its_mean_gap_is_the_calibration_error():
    rng = np.random.default_rng(0)
    trust = rng.random(400).round(2)
    correct = rng.random(400) < trust**2
    curve = reliability_curve(correct, trust, n_bins=15)
    gap = (curve.n_rows * np.abs(curve.trust - curve.correct)).sum() / 400
    assert gap == pytest.approx(expected_calibration_error(correct, trust))


def test_trust_must_be_a_probability():
    with pytest.raises(InvalidInputError, match="must be probabilities in"):
        reliability_curve([True, False], [0.5, 2.0])


def test_lines_and_legend(legend_of):
    first = ReliabilityDisplay.from_predictions([True, False], [0.9, 0.1], name="trust")
    second = ReliabilityDisplay.from_predictions([True, False], [0.8, 0.3], name="plain", ax=first.ax_)
    assert legend_of(second) == ["trust", "plain"]
    np.testing.assert_array_equal(first.line_.get_ydata(), [0.0, 1.0])
    assert len(first.ax_.lines) == 3  # the diagonal once
    assert second.figure_ is first.figure_
