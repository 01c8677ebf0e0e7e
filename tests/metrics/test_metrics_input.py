"""Errors of every metric for unusable input, the kinds of input it accepts, the summary, and the public names."""

import math
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

from neighboragg import metrics
from neighboragg.exceptions import InvalidInputError, TrustWarning
from neighboragg.metrics import trust_metrics
from neighboragg.metrics._ranking import group_ties
from neighboragg.metrics._selective import grouped_excess_aurc

NAMES = [
    "augrc",
    "auroc",
    "aurc",
    "average_precision_error",
    "average_precision_success",
    "coverage_at_risk",
    "expected_calibration_error",
    "fpr_at_tpr",
    "risk_at_coverage",
    "risk_coverage_curve",
    "trust_metrics",
]
OPTIONS = {"coverage_at_risk": {"risk": 0.1}, "risk_at_coverage": {"coverage": 0.5}}
KEYS = {
    "auroc": metrics.auroc,
    "ap_success": metrics.average_precision_success,
    "ap_error": metrics.average_precision_error,
    "fpr_at_95_tpr": partial(metrics.fpr_at_tpr, tpr=0.95),
    "aurc": metrics.aurc,
    "excess_aurc": lambda correct, trust: grouped_excess_aurc(group_ties(correct, trust)),
    "augrc": metrics.augrc,
    "coverage_at_1_risk": partial(metrics.coverage_at_risk, risk=0.01),
    "ece": metrics.expected_calibration_error,
    "brier": lambda correct, trust: np.mean((trust - correct) ** 2),
    "accuracy": lambda correct, trust: np.mean(correct),
}


@pytest.fixture(params=NAMES)
def metric(request):
    return partial(getattr(metrics, request.param), **OPTIONS.get(request.param, {})), request.param


def message_of(function, correct, trust):
    with pytest.raises(InvalidInputError) as caught:
        function(correct, trust)
    return str(caught.value)


def test_empty(metric):
    function, name = metric
    empty = f"passed to {name} is empty; at least one row is needed."
    assert message_of(function, [], []) == f"correct {empty}"
    assert message_of(function, [True], []) == f"trust {empty}"


def test_wrong_shapes(metric):
    function, name = metric
    assert message_of(function, [[True], [False]], [0.1, 0.2]) == (
        f"correct passed to {name} must be one-dimensional, one entry per row. Got shape (2, 1)."
    )
    assert message_of(function, [True, False], 0.5) == (
        f"trust passed to {name} must be one-dimensional, one entry per row. Got shape ()."
    )
    assert message_of(function, [True, False], [0.1, 0.2, 0.3]) == (
        f"correct and trust passed to {name} must have the same number of rows. Got 2 and 3."
    )


def test_correct_that_is_not_boolean(metric):
    function, name = metric
    expected = f"correct passed to {name} must be boolean, or the integers 0 and 1."
    hint = "Hint: pass y_pred == y_true."
    assert message_of(function, [1.0, 0.0], [0.1, 0.2]) == f"{expected} Got dtype float64.\n{hint}"
    assert message_of(function, ["yes", "no"], [0.1, 0.2]) == f"{expected} Got dtype <U3.\n{hint}"
    assert message_of(function, [True, None], [0.1, 0.2]) == (
        f"correct passed to {name} is missing in 1 of 2 rows, first in row 1.\n"
        "Hint: drop these rows from both correct and trust."
    )
    assert message_of(function, [0, 1, 2], [0.1, 0.2, 0.3]) == f"{expected} Row 2 is 2.\n{hint}"
    assert message_of(function, [-1, 1, 1], [0.1, 0.2, 0.3]) == f"{expected} Row 0 is -1.\n{hint}"


def test_trust_that_cannot_be_ranked(metric):
    function, name = metric
    assert message_of(function, [True, False, True], [0.1, math.nan, math.nan]) == (
        f"trust passed to {name} contains NaN, first in row 1.\n"
        "Hint: drop rows without a score from both correct and trust."
    )
    assert message_of(function, [True, False], ["a", "b"]) == (
        f"trust passed to {name} must be numbers. Got dtype <U1.\n"
        "Hint: pass one float per row, higher for more trusted."
    )


CORRECT = [True, False, True, True, False, True]
TRUST = [0.75, 0.25, 0.5, 1.0, 0.5, 0.25]


@pytest.mark.parametrize(
    "correct",
    [CORRECT, np.array(CORRECT), [int(c) for c in CORRECT], np.array(CORRECT, np.uint8), pd.Series(CORRECT)],
    ids=["list", "bool", "int", "uint8", "pandas"],
)
@pytest.mark.parametrize(
    "trust",
    [TRUST, np.array(TRUST, np.float32), np.array(TRUST, np.float16), pd.Series(TRUST), pl.Series(TRUST)],
    ids=["list", "float32", "float16", "pandas", "polars"],
)
def test_containers_and_types_make_no_difference(correct, trust):
    assert trust_metrics(correct, trust) == trust_metrics(np.array(CORRECT), np.array(TRUST))


def test_input_is_left_as_it_was():
    correct, trust = np.array(CORRECT), np.array(TRUST)
    trust_metrics(correct, trust)
    metrics.bootstrap_interval(metrics.auroc, correct, trust, n_resamples=3, random_state=0)
    assert correct.tolist() == CORRECT
    assert trust.tolist() == TRUST


def test_summary_has_every_metric_under_a_stable_key():
    rng = np.random.default_rng(0)
    trust = rng.integers(0, 101, size=400) / 100
    correct = rng.uniform(size=400) < trust
    summary = trust_metrics(correct, trust)
    assert list(summary) == list(KEYS)
    for key, function in KEYS.items():
        assert type(summary[key]) is float
        assert summary[key] == pytest.approx(function(correct, trust), abs=1e-15), key


def test_summary_of_a_score_that_is_not_a_probability():
    for trust in ([0.5, 1.5, 0.2], [0.5, 0.5, -3.0]):
        summary = trust_metrics([True, True, False], trust)
        assert [key for key, value in summary.items() if math.isnan(value)] == ["ece", "brier"]
        assert summary["auroc"] == 1.0


@pytest.mark.parametrize(("value", "word"), [(True, "correct"), (False, "wrong")])
def test_summary_warns_once_about_undefined_metrics(value, word):
    with pytest.warns(TrustWarning) as caught:
        summary = trust_metrics([value] * 5, [0.5] * 5)
    assert [str(warning.message) for warning in caught] == [
        f"In trust_metrics, auroc, ap_success, ap_error and fpr_at_95_tpr are undefined because all 5 rows are {word}; "
        "NaN is returned.\nHint: pass both correct and wrong predictions."
    ]
    undefined = [key for key, number in summary.items() if math.isnan(number)]
    assert undefined == ["auroc", "ap_success", "ap_error", "fpr_at_95_tpr"]
    assert summary["accuracy"] == float(value)


def test_public_names():
    public = [name for name in dir(metrics) if not name.startswith("_")]
    assert sorted(metrics.__all__) == sorted(public)
    for name in metrics.__all__:
        assert getattr(metrics, name).__doc__
