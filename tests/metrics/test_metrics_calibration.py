"""ECE and Brier score against direct sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.metrics import brier_score_loss

from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.metrics import expected_calibration_error
from neighboragg.metrics._calibration import grouped_brier_score
from neighboragg.metrics._ranking import group_ties

ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 30)), min_size=1, max_size=60)


def brier_score(correct, trust):
    return grouped_brier_score(group_ties(np.asarray(correct), np.asarray(trust)))


def split(rows):
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows]) / 30.0


def error_over_bins(correct, trust, bins):
    return sum(
        (bins == b).mean() * abs(correct[bins == b].mean() - trust[bins == b].mean()) for b in np.unique(bins)
    )


@given(ROWS, st.integers(1, 40))
def test_uniform_bins_are_closed_on_the_right(rows, n_bins):
    correct, trust = split(rows)
    # In integers: trust = k / 30 lies in bin b if b < k * n_bins / 30 <= b + 1.
    numerators = np.rint(trust * 30).astype(int)
    bins = np.maximum(-(-numerators * n_bins // 30) - 1, 0)
    assert expected_calibration_error(correct, trust, n_bins=n_bins) == pytest.approx(
        error_over_bins(correct, trust, bins), abs=1e-12
    )


def test_quantile_bins_hold_equal_numbers_without_ties():
    rng = np.random.default_rng(0)
    trust = rng.permutation(np.linspace(0.1, 0.9, 60) ** 2)
    correct = rng.uniform(size=60) < trust
    bins = np.argsort(np.argsort(trust)) // 5
    assert expected_calibration_error(correct, trust, n_bins=12, strategy="quantile") == pytest.approx(
        error_over_bins(correct, trust, bins), abs=1e-12
    )


def test_a_tie_that_overfills_a_quantile_bin_is_not_split():
    # Half of the rows share one value: split over bins, the order of rows would matter.
    trust = np.array([0.5] * 6 + [0.6, 0.7, 0.8, 0.9, 0.95, 1.0])
    correct = np.arange(12) % 2 == 0
    bins = np.array([0] * 6 + [2, 2, 2, 3, 3, 3])
    expected = error_over_bins(correct, trust, bins)
    assert expected_calibration_error(correct, trust, n_bins=4, strategy="quantile") == pytest.approx(
        expected
    )


@given(ROWS, st.randoms(use_true_random=False), st.sampled_from(["uniform", "quantile"]))
def test_order_of_rows_does_not_change_a_bit(rows, random, strategy):
    correct, trust = split(rows)
    shuffled = list(range(len(rows)))
    random.shuffle(shuffled)
    ece = expected_calibration_error(correct, trust, strategy=strategy)
    assert ece == expected_calibration_error(correct[shuffled], trust[shuffled], strategy=strategy)
    assert brier_score(correct, trust) == brier_score(correct[shuffled], trust[shuffled])


@given(ROWS, st.sampled_from(["uniform", "quantile"]))
def test_one_bin_compares_the_means(rows, strategy):
    correct, trust = split(rows)
    ece = expected_calibration_error(correct, trust, n_bins=1, strategy=strategy)
    assert ece == pytest.approx(abs(correct.mean() - trust.mean()), abs=1e-12)


@given(ROWS)
def test_brier_score_is_the_mean_squared_difference(rows):
    correct, trust = split(rows)
    assert brier_score(correct, trust) == pytest.approx(np.mean((trust - correct) ** 2), abs=1e-12)


def test_brier_score_agrees_with_scikit_learn():
    rng = np.random.default_rng(3)
    trust = rng.uniform(size=1000)
    correct = rng.uniform(size=1000) < trust
    assert brier_score(correct, trust) == pytest.approx(brier_score_loss(correct, trust), abs=1e-12)


def test_certain_and_right_certain_and_wrong():
    for metric in (brier_score, expected_calibration_error):
        assert metric([True, False], [1.0, 0.0]) == 0.0
        assert metric([False, True], [1.0, 0.0]) == 1.0


def test_calibrated_trust_beats_over_confident_trust_on_most_samples():
    rng = np.random.default_rng(4)
    wins = 0
    for _ in range(1000):
        trust = rng.uniform(0.5, 1.0, size=300)
        correct = rng.uniform(size=300) < trust
        over_confident = trust**0.3
        wins += expected_calibration_error(correct, trust) < expected_calibration_error(
            correct, over_confident
        )
    # Would a win rate of 99% give so few wins less than once in a million times?
    assert wins >= binom.ppf(1e-6, 1000, 0.99)


@pytest.mark.parametrize(("value", "shown"), [(1.25, "1.25"), (-0.001, "-0.001"), (np.inf, "inf")])
def test_trust_that_is_not_a_probability(value, shown):
    with pytest.raises(InvalidInputError) as caught:
        expected_calibration_error([True, False, True], [0.5, value, 2.0])
    assert str(caught.value) == (
        f"trust passed to expected_calibration_error must be probabilities in [0, 1]. Row 1 is {shown}.\n"
        "Hint: calibrate the score first, or use a metric that depends only on its order, e.g. auroc."
    )


def test_bad_parameters():
    with pytest.raises(InvalidParameterError) as caught:
        expected_calibration_error([True], [0.5], n_bins=0)
    assert str(caught.value) == (
        "The 'n_bins' parameter of expected_calibration_error must be an int >= 1. Got 0 instead."
    )
    with pytest.raises(InvalidParameterError) as caught:
        expected_calibration_error([True], [0.5], strategy="kmeans")
    assert str(caught.value) == (
        "The 'strategy' parameter of expected_calibration_error must be one of 'quantile', 'uniform'. "
        "Got 'kmeans' instead."
    )
