"""Thresholds on trust as numbers: what is found, what is refused, and what must not matter."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.promises import coverage_threshold, risk_threshold
from neighboragg.promises._thresholds import SelectiveThreshold
from sizes import examples

LEVELS = st.sampled_from([0.8, 0.9, 0.95, 0.99])
NOTHING = SelectiveThreshold(math.inf, False, 50, 0, 0, 1.0)


@st.composite
def outcomes(draw, least=1, most=150):
    """Outcomes with as many ties as hypothesis likes."""
    n = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    trust = rng.integers(0, draw(st.integers(1, 40)), n) / 7.0
    return rng.random(n) < draw(st.sampled_from([0.5, 0.9, 0.99, 1.0])), trust


def test_threshold_of_a_hand_made_case():
    """No errors in the upper half, only errors in the lower one: the search ends a known way below the middle."""
    trust = np.arange(1000) / 1000
    found = risk_threshold(trust >= 0.5, trust, target_risk=0.1, confidence_level=0.9, grid=trust)
    errors = np.arange(200)
    most = errors[binom.cdf(errors, 500 + errors, 0.1) <= 0.1][-1]
    assert (found.promised, found.n_rows, found.n_kept) == (True, 1000, 500 + found.n_errors)
    # Thresholds lie five rows apart.
    assert most - 5 < found.n_errors <= most
    assert 0.5 - (found.n_errors + 1) / 1000 < found.threshold <= 0.5 - found.n_errors / 1000
    assert found.coverage == found.n_kept / 1000


def test_threshold_is_a_quantile_of_the_given_grid_and_no_row_is_set_aside():
    rng = np.random.default_rng(0)
    trust, grid = rng.random(400), np.array([0.25, 0.5])
    found = risk_threshold(rng.random(400) < 0.99, trust, target_risk=0.1, grid=grid)
    assert (found.threshold, found.n_rows) == (0.25, 400)
    assert found.n_kept == (trust >= 0.25).sum()


@pytest.mark.parametrize(("n", "aside"), [(51, 11), (1000, 200), (5000, 200)])
def test_without_a_grid_some_rows_are_set_aside(n, aside):
    rng = np.random.default_rng(1)
    trust = rng.random(n)
    found = risk_threshold(np.ones(n, dtype=bool), trust, target_risk=0.2)
    assert found.promised
    assert found.n_rows == n - aside
    assert trust.min() <= found.threshold < np.quantile(trust, 0.5)


def test_rows_set_aside_are_chosen_by_random_state():
    rng = np.random.default_rng(2)
    trust = rng.random(500)
    correct = rng.random(500) < 0.5 + 0.5 * trust
    found = [risk_threshold(correct, trust, target_risk=0.2, random_state=i) for i in (0, 0, 1, 2)]
    assert found[0] == found[1]
    assert len({result.threshold for result in found}) == 3


@given(outcomes(), LEVELS, st.sampled_from([0.05, 0.2, 0.5]), st.booleans())
def test_a_promise_is_within_its_exact_bound(case, level, target, with_grid):
    correct, trust = case
    found = risk_threshold(
        correct, trust, target_risk=target, confidence_level=level, grid=trust if with_grid else None
    )
    if not found.promised:
        assert found == SelectiveThreshold(math.inf, False, found.n_rows, 0, 0, 1.0)
        assert found.coverage == 0.0
        return
    assert found.n_errors <= found.n_kept <= found.n_rows <= len(trust)
    assert found.risk_bound <= target + 1e-9
    interval = binomtest(found.n_errors, found.n_kept).proportion_ci(2 * level - 1, method="exact")
    assert found.risk_bound == pytest.approx(interval.high, abs=1e-9)
    if with_grid:
        kept = trust >= found.threshold
        assert (found.n_kept, found.n_errors) == (kept.sum(), (kept & ~correct).sum())


@given(outcomes(), st.randoms(use_true_random=False), LEVELS)
def test_order_of_rows_does_not_matter(case, random, level):
    correct, trust = case
    rows = list(range(len(trust)))
    random.shuffle(rows)
    for find in (
        lambda c, t: risk_threshold(c, t, target_risk=0.2, confidence_level=level, grid=trust[::-1]),
        lambda c, t: coverage_threshold(c, t, target_coverage=0.6, confidence_level=level),
    ):
        assert find(correct, trust) == find(correct[rows], trust[rows])


@examples(60)
@given(outcomes(2000, 2500), LEVELS, st.sampled_from([40, 100]))
def test_a_larger_target_risk_never_lowers_coverage(case, level, n_grid):
    """With this many rows all targets start from the same threshold, and a larger one stops no earlier."""
    correct, trust = case
    found = [
        risk_threshold(correct, trust, target_risk=target, confidence_level=level, grid=trust[:n_grid])
        for target in (0.2, 0.25, 0.3, 0.5, 0.8)
    ]
    coverages = [result.coverage for result in found]
    assert coverages == sorted(coverages)


def test_a_larger_target_risk_raises_coverage_on_average_with_few_rows():
    """With few rows a small target starts at a lower threshold, so that this holds of the mean alone."""
    rng = np.random.default_rng(3)
    coverages = np.zeros((200, 4))
    for i in range(200):
        trust = rng.random(200)
        correct = rng.random(200) < 0.7 + 0.3 * trust
        for j, target in enumerate((0.1, 0.15, 0.2, 0.4)):
            found = risk_threshold(correct, trust, target_risk=target, grid=rng.random(100))
            coverages[i, j] = found.coverage
    means = coverages.mean(axis=0)
    assert (np.diff(means) > 0.05).all()


@given(outcomes(), LEVELS, st.sampled_from([0.1, 0.5, 0.9]))
def test_higher_confidence_never_raises_the_threshold_for_coverage(case, level, target):
    lower, higher = (
        coverage_threshold(*case, target_coverage=target, confidence_level=c) for c in (level - 0.1, level)
    )
    assert higher.threshold <= lower.threshold
    assert higher.n_kept >= target * len(case[1])


def test_no_promise_without_enough_rows():
    trust = np.arange(50) / 50
    right = np.ones(50, dtype=bool)
    # Even without an error 95% need 59 rows for a risk of 5%.
    assert risk_threshold(right, trust, target_risk=0.05, grid=trust) == NOTHING
    nothing = risk_threshold(right[:0], trust[:0], target_risk=0.05)
    assert nothing == SelectiveThreshold(math.inf, False, 0, 0, 0, 1.0)
    assert nothing.coverage == 0.0
    # The lowest of n scores is exceeded by a share of 80% with probability 1 − 0.8ⁿ: 14 rows are needed.
    assert not coverage_threshold(right[:13], trust[:13], target_coverage=0.8).promised
    assert coverage_threshold(right[:14], trust[:14], target_coverage=0.8).threshold == 0.0


def test_the_bound_is_exact_at_a_low_level_too():
    trust = np.arange(200) / 200
    found = risk_threshold(trust >= 0.3, trust, target_risk=0.2, confidence_level=0.4, grid=trust)
    assert found.n_errors > 0
    assert binom.cdf(found.n_errors, found.n_kept, found.risk_bound) == pytest.approx(0.6)


def test_the_highest_score_may_be_the_threshold():
    # It is exceeded by a share of 1% with probability 0.99¹⁰.
    found = coverage_threshold(np.ones(10, bool), np.arange(10.0), target_coverage=0.01, confidence_level=0.9)
    assert (found.threshold, found.n_kept) == (9.0, 1)


def test_no_promise_for_coverage_keeps_all():
    found = coverage_threshold([True, False, True], [0.3, 0.2, 0.1], target_coverage=0.8)
    assert (found.threshold, found.promised, found.n_kept, found.n_errors) == (-math.inf, False, 3, 1)


def test_no_promise_if_all_are_wrong():
    trust = np.arange(50) / 50
    assert risk_threshold(np.zeros(50, dtype=bool), trust, target_risk=0.5, grid=trust) == NOTHING


@pytest.mark.parametrize("value", [0, 1, 1.5, -0.1, "0.1", True, math.nan])
def test_targets_and_levels_are_checked(value):
    right, trust = np.ones(3, dtype=bool), np.ones(3)
    for call, name, owner in (
        (lambda: risk_threshold(right, trust, target_risk=value), "target_risk", "risk_threshold"),
        (
            lambda: risk_threshold(right, trust, target_risk=0.1, confidence_level=value),
            "confidence_level",
            "risk_threshold",
        ),
        (
            lambda: coverage_threshold(right, trust, target_coverage=value),
            "target_coverage",
            "coverage_threshold",
        ),
        (
            lambda: coverage_threshold(right, trust, target_coverage=0.1, confidence_level=value),
            "confidence_level",
            "coverage_threshold",
        ),
    ):
        with pytest.raises(InvalidParameterError) as error:
            call()
        assert str(error.value) == (
            f"The {name!r} parameter of {owner} must be a number in (0, 1). Got {value!r} instead."
        )


@pytest.mark.parametrize(
    ("correct", "trust", "message"),
    [
        (
            [True, False],
            [0.1],
            "correct and trust passed to {} must have the same number of rows. Got 2 and 1.",
        ),
        (
            [2, 0],
            [0.1, 0.2],
            "correct passed to {} must be boolean, or the integers 0 and 1. Row 0 is 2.\n"
            "Hint: pass y_pred == y_true.",
        ),
        (
            [[True], [False]],
            [0.1, 0.2],
            "correct passed to {} must be one-dimensional, one entry per row. Got shape (2, 1).",
        ),
        (
            True,
            0.5,
            "correct passed to {} must be one-dimensional, one entry per row. Got shape ().",
        ),
        (
            [True, True, False],
            [0.1, math.nan, 0.2],
            "trust passed to {} contains NaN, first in row 1.\n"
            "Hint: drop rows without a score from both correct and trust.",
        ),
    ],
)
def test_outcomes_are_checked(correct, trust, message):
    for find, target in ((risk_threshold, "target_risk"), (coverage_threshold, "target_coverage")):
        with pytest.raises(InvalidInputError) as error:
            find(correct, trust, **{target: 0.5})
        assert str(error.value) == message.format(find.__name__)


@pytest.mark.parametrize(
    ("grid", "got"),
    [
        ([], "Got shape (0,) with 0 NaN."),
        ([[0.1, 0.2]], "Got shape (1, 2) with 0 NaN."),
        ([0.1, math.nan], "Got shape (2,) with 1 NaN."),
    ],
)
def test_grid_is_checked(grid, got):
    with pytest.raises(InvalidInputError) as error:
        risk_threshold([True, False], [0.2, 0.1], target_risk=0.5, grid=grid)
    assert str(error.value) == (
        "grid passed to risk_threshold must be a 1-D array with at least one number and without NaN. " + got
    )


def test_few_rows_with_a_good_top_keep_it():
    """With 500 rows and a target of 2% not the whole, but the trusted part can be promised."""
    rng = np.random.default_rng(0)
    promised = 0
    for _ in range(200):
        trust = rng.random(500)
        correct = rng.random(500) > np.where(trust > 0.3, 0.001, 0.2)
        promised += risk_threshold(correct, trust, target_risk=0.02, random_state=0).promised
    assert promised > 140
