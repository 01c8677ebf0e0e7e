"""Thresholds, flags, p-values and the step-up rule: values, properties, messages."""

from fractions import Fraction
from math import ceil, floor

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis.extra.numpy import arrays

import neighboragg.promises
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.promises import benjamini_hochberg, cmd_threshold, conformal_p_values
from neighboragg.promises._conformal import cmd_flags
from sizes import examples

# Few distinct values make ties, all values make none.
SCORES = st.one_of(
    arrays(float, st.integers(3, 60), elements=st.integers(-3, 3).map(float)),
    arrays(float, st.integers(3, 60), elements=st.floats(allow_nan=False, width=32)),
)
ALPHA = st.integers(1, 999).map(lambda i: i / 1000)
NOISE_RATE = st.integers(0, 40).map(lambda i: i / 100)


def valid(n, alpha, noise_rate=0.0):
    """Whether the rule is defined, in exact decimals."""
    a, p = Fraction(str(alpha)), Fraction(str(noise_rate))
    return a * (n + 1) > 1 and a * (n + 1 - n * p) >= 1


def test_public_names_have_docstrings():
    assert all(getattr(neighboragg.promises, name).__doc__ for name in neighboragg.promises.__all__)


def test_cmd_threshold_is_the_score_of_rank_b():
    scores = np.arange(10.0)[::-1]
    # B = ceil(11 * 0.7) = 8 and, with noise, ceil(7.7 + 0.3 * 10 * 0.2) = 9.
    assert cmd_threshold(scores, alpha=0.3) == 2.0
    assert cmd_threshold(scores, alpha=0.3, noise_rate=0.2) == 1.0
    assert type(cmd_threshold(scores, alpha=0.3)) is float
    np.testing.assert_array_equal(np.flatnonzero(cmd_flags(scores, alpha=0.3)), [8, 9])


def test_cmd_rank_is_exact_where_floating_point_is_not():
    """With 1,000 divisible ranks, every alpha in thousandths gives a whole number before the ceiling."""
    scores = np.arange(999.0)
    naive_is_off = 0
    for thousandths in range(2, 1000):
        alpha = thousandths / 1000
        rank = 1000 - thousandths
        assert cmd_threshold(scores, alpha=alpha) == 999 - rank
        naive_is_off += ceil(1000 * (1 - alpha)) != rank
    assert naive_is_off > 10


