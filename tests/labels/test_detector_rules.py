"""Which scores are flagged, what that promises, and what rows with verified labels change."""

import numpy as np
import pytest
from scipy.stats import binom

from neighboragg import MislabelDetector, find_mislabeled
from neighboragg.labels import FDR, Budget, Estimated, FalseAlarms
from neighboragg.labels._noise import label_reliability
from neighboragg.labels._rules import FlagRule, Flags
from neighboragg.promises import benjamini_hochberg, cmd_threshold, conformal_p_values
from sizes import draws

FAST = {"effort": "fast"}


def test_budget_flags_exactly_the_lowest_scores(digits):
    result = find_mislabeled(digits.X, digits.y, flag=30, **FAST)
    assert result.rule == "budget"
    assert result.n_flagged == 30
    np.testing.assert_array_equal(np.flatnonzero(result.mask), np.sort(result.ranking[:30]))
    assert result.threshold == result.scores[result.ranking[30]]
    everything = find_mislabeled(digits.X, digits.y, flag=500, **FAST)
    assert everything.mask.all()
    assert everything.threshold == np.inf


@pytest.mark.filterwarnings("ignore:What was passed to MislabelDetector predicts")
def test_budget_breaks_ties_by_position_and_estimated_does_not_break_them(blobs):
    # Features that say nothing: all scores are equal.
    constant = np.arange(80.0)[:, None]
    groups = np.arange(80) < 40
    left = np.where(groups, "left", "right")
    for rule, flagged in ({"flag": 3}, [0, 1, 2]), ({}, []):
        result = find_mislabeled(constant, left, groups=groups, effort="fast", **rule)
        assert np.ptp(result.scores) == 0
        assert np.flatnonzero(result.mask).tolist() == flagged
        np.testing.assert_array_equal(result.p_values, 1.0)


def test_false_alarms_are_bounded_by_conformal_mislabel_detection(digits):
    result = find_mislabeled(digits.X, digits.y, flag=FalseAlarms(0.1, noise_rate=0.12), **FAST)
    assert result.rule == "false alarms"
    assert result.threshold == cmd_threshold(result.scores, alpha=0.1, noise_rate=0.12)
    np.testing.assert_array_equal(result.mask, result.scores < result.threshold)
    assert result.promise == (
        "At most 0.1 of the right labels are flagged, if at most 0.12 of all are wrong: up to 44 false alarms. "
        "This is not a precision."
    )
    assert (result.mask & ~digits.wrong).sum() <= 0.1 * (~digits.wrong).sum()
    estimated = find_mislabeled(digits.X, digits.y, flag=0.1, **FAST)
    assert estimated.threshold == cmd_threshold(estimated.scores, alpha=0.1, noise_rate=estimated.noise_rate)


def test_false_alarms_have_a_default_level(digits):
    result = find_mislabeled(digits.X, digits.y, flag=FalseAlarms(), **FAST)
    assert result.threshold == cmd_threshold(result.scores, alpha=0.05, noise_rate=result.noise_rate)


@pytest.mark.parametrize(
    ("flag", "rule"),
    [("estimated", Estimated()), (7, Budget(7)), (np.int64(7), Budget(7)), (0.1, FalseAlarms(0.1)),
     (np.float32(0.5), FalseAlarms(0.5))],
)  # fmt: skip
def test_short_forms_stand_for_rules(blobs, flag, rule):
    short, long = (find_mislabeled(blobs.X, blobs.y, flag=form, **FAST) for form in (flag, rule))
    assert short.rule == long.rule == rule.name
    assert short.promise == long.promise
    np.testing.assert_array_equal(short.mask, long.mask)


def test_a_rule_of_ones_own(blobs):
    class Negative(FlagRule):
        name = "negative"

        def flag(self, labels):
            return Flags(labels.scores < 0, 0.0, "Another class is trusted more.")

    detector = MislabelDetector(flag=Negative(), **FAST).fit(blobs.X, blobs.y)
    result = detector.result_
    assert result.rule == "negative"
    assert result.summary().startswith("2 of 80 labels flagged (2.5%) by the rule 'negative'.\nAnother class")
    np.testing.assert_array_equal(result.mask, result.scores < 0)
    assert detector.predict(blobs.X[:2] + 0.1, ["left", "right"]).tolist() == [False, True]


def test_p_values_rank_each_row_among_all_others(digits):
    result = find_mislabeled(digits.X, digits.y, **FAST)
    others = [np.delete(result.scores, i) for i in range(20)]
    expected = [conformal_p_values(result.scores[i : i + 1], others[i])[0] for i in range(20)]
    np.testing.assert_allclose(result.p_values[:20], expected)
    assert result.p_values.min() == pytest.approx(1 / 500)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("as_mask", [True, False])
