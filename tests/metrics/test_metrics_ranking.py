"""AUROC, average precision and FPR at TPR against scikit-learn and against direct counting."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from neighboragg.exceptions import InvalidParameterError, TrustWarning
from neighboragg.metrics import auroc, average_precision_error, average_precision_success, fpr_at_tpr

RANKING = [auroc, average_precision_success, average_precision_error, fpr_at_tpr]
# Few distinct values: ties in almost every example.
TIED_ROWS = st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=40)


def split(rows):
    correct = np.array([row[0] for row in rows])
    assume(0 < correct.sum() < len(correct))
    return correct, np.array([row[1] for row in rows]) / 4.0


@given(TIED_ROWS)
def test_agree_with_scikit_learn(rows):
    correct, trust = split(rows)
    assert auroc(correct, trust) == pytest.approx(roc_auc_score(correct, trust), abs=1e-12)
    assert average_precision_success(correct, trust) == pytest.approx(
        average_precision_score(correct, trust), abs=1e-12
    )
    assert average_precision_error(correct, trust) == pytest.approx(
        average_precision_score(~correct, -trust), abs=1e-12
    )


def test_agree_with_scikit_learn_on_many_continuous_rows():
    rng = np.random.default_rng(0)
    trust = rng.normal(size=5000)
    correct = trust + rng.normal(size=5000) > -1
    assert auroc(correct, trust) == pytest.approx(roc_auc_score(correct, trust), abs=1e-12)
    assert average_precision_error(correct, trust) == pytest.approx(
        average_precision_score(~correct, -trust), abs=1e-12
    )


@given(TIED_ROWS, st.sampled_from([0.05, 0.5, 0.8, 0.95, 1.0]))
def test_fpr_is_the_smallest_on_the_roc(rows, tpr):
    correct, trust = split(rows)
    false_rate, true_rate, _ = roc_curve(correct, trust, drop_intermediate=False)
    assert fpr_at_tpr(correct, trust, tpr=tpr) == pytest.approx(false_rate[true_rate >= tpr].min(), abs=1e-12)


def test_fpr_counts_a_rate_that_is_reached_exactly():
    # 0.55 * 100 is more than 55 in doubles: a threshold that lets 55 of 100 pass must still count.
    assert 0.55 * 100 > 55
    for passing in range(1, 101):
        trust = np.concatenate((np.full(passing, 3.0), [2.0], np.full(100 - passing, 1.0)))
        assert fpr_at_tpr(trust != 2.0, trust, tpr=passing / 100) == 0.0


def test_fpr_does_not_interpolate_within_ties():
    assert fpr_at_tpr([True, False, True, False], [1, 1, 1, 0]) == 0.5


@given(TIED_ROWS, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_change_a_bit(rows, random):
    correct, trust = split(rows)
    shuffled = list(range(len(rows)))
    random.shuffle(shuffled)
    for metric in RANKING:
        assert metric(correct, trust) == metric(correct[shuffled], trust[shuffled])


@given(TIED_ROWS)
def test_only_the_order_of_trust_matters(rows):
    correct, trust = split(rows)
    for metric in RANKING:
        assert metric(correct, trust) == metric(correct, np.exp(3 * trust) - 7)


@given(TIED_ROWS)
def test_repeating_every_row_changes_nothing(rows):
    correct, trust = split(rows)
    for metric in RANKING:
        assert metric(np.tile(correct, 3), np.tile(trust, 3)) == pytest.approx(
            metric(correct, trust), abs=1e-12
        )


@given(TIED_ROWS)
def test_turning_trust_upside_down_swaps_the_roles(rows):
    correct, trust = split(rows)
    assert auroc(correct, -trust) == pytest.approx(1 - auroc(correct, trust), abs=1e-12)
    assert average_precision_error(correct, trust) == average_precision_success(~correct, -trust)


def test_perfect_useless_and_inverted_trust():
    correct = np.array([True] * 6 + [False] * 2)
    assert [metric(correct, correct) for metric in RANKING] == [1.0, 1.0, 1.0, 0.0]
    assert [metric(correct, np.ones(8)) for metric in RANKING] == [0.5, 0.75, 0.25, 1.0]
    assert [metric(correct, ~correct) for metric in RANKING] == [0.0, 0.75, 0.25, 1.0]


def test_infinite_trust_has_a_rank():
    trust = np.array([np.inf, np.inf, 3.0, -np.inf, -np.inf])
    correct = [True, False, True, False, True]
    assert auroc(correct, trust) == pytest.approx(roc_auc_score(correct, [2, 2, 1, 0, 0]))


def test_negative_zero_ties_with_zero():
    assert auroc([True, False], [0.0, -0.0]) == 0.5


@pytest.mark.parametrize("metric", RANKING)
@pytest.mark.parametrize(("value", "word"), [(True, "correct"), (False, "wrong")])
def test_one_kind_of_row_gives_nan_and_a_warning(metric, value, word):
    with pytest.warns(TrustWarning) as caught:
        result = metric([value] * 3, [0.1, 0.2, 0.3])
    assert math.isnan(result)
    assert [str(warning.message) for warning in caught] == [
        f"{metric.__name__} is undefined because all 3 rows are {word}; NaN is returned.\n"
        "Hint: pass both correct and wrong predictions."
    ]
    # The warning points at the caller, not into the package.
    assert caught[0].filename == __file__


@pytest.mark.parametrize("tpr", [0, 1.5, True, "0.9", math.nan])
def test_bad_tpr(tpr):
    with pytest.raises(InvalidParameterError) as caught:
        fpr_at_tpr([True, False], [1, 0], tpr=tpr)
    assert str(caught.value) == (
        f"The 'tpr' parameter of fpr_at_tpr must be a number in (0, 1]. Got {tpr!r} instead."
    )