def test_cmd_rank_is_exact_with_noise_rates():
    scores = np.arange(99.0)
    for hundredths in range(50):
        # 100 * 0.9 + 0.1 * 99 * p, in thousandths and rounded up.
        rank = -(-(90_000 + 99 * hundredths) // 1000)
        assert cmd_threshold(scores, alpha=0.1, noise_rate=hundredths / 100) == 99 - rank


def test_cmd_accepts_the_largest_rank_and_infinite_scores():
    scores = np.array([-np.inf, 0.0, 1.0, np.inf])
    assert cmd_threshold(scores, alpha=0.21) == -np.inf
    assert not cmd_flags(scores, alpha=0.21).any()
    assert cmd_flags(scores, alpha=0.99).tolist() == [True, True, True, False]
    assert cmd_threshold([3], alpha=0.6) == 3.0


def test_cmd_flags_nothing_if_all_scores_are_equal():
    assert not cmd_flags(np.ones(1000), alpha=0.5).any()


@given(SCORES, ALPHA, NOISE_RATE, st.randoms(use_true_random=False))
def test_cmd_does_not_depend_on_the_order_of_rows(scores, alpha, noise_rate, random):
    assume(valid(len(scores), alpha, noise_rate))
    order = random.sample(range(len(scores)), len(scores))
    flags = cmd_flags(scores, alpha=alpha, noise_rate=noise_rate)
    np.testing.assert_array_equal(cmd_flags(scores[order], alpha=alpha, noise_rate=noise_rate), flags[order])
    tau = cmd_threshold(scores, alpha=alpha, noise_rate=noise_rate)
    np.testing.assert_array_equal(flags, scores < tau)
    assert tau in scores


@given(SCORES, ALPHA, NOISE_RATE)
def test_cmd_number_of_flags_is_bounded(scores, alpha, noise_rate):
    n, a, p = len(scores), Fraction(str(alpha)), Fraction(str(noise_rate))
    assume(valid(n, alpha, noise_rate))
    limit = floor(a * (n + 1 - n * p)) - 1
    assert cmd_flags(scores, alpha=alpha, noise_rate=noise_rate).sum() <= limit
    distinct = np.argsort(np.argsort(scores, kind="stable"))
    assert cmd_flags(distinct, alpha=alpha, noise_rate=noise_rate).sum() == limit


@given(SCORES, ALPHA, ALPHA, NOISE_RATE, NOISE_RATE)
def test_cmd_flags_grow_with_alpha_and_shrink_with_noise(scores, alpha, other_alpha, noise, other_noise):
    small, large = sorted((alpha, other_alpha))
    few, many = sorted((noise, other_noise))
    assume(valid(len(scores), small, many))
    strict = cmd_flags(scores, alpha=small, noise_rate=many)
    assert not (strict & ~cmd_flags(scores, alpha=large, noise_rate=many)).any()
    assert not (strict & ~cmd_flags(scores, alpha=small, noise_rate=few)).any()


@given(SCORES, ALPHA)
def test_cmd_flags_depend_on_the_order_of_scores_only(scores, alpha):
    assume(valid(len(scores), alpha))
    ranks = np.unique(scores, return_inverse=True)[1]
    np.testing.assert_array_equal(cmd_flags(ranks**3, alpha=alpha), cmd_flags(scores, alpha=alpha))


@pytest.mark.parametrize("function", [cmd_threshold, cmd_flags])
@pytest.mark.parametrize("alpha", [0.01, 0.003])
def test_cmd_names_n_and_the_smallest_alpha(function, alpha):
    needed = {0.01: 100, 0.003: 333}[alpha]
    with pytest.raises(InvalidParameterError) as error:
        function(np.arange(99.0), alpha=alpha)
    assert str(error.value) == (
        f"The 'alpha' parameter of {function.__name__} must be a number in (1 / (N + 1), 1), which for "
        f"N = 99 scores begins above 0.01. Got {alpha} instead.\n"
        f"Hint: pass a larger alpha, or at least {needed} scores."
    )
    function(np.arange(float(needed)), alpha=alpha)


def test_cmd_says_if_the_noise_rate_pushes_the_rank_too_far():
    scores = np.arange(50.0)
    with pytest.raises(InvalidParameterError) as error:
        cmd_threshold(scores, alpha=0.02, noise_rate=0.3)
    assert str(error.value) == (
        "cmd_threshold cannot keep alpha=0.02 with N = 50 scores and noise_rate=0.3: the threshold would be "
        "the score of rank 51. With this noise rate the smallest valid alpha is 0.02778.\n"
        "Hint: pass a larger alpha, or at least 70 scores."
    )
    # Both remedies work, and one score fewer does not.
    assert cmd_threshold(scores, alpha=0.02778, noise_rate=0.3) == 0.0
    assert cmd_threshold(np.arange(70.0), alpha=0.02, noise_rate=0.3) == 0.0
    with pytest.raises(InvalidParameterError, match="rank 70"):
        cmd_threshold(np.arange(69.0), alpha=0.02, noise_rate=0.3)


@given(st.integers(1, 300), st.floats(1e-3, 0.999), st.floats(0.0, 0.95))
def test_cmd_is_defined_exactly_where_it_says(n, alpha, noise_rate):
    if valid(n, alpha, noise_rate):
        assert 0.0 <= cmd_threshold(np.arange(float(n)), alpha=alpha, noise_rate=noise_rate) < n
    else:
        with pytest.raises(InvalidParameterError, match="Hint: pass a larger alpha"):
            cmd_threshold(np.arange(float(n)), alpha=alpha, noise_rate=noise_rate)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 1.5, float("nan"), "0.1", None, True])
def test_cmd_rejects_alpha_that_is_no_probability(alpha):
    with pytest.raises(InvalidParameterError) as error:
        cmd_threshold([1.0, 2.0], alpha=alpha)
    assert str(error.value) == (
        f"The 'alpha' parameter of cmd_threshold must be a number in (0, 1). Got {alpha!r} instead."
    )


@pytest.mark.parametrize("noise_rate", [-0.01, 1.0, float("nan")])
def test_cmd_rejects_an_impossible_noise_rate(noise_rate):
    with pytest.raises(InvalidParameterError) as error:
        cmd_flags([1.0, 2.0], alpha=0.5, noise_rate=noise_rate)
    assert str(error.value) == (
        f"The 'noise_rate' parameter of cmd_flags must be a number in [0, 1). Got {noise_rate!r} instead."
    )


def test_scores_that_cannot_be_ranked_are_rejected():
    with pytest.raises(InvalidInputError) as error:
        cmd_threshold([1.0, np.nan, np.nan], alpha=0.5)
    assert str(error.value) == (
        "scores passed to cmd_threshold contains NaN in 2 of 3 rows, first at position 1.\n"
        "Hint: drop the rows without a score."
    )
    with pytest.raises(InvalidInputError) as error:
        cmd_flags([[1.0], [2.0]], alpha=0.5)
    assert str(error.value) == (
        "scores passed to cmd_flags must be one-dimensional, one value per row. Got shape (2, 1)."
    )
    with pytest.raises(InvalidInputError) as error:
        conformal_p_values([1.0], [])
    assert str(error.value) == (
        "verified_scores passed to conformal_p_values is empty; at least one value is needed."
    )


