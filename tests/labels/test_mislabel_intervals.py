"""Exact intervals: coverage by enumeration of every outcome, values, messages."""

from math import comb

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy.stats import binom, binomtest, hypergeom

from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.promises import errors_left_interval, precision_interval
from neighboragg.promises._intervals import clopper_pearson
from sizes import examples


def brute_force(wrong, reviewed, size, tail):
    """All totals whose tails exceed the level, from whole-number binomials."""
    kept = []
    for total in range(wrong, size - reviewed + wrong + 1):
        weight = [comb(total, x) * comb(size - total, reviewed - x) for x in range(reviewed + 1)]
        below, above = sum(weight[: wrong + 1]), sum(weight[wrong:])
        if min(below, above) > tail * sum(weight) * (1 - 1e-6):
            kept.append(total)
    return kept[0], kept[-1]


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("confidence_level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("trials", [1, 2, 10, 137, 1000])
def test_clopper_pearson_covers_every_proportion(trials, confidence_level):
    successes = np.arange(trials + 1)
    low, high = clopper_pearson(successes, trials, confidence_level=confidence_level)
    # The coverage jumps at the ends of the intervals: look just beside them, too.
    ends = np.concatenate([low, high])
    rates = np.clip(np.concatenate([np.linspace(0, 1, 301), ends - 1e-9, ends + 1e-9]), 0, 1)[:, None]
    inside = (low <= rates) & (rates <= high)
    coverage = (binom.pmf(successes, trials, rates) * inside).sum(axis=1)
    assert coverage.min() >= confidence_level - 1e-7


def test_clopper_pearson_covers_in_simulation():
    rng = np.random.default_rng(0)
    rates = rng.uniform(size=20_000)
    trials = rng.integers(0, 200, size=20_000)
    low, high = clopper_pearson(rng.binomial(trials, rates), trials, confidence_level=0.9)
    missed = int(((rates < low) | (rates > high)).sum())
    assert binom.sf(missed - 1, 20_000, 0.1) > 1e-4
    # The interval is of use only if it misses sometimes.
    assert missed > 500


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_clopper_pearson_equals_scipy(counts, confidence_level):
    wrong, seen = counts
    expected = binomtest(wrong, seen).proportion_ci(confidence_level, method="exact")
    low, high = clopper_pearson(wrong, seen, confidence_level=confidence_level)
    np.testing.assert_allclose([low, high], [expected.low, expected.high], atol=1e-9)
    mirrored_low, mirrored_high = clopper_pearson(seen - wrong, seen, confidence_level=confidence_level)
    np.testing.assert_allclose([1 - mirrored_high, 1 - mirrored_low], [low, high], atol=1e-9)


def test_clopper_pearson_shapes_and_empty_trials():
    low, high = clopper_pearson(0, 0)
    assert (low.shape, high.shape, float(low), float(high)) == ((), (), 0.0, 1.0)
    low, high = clopper_pearson([[0], [1]], [0, 5, 9][1:])
    assert low.shape == high.shape == (2, 2)
    low, high = clopper_pearson([0, 0, 3], [0, 3, 3])
    assert low[:2].tolist() == [0.0, 0.0]
    assert high[[0, 2]].tolist() == [1.0, 1.0]
    assert clopper_pearson([], [])[0].shape == (0,)


@pytest.mark.parametrize(
    ("successes", "trials", "got"),
    [
        (3, 2, "3 of 2"),
        (-1, 2, "-1 of 2"),
        ([1, 0.5], 2, "0.5 of 2"),
        (1, np.nan, "1 of nan"),
        (1, np.inf, "1 of inf"),
    ],
)
def test_clopper_pearson_rejects_impossible_counts(successes, trials, got):
    with pytest.raises(InvalidInputError) as error:
        clopper_pearson(successes, trials)
    assert str(error.value) == (
        "successes and trials passed to clopper_pearson must be whole numbers with "
        f"0 <= successes <= trials. Got {got}."
    )


def test_clopper_pearson_rejects_shapes_that_do_not_fit():
    with pytest.raises(InvalidInputError) as error:
        clopper_pearson([1, 2, 3], [4, 5])
    assert str(error.value) == (
        "successes and trials passed to clopper_pearson must have shapes that broadcast. Got (3,) and (2,)."
    )


@pytest.mark.parametrize(
    ("function", "counts"),
    [(clopper_pearson, (1, 2)), (precision_interval, (1, 2)), (errors_left_interval, (1, 2, 3))],
)
def test_confidence_level_is_checked(function, counts):
    with pytest.raises(InvalidParameterError) as error:
        function(*counts, confidence_level=95)
    assert str(error.value) == (
        f"The 'confidence_level' parameter of {function.__name__} must be a number in (0, 1). Got 95 instead."
    )


@examples(100, quick=100)  # fewer miss an error in the last count
@given(st.data())
def test_finite_intervals_equal_brute_force(data):
    size = data.draw(st.integers(1, 40), "size")
    reviewed = data.draw(st.integers(0, size), "reviewed")
    wrong = data.draw(st.integers(0, reviewed), "wrong")
    level = data.draw(st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]), "level")
    low, high = brute_force(wrong, reviewed, size, (1 - level) / 2)
    left = errors_left_interval(wrong, reviewed, size - reviewed, confidence_level=level)
    assert left == (low - wrong, high - wrong)
    precision = precision_interval(wrong, reviewed, n_flagged=size, confidence_level=level)
    assert precision == (low / size, high / size)


