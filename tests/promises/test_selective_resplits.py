"""The promise on real data: one trained model, many random choices of the calibration rows."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

from neighboragg import TrustedClassifier
from neighboragg.promises import coverage_threshold, risk_threshold

RESPLITS = 200
LEVEL = 0.9


def incredible(broken, rate):
    return binom.sf(broken - 1, RESPLITS, rate) < 1e-4


@pytest.fixture(scope="module")
def outcomes():
    """Whether a weak classifier is right, and the trust in it, on digits that took no part in the fit."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    model = TrustedClassifier(GaussianNB(), random_state=0).fit(X[:400], y[:400])
    correct = model.predict(X[400:]) == y[400:]
    assert 0.1 < 1 - correct.mean() < 0.35
    return correct, model.score_samples(X[400:])


@pytest.fixture(scope="module", params=[0.03, 0.05, 0.1])
def resplits(request, outcomes):
    """For each resplit the threshold, and which rows it was found from."""
    correct, trust = outcomes
    rng = np.random.default_rng(int(1000 * request.param))
    found = []
    for i in range(RESPLITS):
        calibration = rng.permutation(len(correct)) < 600
        result = risk_threshold(
            correct[calibration],
            trust[calibration],
            target_risk=request.param,
            confidence_level=LEVEL,
            random_state=i,
        )
        found.append((result, calibration))
    return request.param, found


@pytest.mark.full(keep=1)
def test_risk_over_all_rows_keeps_the_promise(outcomes, resplits):
    """Calibration rows are drawn from these rows without replacement, which only makes the promise easier."""
    correct, trust = outcomes
    target, found = resplits
    assert sum(result.promised for result, _ in found) > RESPLITS / 2
    broken = sum(
        bool((~correct[trust >= result.threshold]).mean() > target) for result, _ in found if result.promised
    )
    assert not incredible(broken, 1 - LEVEL), broken


def test_risk_over_the_other_rows_is_credible_under_the_promise(outcomes, resplits):
    """A finite test set errs too: a promise counts as broken if its errors are incredible at the 5% level."""
    correct, trust = outcomes
    target, found = resplits
    broken = 0
    for result, calibration in found:
        kept = ~calibration & (trust >= result.threshold)
        errors = int((kept & ~correct).sum())
        broken += errors > 0 and binom.sf(errors - 1, int(kept.sum()), target) < 0.05
    assert not incredible(broken, (1 - LEVEL) + 0.05), broken


def test_coverage_over_all_rows_keeps_the_promise(outcomes):
    correct, trust = outcomes
    rng = np.random.default_rng(1)
    broken = 0
    for _ in range(RESPLITS):
        rows = rng.permutation(len(correct))[:200]
        found = coverage_threshold(correct[rows], trust[rows], target_coverage=0.7, confidence_level=LEVEL)
        broken += (trust >= found.threshold).mean() < 0.7
    assert not incredible(broken, 1 - LEVEL), broken