def test_conformal_p_values_count_ties_against_suspicion():
    p = conformal_p_values([0.0, 1.0, 1.5, 9.0], [3.0, 1.0, 1.0, 2.0])
    np.testing.assert_allclose(p, [1 / 5, 3 / 5, 3 / 5, 1.0])
    assert conformal_p_values([], [1.0]).shape == (0,)


@given(SCORES, SCORES)
def test_conformal_p_values_follow_the_formula(scores, clean):
    p = conformal_p_values(scores, clean)
    expected = (1 + (clean <= scores[:, None]).sum(axis=1)) / (len(clean) + 1)
    np.testing.assert_array_equal(p, expected)
    np.testing.assert_array_equal(conformal_p_values(scores, clean[::-1]), p)
    assert (np.diff(p[np.argsort(scores)]) >= 0).all()


def exact_step_up(numerators, denominator, q):
    """The rule of Benjamini and Hochberg in fractions, straight from its definition."""
    p = [Fraction(i, denominator) for i in numerators]
    n = len(p)
    ranks = [k for k, value in enumerate(sorted(p), start=1) if value <= q * k / n]
    return [bool(ranks) and value <= sorted(p)[max(ranks) - 1] for value in p]


@examples(300)
@given(
    st.integers(1, 1000).flatmap(
        lambda d: st.tuples(st.just(d), st.lists(st.integers(1, d), min_size=1, max_size=40))
    ),
    st.integers(1, 99),
)
def test_benjamini_hochberg_equals_the_exact_rule_on_the_grid(grid, percent):
    denominator, numerators = grid
    mask = benjamini_hochberg(np.array(numerators) / denominator, q=percent / 100)
    assert mask.tolist() == exact_step_up(numerators, denominator, Fraction(percent, 100))


def test_benjamini_hochberg_meets_the_line_exactly():
    """All p-values on the line: a rounding error must not lose them."""
    for n in (3, 7, 20, 49, 100):
        for percent in (1, 5, 7, 10, 30):
            p = np.arange(1, n + 1) * percent / (100 * n)
            assert benjamini_hochberg(p, q=percent / 100).all()
            assert not benjamini_hochberg(p[1:] * (1 + 1e-9) + 1.0 / n, q=percent / 100).all()


def test_benjamini_hochberg_steps_up_over_a_gap():
    assert benjamini_hochberg([0.03, 0.04, 0.9, 0.045], q=0.06).tolist() == [True, True, False, True]
    assert benjamini_hochberg([0.0, 1.0], q=0.01).tolist() == [True, False]
    assert benjamini_hochberg([], q=0.1).tolist() == []
    assert not benjamini_hochberg([0.5, 0.6], q=0.1).any()


@given(
    arrays(float, st.integers(1, 40), elements=st.floats(0, 1)), st.floats(0.01, 0.5), st.floats(0.01, 0.5)
)
def test_benjamini_hochberg_properties(p, q, other):
    few, many = benjamini_hochberg(p, q=min(q, other)), benjamini_hochberg(p, q=max(q, other))
    assert not (few & ~many).any()
    np.testing.assert_array_equal(benjamini_hochberg(p[::-1], q=q)[::-1], benjamini_hochberg(p, q=q))
    if many.any() and not many.all():
        assert p[many].max() < p[~many].min()


def test_clean_sample_too_small_to_find_anything():
    """With n = 100 tests and q = 0.1, five wrong labels need n / (5 q) - 1 = 199 clean rows."""
    scores = np.concatenate([np.full(5, -1.0), np.full(95, 1.0)])
    for m, found in ((198, 0), (199, 5)):
        mask = benjamini_hochberg(conformal_p_values(scores, np.linspace(0.0, 0.5, m)), q=0.1)
        assert mask.sum() == found


def test_benjamini_hochberg_messages():
    with pytest.raises(InvalidInputError) as error:
        benjamini_hochberg([0.5, -2.5, 3.0], q=0.1)
    assert str(error.value) == (
        "p_values passed to benjamini_hochberg must lie in [0, 1]. Got -2.5 at position 1.\n"
        "Hint: turn scores into p-values with conformal_p_values(scores, verified_scores)."
    )
    with pytest.raises(InvalidParameterError) as error:
        benjamini_hochberg([0.5], q=1)
    assert str(error.value) == (
        "The 'q' parameter of benjamini_hochberg must be a number in (0, 1). Got 1 instead."
    )