@pytest.mark.parametrize("confidence_level", [0.8, 0.95])
@pytest.mark.parametrize(("size", "reviewed"), [(30, 10), (200, 40), (200, 180)])
def test_intervals_cover_every_finite_set(size, reviewed, confidence_level):
    """Enumerates all samples: for every number of wrong rows, the chance of a covering interval."""
    found = np.arange(reviewed + 1)
    totals = np.arange(size + 1)[:, None]
    chance = hypergeom.pmf(found, size, totals, reviewed)
    left = np.array(
        [errors_left_interval(x, reviewed, size - reviewed, confidence_level=confidence_level) for x in found]
    )
    exact = np.array(
        [precision_interval(x, reviewed, n_flagged=size, confidence_level=confidence_level) for x in found]
    )
    unlimited = np.array([precision_interval(x, reviewed, confidence_level=confidence_level) for x in found])
    for interval, truth in ((left, totals - found), (exact, totals / size), (unlimited, totals / size)):
        inside = (interval[:, 0] <= truth) & (truth <= interval[:, 1])
        assert (chance * inside).sum(axis=1).min() >= confidence_level - 1e-6
    assert (np.diff(exact, axis=1) <= np.diff(unlimited, axis=1) + 1 / size).all()


def test_intervals_without_review_and_with_full_review():
    assert precision_interval(0, 0) == (0.0, 1.0)
    assert precision_interval(0, 0, n_flagged=7) == (0.0, 1.0)
    assert precision_interval(3, 4, n_flagged=4) == (0.75, 0.75)
    assert errors_left_interval(0, 0, 12) == (0, 12)
    assert errors_left_interval(5, 9, 0) == (0, 0)
    assert errors_left_interval(0, 0, 0) == (0, 0)


def test_intervals_approach_clopper_pearson_in_large_sets():
    low, high = precision_interval(30, 100)
    assert precision_interval(30, 100, n_flagged=10**8) == pytest.approx((low, high), abs=1e-6)
    fewest, most = errors_left_interval(30, 100, 10**8 - 100)
    assert (fewest / 1e8, most / 1e8) == pytest.approx((low, high), abs=1e-6)
    assert type(fewest) is type(most) is int


@examples(50)
@given(st.integers(0, 20), st.integers(0, 200), st.floats(0.5, 0.98))
def test_errors_left_grow_with_what_was_found_and_with_the_level(wrong, unseen, level):
    low, high = errors_left_interval(wrong, 21, unseen, confidence_level=level)
    assert 0 <= low <= high <= unseen
    wider = errors_left_interval(wrong, 21, unseen, confidence_level=level + 0.01)
    assert wider[0] <= low
    assert high <= wider[1]
    more = errors_left_interval(wrong + 1, 21, unseen, confidence_level=level)
    assert more[0] >= low
    assert more[1] >= high


def test_review_counts_are_checked():
    with pytest.raises(InvalidParameterError) as error:
        precision_interval(5, 4)
    assert str(error.value) == (
        "precision_interval got reviewed_wrong=5, more than reviewed=4.\n"
        "Hint: the first count is of wrong labels, the second of all reviewed rows."
    )
    with pytest.raises(InvalidParameterError) as error:
        precision_interval(3, 10, n_flagged=9)
    assert str(error.value) == (
        "precision_interval got reviewed=10, more than the n_flagged=9 rows of the flagged set.\n"
        "Hint: count each flagged row once, and only rows of this set."
    )
    with pytest.raises(InvalidParameterError) as error:
        errors_left_interval(1, 2, -1)
    assert str(error.value) == (
        "The 'n_unreviewed' parameter of errors_left_interval must be an int >= 0. Got -1 instead."
    )
    with pytest.raises(InvalidParameterError) as error:
        errors_left_interval(0.5, 2, 1)
    assert str(error.value) == (
        "The 'reviewed_wrong' parameter of errors_left_interval must be an int >= 0. Got 0.5 instead."
    )
