"""The risk-coverage curve, its points and its areas, against all orders of tied rows."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.metrics import augrc, aurc, auroc, coverage_at_risk, risk_at_coverage, risk_coverage_curve
from neighboragg.metrics._ranking import group_ties
from neighboragg.metrics._selective import grouped_excess_aurc
from sizes import examples


def excess_aurc(correct, trust):
    return grouped_excess_aurc(group_ties(np.asarray(correct), np.asarray(trust, dtype=float)))


AREAS = [aurc, excess_aurc, augrc]
TIED_ROWS = st.lists(st.tuples(st.booleans(), st.integers(-2, 2)), min_size=1, max_size=40)


def split(rows):
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows]) / 2.0


def selective_risks(correct_in_order):
    """Selective risk of the first 1, 2, ..., n rows of one order."""
    wrong = ~np.asarray(correct_in_order)
    return np.cumsum(wrong) / np.arange(1, len(wrong) + 1)


@examples(50)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=6))
def test_aurc_is_the_mean_over_all_orders_of_tied_rows(rows):
    correct, trust = split(rows)
    areas = [
        selective_risks(correct[list(order)]).mean()
        for order in itertools.permutations(range(len(rows)))
        if (np.diff(trust[list(order)]) <= 0).all()
    ]
    assert aurc(correct, trust) == pytest.approx(np.mean(areas), abs=1e-12)


def test_aurc_is_exact_on_many_rows_with_and_without_ties():
    rng = np.random.default_rng(1)
    for trust in (rng.normal(size=3000), rng.integers(0, 20, size=3000)):
        correct = rng.uniform(size=3000) < 0.8
        expected = Fraction(0)
        rows = errors = 0
        for value in np.unique(trust)[::-1]:
            size, wrong = int((trust == value).sum()), int((~correct[trust == value]).sum())
            # Exact rationals would have thousands of digits; doubles per term are far below the tolerance.
            expected += Fraction(
                math.fsum((errors + wrong * j / size) / (rows + j) for j in range(1, size + 1))
            )
            rows, errors = rows + size, errors + wrong
        assert aurc(correct, trust) == pytest.approx(float(expected / 3000), abs=1e-13)


def test_aurc_by_hand():
    # Risks at 1/4 .. 4/4 are 0, 0, 1/3, 1/4; the oracle's are 0, 0, 0, 1/4.
    correct, trust = [True, True, False, True], [4, 3, 2, 1]
    assert aurc(correct, trust) == pytest.approx((1 / 3 + 1 / 4) / 4, abs=1e-15)
    assert excess_aurc(correct, trust) == pytest.approx((1 / 3) / 4, abs=1e-15)
    # Generalized risks 0, 0, 0, 1/4, 1/4 at coverages 0 .. 1, by trapezoids.
    assert augrc(correct, trust) == (1 / 8 + 1 / 4) / 4


@given(TIED_ROWS)
def test_augrc_is_a_function_of_auroc_and_accuracy(rows):
    correct, trust = split(rows)
    assume(0 < correct.sum() < len(correct))
    accuracy = correct.mean()
    error = 1 - accuracy
    expected = (1 - auroc(correct, trust)) * accuracy * error + error**2 / 2
    assert augrc(correct, trust) == pytest.approx(expected, abs=1e-14)


def test_augrc_identity_on_many_rows():
    rng = np.random.default_rng(2)
    trust = rng.uniform(size=20000)
    correct = rng.uniform(size=20000) < trust
    error = 1 - correct.mean()
    expected = (1 - auroc(correct, trust)) * correct.mean() * error + error**2 / 2
    assert augrc(correct, trust) == pytest.approx(expected, abs=1e-14)


@given(TIED_ROWS)
def test_the_oracle_is_the_best_order(rows):
    correct, trust = split(rows)
    oracle = selective_risks(np.sort(correct)[::-1]).mean()
    assert excess_aurc(correct, trust) == pytest.approx(aurc(correct, trust) - oracle, abs=1e-13)
    assert excess_aurc(correct, trust) >= 0.0
    assert excess_aurc(correct, correct) == 0.0


@given(TIED_ROWS)
def test_a_constant_trust_gets_the_error_rate(rows):
    correct, _ = split(rows)
    error = (~correct).mean()
    assert aurc(correct, np.zeros(len(correct))) == pytest.approx(error, abs=1e-13)
    assert augrc(correct, np.zeros(len(correct))) == pytest.approx(error / 2, abs=1e-13)


@given(TIED_ROWS, st.randoms(use_true_random=False))
def test_order_of_rows_and_scale_of_trust_do_not_change_a_bit(rows, random):
    correct, trust = split(rows)
    shuffled = list(range(len(rows)))
    random.shuffle(shuffled)
    for metric in AREAS:
        assert metric(correct, trust) == metric(correct[shuffled], np.exp(trust[shuffled]))


@pytest.mark.parametrize(("value", "areas"), [(True, [0.0, 0.0, 0.0]), (False, [1.0, 0.0, 0.5])])
def test_areas_are_defined_with_one_kind_of_row(value, areas):
    assert [metric([value] * 4, [0.1, 0.2, 0.2, 0.4]) for metric in AREAS] == areas


@given(TIED_ROWS)
def test_the_curve_counts_rows_accepted_by_each_threshold(rows):
    correct, trust = split(rows)
    curve = risk_coverage_curve(correct, trust)
    assert curve.threshold.tolist() == sorted(set(trust.tolist()), reverse=True)
    for coverage, risk, threshold in zip(curve.coverage, curve.risk, curve.threshold, strict=True):
        kept = trust >= threshold
        assert coverage == kept.mean()
        assert risk == pytest.approx((~correct[kept]).mean(), abs=1e-15)


@given(TIED_ROWS)
def test_expected_risk_passes_through_the_curve_and_averages_to_aurc(rows):
    correct, trust = split(rows)
    curve = risk_coverage_curve(correct, trust)
    np.testing.assert_allclose(curve.expected_risk(curve.coverage), curve.risk, atol=1e-13)
    every_row = np.arange(1, len(correct) + 1) / len(correct)
    assert curve.expected_risk(every_row).mean() == pytest.approx(aurc(correct, trust), abs=1e-13)


def test_expected_risk_extends_the_last_risk_to_coverage_zero():
    curve = risk_coverage_curve([True, False, True, True], [9, 9, 9, 1])
    np.testing.assert_allclose(curve.expected_risk([0.0, 0.1, 0.75]), [1 / 3] * 3)
    assert curve.expected_risk(0.8) == pytest.approx(0.25 / 0.8)


@pytest.mark.parametrize(("coverage", "shown"), [([0.5, 1.2], "1.2"), ([-0.1], "-0.1"), (math.nan, "nan")])
def test_expected_risk_outside_of_the_curve(coverage, shown):
    curve = risk_coverage_curve([True], [1])
    with pytest.raises(InvalidInputError) as caught:
        curve.expected_risk(coverage)
    assert str(caught.value) == (
        f"coverage passed to RiskCoverageCurve.expected_risk must be in [0, 1]. Got {shown}."
    )


@given(TIED_ROWS, st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]))
def test_coverage_at_risk_and_risk_at_coverage_are_points_of_the_curve(rows, level):
    correct, trust = split(rows)
    kept = [trust >= threshold for threshold in np.unique(trust)]
    allowed = [keep.mean() for keep in kept if (~correct[keep]).mean() <= level]
    assert coverage_at_risk(correct, trust, risk=level) == max(allowed, default=0.0)
    if level:
        smallest = min((keep for keep in kept if keep.mean() >= level), key=np.sum)
        assert risk_at_coverage(correct, trust, coverage=level) == pytest.approx((~correct[smallest]).mean())


def test_coverage_at_risk_skips_a_bad_start_and_may_be_zero():
    # The most trusted row is wrong, so small coverages fail where large ones do not.
    assert coverage_at_risk([False, True, True, True], [4, 3, 2, 1], risk=0.3) == 1.0
    assert coverage_at_risk([False, True, True, True], [4, 3, 2, 1], risk=0.2) == 0.0
    assert coverage_at_risk([True] * 3, [1, 2, 3], risk=0) == 1.0


def test_a_risk_that_is_met_exactly_counts():
    # 0.29 * 100 is less than 29 in doubles: 29 errors in 100 rows must still count as a risk of 0.29.
    assert 0.29 * 100 < 29
    for n_errors in range(101):
        assert coverage_at_risk(np.arange(100) >= n_errors, np.zeros(100), risk=n_errors / 100) == 1.0


def test_risk_at_coverage_keeps_ties_together():
    assert risk_at_coverage([True, True, False, True], [2, 1, 1, 1], coverage=0.3) == 0.25
    assert risk_at_coverage([True, True, False, True], [2, 1, 1, 1], coverage=0.25) == 0.0


@pytest.mark.parametrize(
    ("metric", "name", "value", "interval"),
    [
        (coverage_at_risk, "risk", 1.1, "[0, 1]"),
        (coverage_at_risk, "risk", -0.1, "[0, 1]"),
        (risk_at_coverage, "coverage", 0, "(0, 1]"),
        (risk_at_coverage, "coverage", None, "(0, 1]"),
    ],
)
def test_bad_levels(metric, name, value, interval):
    with pytest.raises(InvalidParameterError) as caught:
        metric([True, False], [1, 0], **{name: value})
    assert str(caught.value) == (
        f"The {name!r} parameter of {metric.__name__} must be a number in {interval}. Got {value!r} instead."
    )
