"""Bootstrap intervals: their coverage, undefined resamples, and independence of the order of rows."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom, norm

from neighboragg.exceptions import InvalidInputError, InvalidParameterError, TrustWarning
from neighboragg.metrics import (
    aurc,
    auroc,
    average_precision_error,
    bootstrap_difference,
    bootstrap_interval,
    fpr_at_tpr,
    risk_coverage_curve,
)
from neighboragg.metrics._bootstrap import Interval, risk_coverage_band
from sizes import draws


def example(n_rows, seed):
    rng = np.random.default_rng(seed)
    trust = rng.uniform(0.4, 1.0, size=n_rows)
    return rng.uniform(size=n_rows) < trust, trust


DRAWS = draws(150)


def assert_covers(hits, *, level, n_resamples):
    """Check hits of so many intervals against exact binomial bounds."""
    # Between two quantiles of B draws lies the share level * (B - 1) / (B + 1) of their distribution. The
    # percentile method is itself approximate; two points either way are allowed for that.
    expected = level * (n_resamples - 1) / (n_resamples + 1)
    assert binom.ppf(1e-3, DRAWS, expected - 0.02) <= hits <= binom.ppf(1 - 1e-3, DRAWS, expected + 0.02)


def test_interval_covers_the_true_auroc_as_often_as_it_says():
    # Normal scores one standard deviation apart: the true AUROC is known.
    truth = norm.cdf(1 / math.sqrt(2))
    rng = np.random.default_rng(0)
    hits = 0
    for seed in range(DRAWS):
        correct = rng.uniform(size=150) < 0.6
        trust = rng.normal(size=150) + correct
        interval = bootstrap_interval(
            auroc, correct, trust, confidence_level=0.9, n_resamples=60, random_state=seed
        )
        hits += interval.low <= truth <= interval.high
    assert_covers(hits, level=0.9, n_resamples=60)


def test_difference_of_equally_good_scores_rarely_excludes_zero():
    rng = np.random.default_rng(1)
    hits = 0
    for seed in range(DRAWS):
        correct = rng.uniform(size=80) < 0.6
        signal = rng.normal(size=80) + correct
        a, b = signal + rng.normal(size=80) / 2, signal + rng.normal(size=80) / 2
        interval = bootstrap_difference(
            auroc, correct, a, b, confidence_level=0.9, n_resamples=40, random_state=seed
        )
        hits += interval.low <= 0.0 <= interval.high
    assert_covers(hits, level=0.9, n_resamples=40)


def brier_score(correct, trust):
    return math.fsum((trust - correct) ** 2) / len(trust)  # exact, so the order of rows changes nothing


def test_interval_is_the_quantiles_of_the_metric_on_drawn_rows():
    correct, trust = example(60, 2)
    seen = []

    def spy(drawn_correct, drawn_trust):
        seen.append((drawn_correct, drawn_trust))
        return brier_score(drawn_correct, drawn_trust)

    interval = bootstrap_interval(spy, correct, trust, confidence_level=0.8, n_resamples=50, random_state=0)
    rows = set(zip(correct.tolist(), trust.tolist(), strict=True))
    for drawn_correct, drawn_trust in seen:
        assert len(drawn_correct) == len(drawn_trust) == 60
        assert set(zip(drawn_correct.tolist(), drawn_trust.tolist(), strict=True)) <= rows
    values = [brier_score(*arrays) for arrays in seen[1:]]
    assert len(values) == 50
    assert interval.estimate == brier_score(correct, trust)
    assert (interval.low, interval.high) == pytest.approx(tuple(np.quantile(values, [0.1, 0.9])))


def test_rows_are_drawn_evenly():
    # Each of 20 rows is drawn 20 x 500 / 20 = 500 times in expectation.
    drawn = []

    def remember(correct, trust):
        drawn.append(trust)
        return 0.0

    bootstrap_interval(remember, np.ones(20, bool), np.arange(20), n_resamples=500, random_state=0)
    counts = np.bincount(np.concatenate(drawn[1:]).astype(int), minlength=20)
    assert binom.ppf(1e-7, 10000, 1 / 20) <= counts.min()
    assert counts.max() <= binom.ppf(1 - 1e-7, 10000, 1 / 20)


def test_both_scores_see_the_same_rows():
    correct, trust = example(50, 3)
    seen = []

    def spy(drawn_correct, drawn_trust):
        seen.append(sorted(zip(drawn_correct.tolist(), np.abs(drawn_trust).tolist(), strict=True)))
        return 0.0

    bootstrap_difference(spy, correct, trust, -trust, n_resamples=20, random_state=0)
    assert len(seen) == 42
    assert seen[0::2] == seen[1::2]


def test_outcomes_of_b_stay_with_their_rows():
    correct, trust = example(50, 4)
    # b is a copy of a, seen through other arrays: only a broken pairing could make a difference.
    interval = bootstrap_difference(
        aurc, correct, trust, np.exp(trust), correct_b=correct.astype(int), n_resamples=30, random_state=0
    )
    assert interval == Interval(0.0, 0.0, 0.0, 0.95)
    other = bootstrap_difference(
        lambda c, t: c.mean(), correct, trust, -trust, correct_b=~correct, n_resamples=30, random_state=0
    )
    assert other.estimate == pytest.approx(2 * correct.mean() - 1)


def test_pairing_narrows_the_interval():
    correct, trust = example(300, 5)
    similar = trust + np.random.default_rng(6).normal(scale=0.01, size=300)
    paired = bootstrap_difference(auroc, correct, trust, similar, n_resamples=200, random_state=0)
    alone = bootstrap_interval(auroc, correct, trust, n_resamples=200, random_state=0)
    assert paired.high - paired.low < 0.3 * (alone.high - alone.low)
    assert paired.estimate == pytest.approx(auroc(correct, trust) - auroc(correct, similar))


def test_swapping_the_scores_turns_the_interval_round():
    correct, trust = example(100, 7)
    other = np.round(trust, 1)
    seeded = partial(bootstrap_difference, auroc, correct, n_resamples=100)
    forward = seeded(trust, other, random_state=np.random.RandomState(0))
    assert forward.estimate == -seeded(other, trust, random_state=0).estimate


@pytest.mark.parametrize(
    "metric", [auroc, average_precision_error, partial(fpr_at_tpr, tpr=0.8), brier_score]
)
def test_a_seed_gives_one_interval_whatever_the_order_of_rows(metric):
    correct, trust = example(80, 8)
    trust = np.round(trust, 1)
    shuffled = np.random.default_rng(9).permutation(80)
    other = np.round(1 - trust**2, 2)
    first = bootstrap_interval(metric, correct, trust, n_resamples=30, random_state=0)
    assert first == bootstrap_interval(
        metric, correct[shuffled], trust[shuffled], n_resamples=30, random_state=0
    )
    difference = bootstrap_difference(metric, correct, trust, other, n_resamples=30, random_state=0)
    assert difference == bootstrap_difference(
        metric, correct[shuffled], trust[shuffled], other[shuffled], n_resamples=30, random_state=0
    )
    assert first != bootstrap_interval(metric, correct, trust, n_resamples=30, random_state=1)


def test_higher_confidence_is_wider():
    correct, trust = example(100, 10)
    seeded = partial(bootstrap_interval, aurc, correct, trust, n_resamples=200, random_state=0)
    narrow, wide = seeded(confidence_level=0.5), seeded(confidence_level=0.99)
    assert wide.low < narrow.low <= narrow.estimate <= narrow.high < wide.high
    assert (narrow.confidence_level, wide.confidence_level) == (0.5, 0.99)


def test_a_few_undefined_resamples_are_ignored_silently():
    correct = np.arange(100) >= 5
    trust = np.linspace(0, 1, 100)
    nans = 0

    def counting(drawn_correct, drawn_trust):
        nonlocal nans
        nans += drawn_correct.all()
        return auroc(drawn_correct, drawn_trust)

    # About exp(-5) of the resamples hold no error.
    interval = bootstrap_interval(counting, correct, trust, random_state=0)
    assert 0 < nans < 50
    assert (interval.low, interval.high) == (1.0, 1.0)


def test_many_undefined_resamples_give_one_warning():
    correct = np.arange(50) >= 1
    with pytest.warns(TrustWarning) as caught:
        interval = bootstrap_interval(auroc, correct, np.linspace(0, 1, 50), n_resamples=200, random_state=0)
    (warning,) = caught
    n_ignored = int(str(warning.message).split()[2])
    assert str(warning.message) == (
        f"bootstrap_interval ignored {n_ignored} of 200 resamples on which the metric is NaN. "
        "The rows contain too few errors, or too few correct predictions, for a reliable interval."
    )
    # The one error is missed with probability (49 / 50) ** 50.
    low, high = binom.ppf([1e-6, 1 - 1e-6], 200, 0.98**50)
    assert low <= n_ignored <= high
    assert warning.filename == __file__
    assert interval == Interval(1.0, 1.0, 1.0, 0.95)


@pytest.mark.parametrize("n_scores", [1, 2])
def test_nothing_defined_gives_nan_and_one_warning(n_scores):
    function = [bootstrap_interval, bootstrap_difference][n_scores - 1]
    with pytest.warns(TrustWarning) as caught:
        interval = function(auroc, [True] * 9, *[np.arange(9)] * n_scores, n_resamples=20, random_state=0)
    assert [str(warning.message) for warning in caught] == [
        f"{function.__name__} ignored 20 of 20 resamples on which the metric is NaN. "
        "The rows contain too few errors, or too few correct predictions, for a reliable interval."
    ]
    assert all(math.isnan(value) for value in (interval.estimate, interval.low, interval.high))


def test_band_encloses_the_curve_and_its_end_is_the_error_rate():
    correct, trust = example(400, 11)
    band = risk_coverage_band(correct, trust, n_resamples=200, random_state=0)
    np.testing.assert_allclose(band.coverage, np.linspace(0, 1, 101))
    assert band.confidence_level == 0.95
    risk = risk_coverage_curve(correct, trust).expected_risk(band.coverage)
    assert (band.low <= band.high).all()
    assert ((band.low <= risk) & (risk <= band.high)).mean() > 0.95
    error_rate = bootstrap_interval(
        lambda c, t: 1 - c.mean(), correct, trust, n_resamples=200, random_state=0
    )
    assert (band.low[-1], band.high[-1]) == pytest.approx((error_rate.low, error_rate.high))


@pytest.mark.parametrize("function", [bootstrap_interval, bootstrap_difference])
def test_bad_parameters(function):
    scores = [[0.5, 0.6]] * (1 + (function is bootstrap_difference))
    name = function.__name__
    with pytest.raises(InvalidParameterError) as caught:
        function("auroc", [True, False], *scores)
    assert str(caught.value) == (
        f"The 'metric' parameter of {name} must be a function of (correct, trust). Got 'auroc' instead.\n"
        "Hint: pass the function itself, e.g. neighboragg.metrics.auroc."
    )
    with pytest.raises(InvalidParameterError) as caught:
        function(auroc, [True, False], *scores, confidence_level=1.0)
    assert str(caught.value) == (
        f"The 'confidence_level' parameter of {name} must be a number in (0, 1). Got 1.0 instead."
    )
    with pytest.raises(InvalidParameterError) as caught:
        function(auroc, [True, False], *scores, n_resamples=0)
    assert str(caught.value) == f"The 'n_resamples' parameter of {name} must be an int >= 1. Got 0 instead."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"trust_a": [0.1, 0.2, 0.3]},
            "correct and trust_a passed to bootstrap_difference must have the same number of rows. "
            "Got 2 and 3.",
        ),
        (
            {"trust_b": [0.1]},
            "correct and trust_b passed to bootstrap_difference must have the same number of rows. "
            "Got 2 and 1.",
        ),
        (
            {"correct_b": [True]},
            "correct and correct_b passed to bootstrap_difference must have the same number of rows. "
            "Got 2 and 1.",
        ),
        (
            {"correct_b": [0.5, 1.0]},
            "correct_b passed to bootstrap_difference must be boolean, or the integers 0 and 1. "
            "Got dtype float64.\nHint: pass y_pred == y_true.",
        ),
        (
            {"trust_b": [0.5, math.nan]},
            "trust_b passed to bootstrap_difference contains NaN, first in row 1.\n"
            "Hint: drop rows without a score from both correct and trust.",
        ),
    ],
)
def test_bad_input_names_the_argument(arguments, message):
    good = {"correct": [True, False], "trust_a": [0.1, 0.2], "trust_b": [0.1, 0.2]}
    with pytest.raises(InvalidInputError) as caught:
        bootstrap_difference(auroc, **(good | arguments))
    assert str(caught.value) == message
