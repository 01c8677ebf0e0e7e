"""Top-label calibration: bins worked out by hand, ties, rare classes, and the published guarantee."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods import TopLabelCalibration
from sizes import examples


def two_classes(confidence, predicted):
    """Probabilities with the given confidence in the predicted class."""
    confidence, predicted = np.asarray(confidence, dtype=float), np.asarray(predicted)
    return np.where(predicted[:, None] == np.arange(2), confidence[:, None], 1 - confidence[:, None])


def fitted(proba, y, points_per_bin, classes=None):
    X = np.zeros((len(y), 1))
    return TopLabelCalibration(points_per_bin=points_per_bin).fit(X, y, proba_val=proba, classes=classes)


def test_bins_of_each_predicted_class_by_hand():
    # Predicted 0: confidences .6 .7 | .8 .9 .95, correct 0 1 | 1 1 0; predicted 1: .55 .65 | .75 .85, 1 0 | 1 1.
    predicted = np.array([0] * 5 + [1] * 4)
    correct = np.array([0, 1, 1, 1, 0, 1, 0, 1, 1], dtype=bool)
    proba = two_classes([0.6, 0.7, 0.8, 0.9, 0.95, 0.55, 0.65, 0.75, 0.85], predicted)
    order = np.random.default_rng(0).permutation(9)
    method = fitted(proba[order], np.where(correct, predicted, 1 - predicted)[order], 2)
    np.testing.assert_allclose(method.edges_, [[0.8], [0.75]])
    np.testing.assert_allclose(method.accuracy_, [[1 / 2, 2 / 3], [1 / 2, 1.0]])
    assert not method.pooled_.any()
    trust = method.predict_trust(np.zeros((3, 1)), [[0.79, 0.21], [0.8, 0.2], [0.25, 0.75]])
    np.testing.assert_allclose(trust, [[1 / 2, 1 / 2], [2 / 3, 1 / 2], [1 / 2, 1.0]])


def test_rows_that_tie_share_a_bin_and_no_bin_is_small():
    confidence = np.array([0.5] + [0.75] * 6 + [1.0])
    correct = np.array([0, 1, 1, 0, 1, 1, 0, 1], dtype=bool)
    method = fitted(two_classes(confidence, np.zeros(8, int)), np.where(correct, 0, 1), 4)
    np.testing.assert_allclose(method.accuracy_, [[5 / 8], [5 / 8]])
    # Two rows a bin: the first cannot end before the ties do, the last would hold a single row.
    method = fitted(two_classes(confidence, np.zeros(8, int)), np.where(correct, 0, 1), 2)
    np.testing.assert_allclose(method.accuracy_, [[5 / 8], [5 / 8]])


def test_a_rarely_predicted_class_uses_the_bins_of_all_together():
    predicted = np.array([0, 0, 0, 0, 1])
    correct = np.array([0, 1, 1, 1, 0], dtype=bool)
    proba = two_classes([0.6, 0.7, 0.8, 0.9, 0.65], predicted)
    method = fitted(proba, np.where(correct, predicted, 1 - predicted), 2)
    np.testing.assert_array_equal(method.pooled_, [False, True])
    # Pooled: .6 .65 | .7 .8 .9.
    np.testing.assert_allclose(method.edges_, [[0.8], [0.7]])
    np.testing.assert_allclose(method.accuracy_, [[1 / 2, 1.0], [0.0, 1.0]])


def test_classes_with_different_numbers_of_bins():
    predicted = np.array([0] * 6 + [1] * 2)
    proba = two_classes([0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95], predicted)
    method = fitted(proba, [0, 1, 0, 0, 0, 0, 1, 0], 2)
    np.testing.assert_allclose(method.edges_, [[0.7, 0.8], [np.inf, np.inf]])
    np.testing.assert_allclose(method.accuracy_, [[0.5, 1.0, 1.0], [0.5, 0.0, 0.0]])
    np.testing.assert_allclose(method.score_samples([[0.0]], [[0.0, 1.0]]), [0.5])


def test_fewer_rows_than_a_bin_needs_make_one_bin():
    method = fitted(two_classes([0.6, 0.9, 0.8], [0, 0, 0]), [0, 0, 1], 50)
    assert method.edges_.shape == (2, 0)
    np.testing.assert_allclose(method.predict_trust([[0.0]], [[0.1, 0.9]]), [[2 / 3, 2 / 3]])


@examples(100)
@given(
    arrays(float, st.integers(1, 80), elements=st.integers(10, 20).map(lambda i: i / 20)),
    st.integers(1, 12),
    st.integers(0, 2**32 - 1),
)
def test_every_bin_is_large_enough_and_answers_with_its_accuracy(confidence, points_per_bin, seed):
    correct = np.random.default_rng(seed).random(len(confidence)) < confidence
    proba = two_classes(confidence, np.zeros(len(confidence), int))
    method = fitted(proba, np.where(correct, 0, 1), points_per_bin, classes=[0, 1])
    trust = method.predict_trust(np.zeros((len(confidence), 1)), proba)[:, 0]
    bins = np.searchsorted(method.edges_[0], proba[:, 0], side="right")
    n_bins = bins.max() + 1
    assert n_bins <= max(1, len(confidence) // points_per_bin)
    for b in range(n_bins):
        assert (bins == b).sum() >= min(points_per_bin, len(confidence))
        np.testing.assert_allclose(trust[bins == b], correct[bins == b].mean())


def test_without_ties_bins_have_equal_mass():
    confidence = np.linspace(0.5, 1, 199)
    method = fitted(two_classes(confidence, np.zeros(199, int)), np.zeros(199, int), 50, classes=[0, 1])
    sizes = np.bincount(np.searchsorted(method.edges_[0], confidence, side="right"))
    np.testing.assert_array_equal(sizes, [66, 66, 67])


def test_the_guarantee_of_histogram_binning_holds():
    """All bins within sqrt(log(2B / alpha) / (2 (m - 1))) of the truth, m rows a bin, with probability 1 - alpha."""
    n, least, alpha, repetitions = 200, 50, 0.2, 1000
    rng = np.random.default_rng(0)
    failures = 0
    for _ in range(repetitions):
        confidence = rng.uniform(0.5, 1, n)
        correct = rng.random(n) < confidence**2
        method = fitted(
            two_classes(confidence, np.zeros(n, int)), np.where(correct, 0, 1), least, classes=[0, 1]
        )
        bounds = np.concatenate([[0.5], method.edges_[0], [1.0]])
        truth = np.diff(bounds**3) / 3 / np.diff(bounds)
        width = np.sqrt(np.log(2 * len(truth) / alpha) / (2 * (least - 1)))
        failures += (np.abs(method.accuracy_[0] - truth) > width).any()
    assert failures <= binom.ppf(1 - 1e-6, repetitions, alpha)


def test_points_per_bin_is_checked():
    with pytest.raises(InvalidParameterError) as error:
        fitted([[0.9, 0.1], [0.1, 0.9]], [0, 1], 0)
    assert str(error.value) == (
        "The 'points_per_bin' parameter of TopLabelCalibration must be an int >= 1. Got 0 instead."
    )


@examples(60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 20))
def test_broken_ties_follow_the_confidence_and_nothing_else_moves(seed, n, points_per_bin):
    rng = np.random.default_rng(seed)
    proba, y = rng.dirichlet(np.ones(3), n), rng.integers(0, 3, n)
    X, queries = np.zeros((n, 1)), rng.dirichlet(np.ones(3), 50)
    plain, broken = (
        TopLabelCalibration(points_per_bin=points_per_bin, break_ties=ties)
        .fit(X, y, proba_val=proba, classes=[0, 1, 2])
        .predict_trust(np.zeros((50, 1)), queries)
        .ravel()
        for ties in (False, True)
    )
    np.testing.assert_allclose(broken, plain, atol=1e-3)
    np.testing.assert_array_equal(np.lexsort((queries.ravel(), plain)), np.argsort(broken, kind="stable"))
    assert broken.min() >= 0
    assert broken.max() <= 1