def test_discoveries_against_verified_rows(digits, as_mask):
    verified = np.random.default_rng(0).permutation(np.flatnonzero(~digits.wrong))[:150]
    mask = np.isin(np.arange(500), verified)
    detector = MislabelDetector(flag=FDR(0.1), effort="fast").fit(
        digits.X, digits.y, verified=mask if as_mask else verified
    )
    result = detector.result_
    tested = conformal_p_values(result.scores[~mask], result.scores[mask])
    np.testing.assert_allclose(result.p_values[~mask], tested)
    np.testing.assert_array_equal(result.mask[~mask], benjamini_hochberg(tested, q=0.1))
    assert not result.mask[mask].any()
    np.testing.assert_array_equal(result.mask, ~mask & (result.scores < result.threshold))
    assert result.n_flagged > 20
    # A verified row is compared with the other 149.
    first = verified[0]
    rest = result.scores[np.setdiff1d(verified, [first])]
    assert result.p_values[first] == pytest.approx(conformal_p_values(result.scores[[first]], rest)[0])
    assert result.promise == (
        "On average at most 0.1 of the flags are false alarms, if the 150 verified rows are a random sample of "
        "the right labels. With this few verified rows, fewer than 24 wrong labels cannot be detected."
    )
    flipped = (digits.y_new + 1) % 10
    scores = detector.score_reliability(digits.X_new, flipped)
    expected = benjamini_hochberg(conformal_p_values(scores, result.scores[mask]), q=0.1)
    np.testing.assert_array_equal(detector.predict(digits.X_new, flipped), expected)
    assert expected.mean() > 0.8


def test_discoveries_may_be_none_or_all_but_the_verified(blobs):
    few = find_mislabeled(blobs.X, blobs.y, verified=[0, 1, 2], flag=FDR(0.1), **FAST)
    assert few.n_flagged == 0
    assert few.threshold == -np.inf
    assert "fewer than 193 wrong labels cannot be detected" in few.promise
    # The only verified row is the best of all, so that all others have a p-value of 1/2.
    best = find_mislabeled(blobs.X, blobs.y, **FAST).ranking[-1]
    every = find_mislabeled(blobs.X, blobs.y, verified=[best], flag=FDR(0.6), **FAST)
    assert every.n_flagged == 79
    assert every.threshold == every.scores[best]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("rule", [{"flag": 10}, {}, {"flag": 0.1}])
def test_verified_rows_are_never_flagged(digits, rule):
    plain = find_mislabeled(digits.X, digits.y, **rule, **FAST)
    spared = plain.ranking[:3]
    result = find_mislabeled(digits.X, digits.y, **rule, **FAST, verified=spared)
    np.testing.assert_array_equal(result.scores, plain.scores)
    assert not result.mask[spared].any()
    assert result.mask[plain.ranking[3]]
    if rule == {"flag": 10}:
        np.testing.assert_array_equal(np.flatnonzero(result.mask), np.sort(plain.ranking[3:13]))


@pytest.mark.filterwarnings("ignore:What was passed to MislabelDetector predicts")
@pytest.mark.parametrize(("learned", "n_sets"), [(False, draws(60)), (True, draws(12, 150))])
def test_the_false_discovery_rate_holds(learned, n_sets, monkeypatch):
    """Many small data sets with 12 wrong labels, the verified rows taking part in the fit."""
    monkeypatch.setattr("neighboragg.labels._detector.MAX_ROWS_FOR_METRIC", 10**5 * learned)
    rng = np.random.default_rng(0)
    q, n, m, n_wrong, unlucky, flags = 0.25, 90, 40, 12, 0, 0
    for _ in range(n_sets):
        y = rng.integers(0, 2, size=n)
        X = rng.normal(size=(n, 2)) + 2.2 * y[:, None]
        wrong = np.arange(n) < n_wrong
        given, verified = np.where(wrong, 1 - y, y), np.arange(n - m, n)
        result = find_mislabeled(X, given, flag=FDR(q), verified=verified, **FAST)
        share = result.mask[~wrong].sum() / max(result.n_flagged, 1)
        # A coin that shows heads with this share makes the count of heads binomial.
        unlucky += rng.random() < share
        flags += result.n_flagged
    assert unlucky <= binom.ppf(0.999, n_sets, q)
    assert flags > 2 * n_sets


def test_reliability_scores_by_hand():
    trust = np.array([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.0, 1.0, 0.0]])
    codes = [0, 1, 0]
    np.testing.assert_allclose(label_reliability(trust, codes)[:2], np.log([3.5, 2 / 7]))
    assert label_reliability(trust, codes)[2] < -700
    np.testing.assert_allclose(label_reliability(trust, codes, kind="trust"), [0.7, 0.2, 0.0])
    np.testing.assert_allclose(label_reliability(trust, codes, kind="paper"), [0.7, -0.2, -0.0])
    np.testing.assert_allclose(
        label_reliability(trust, codes, kind="paper", predicted=[1, 1, 1]), [-0.7, 0.2, -0.0]
    )
