"""The promise of selective prediction, by simulated calibrations whose true risk is known."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import beta, binom, binomtest

from neighboragg import SelectiveClassifier
from neighboragg.exceptions import TrustWarning
from neighboragg.promises import coverage_threshold, risk_threshold
from sizes import draws

REPETITIONS = draws(200)
# Chance of a false failure per configuration, if the guarantee just holds.
LEVEL = 1e-4
FINE = (np.arange(100_000) + 0.5) / 100_000


def incredible(broken, trials, rate):
    """Whether so many broken promises cannot be put down to chance at the promised rate."""
    return binom.sf(broken - 1, trials, rate) < LEVEL


def continuous(error_rate):
    """Uniform trust, with the probability of an error as a function of trust."""
    tail = np.cumsum(error_rate(FINE)[::-1])[::-1] / np.arange(len(FINE), 0, -1)

    def draw(rng, n):
        trust = rng.random(n)
        return rng.random(n) >= error_rate(trust), trust

    return SimpleNamespace(
        draw=draw,
        risk=lambda t: tail[np.clip(np.searchsorted(FINE, t), 0, len(FINE) - 1)],
        coverage=lambda t: 1.0 - np.clip(t, 0.0, 1.0),
    )


def tied(values, weights, error_rates):
    """Trust with few values, such as the votes of a few neighbors."""
    values, weights, error_rates = map(np.asarray, (values, weights, error_rates))

    def draw(rng, n):
        which = rng.choice(len(values), size=n, p=weights)
        return rng.random(n) >= error_rates[which], values[which]

    def risk(threshold):
        kept = values >= threshold
        return (weights * error_rates)[kept].sum() / weights[kept].sum()

    return SimpleNamespace(draw=draw, risk=risk, coverage=lambda t: weights[values >= t].sum())


def families(target):
    """Ways in which errors may depend on trust, some made to tempt the search beyond the target.

    The risk of "not monotone" is within the target down to 0.65, above it down to 0.3, and within it again.
    """
    return {
        "falling": continuous(lambda t: np.minimum(3.0 * target * (1.0 - t), 1.0)),
        "tied": tied(
            [0.0, 0.2, 0.4, 0.6, 0.8, 1.0],
            [0.1, 0.1, 0.15, 0.2, 0.25, 0.2],
            np.minimum(target * np.array([4.0, 3.0, 2.2, 1.8, 1.1, 0.4]), 1.0),
        ),
        "one value": tied([0.5], [1.0], [1.001 * target]),
        "near the target": continuous(lambda t: np.full(len(t), 1.001 * target)),
        "not monotone": continuous(lambda t: target * (1.0 - 0.9 * np.cos(9.0 * (1.0 - t)))),
        "worst on top": continuous(lambda t: target * np.where(t > 0.95, 1.5, 0.9)),
    }


def broken_promises(family, n, target, level, *, seed, grid=None):
    """How many of the calibrations promise a risk that they do not keep, and how many promise at all."""
    rng = np.random.default_rng(seed)
    broken = promised = 0
    for i in range(REPETITIONS):
        correct, trust = family.draw(rng, n)
        found = risk_threshold(
            correct, trust, target_risk=target, confidence_level=level, grid=grid, random_state=i
        )
        promised += found.promised
        broken += found.promised and family.risk(found.threshold) > target
    return broken, promised


@pytest.mark.parametrize(
    ("name", "n", "target", "level", "least_promised"),
    [
        ("falling", 60, 0.3, 0.9, 100),
        ("falling", 200, 0.1, 0.9, 30),
        ("falling", 1000, 0.1, 0.95, 700),
        ("tied", 60, 0.3, 0.8, 50),
        ("tied", 200, 0.2, 0.9, 200),
        ("one value", 60, 0.2, 0.8, 50),
        ("near the target", 60, 0.1, 0.9, 10),
        ("near the target", 200, 0.2, 0.8, 50),
        ("not monotone", 120, 0.2, 0.9, 100),
        ("not monotone", 1000, 0.2, 0.9, 900),
        ("worst on top", 200, 0.3, 0.9, 20),
    ],
)
def test_promised_risk_is_broken_no_more_often_than_allowed(name, n, target, level, least_promised):
    family = families(target)[name]
    broken, promised = broken_promises(family, n, target, level, seed=[n, int(100 * target)])
    assert promised >= least_promised * REPETITIONS / 1000
    assert not incredible(broken, REPETITIONS, 1.0 - level), broken


@pytest.mark.parametrize("name", ["falling", "tied", "near the target", "not monotone"])
def test_promise_holds_for_a_given_grid(name):
    target, level = 0.2, 0.9
    family = families(target)[name]
    grid = family.draw(np.random.default_rng(0), 100)[1]
    broken, promised = broken_promises(family, 150, target, level, seed=3, grid=grid)
    assert promised >= REPETITIONS / 50
    assert not incredible(broken, REPETITIONS, 1.0 - level), broken


def test_promise_is_not_needlessly_careful():
    """With a single threshold the test is exact: promises are broken as often as the binomial says."""
    n, target, level = 200, 0.2, 0.9
    rows = n - 40  # a fifth places the threshold
    most_errors = np.flatnonzero(binom.cdf(np.arange(rows), rows, target) <= 1 - level)[-1]
    expected = binom.cdf(most_errors, rows, 1.001 * target)
    broken, _ = broken_promises(families(target)["one value"], n, target, level, seed=4)
    assert expected > 0.06
    assert binomtest(broken, REPETITIONS, expected).pvalue > LEVEL


def test_simulation_can_fail():
    """The lowest threshold whose error rate on the calibration rows is within the target breaks it often."""
    target, level = 0.2, 0.9
    family, rng = families(target)["near the target"], np.random.default_rng(5)
    broken = 0
    for _ in range(REPETITIONS):
        correct, trust = family.draw(rng, 200)
        order = np.argsort(-trust)
        risk = np.cumsum(~correct[order]) / np.arange(1, 201)
        broken += bool((risk[20:] <= target).any())
    assert incredible(broken, REPETITIONS, 1.0 - level)


def test_promise_within_every_predicted_class_holds_for_all_at_once(given_model):
    target, level, n = 0.2, 0.9, 300
    shapes = [families(target)[name] for name in ("falling", "near the target", "tied")]
    rng = np.random.default_rng(n)
    broken = promised = 0
    safe = SelectiveClassifier(
        given_model((0, 1, 2)), target_risk=target, confidence_level=level, per_class=True
    )
    for _ in range(REPETITIONS):
        predicted = rng.choice(3, size=n, p=[0.4, 0.4, 0.2])
        trust, correct = np.empty(n), np.empty(n, dtype=bool)
        for code, shape in enumerate(shapes):
            rows = predicted == code
            correct[rows], trust[rows] = shape.draw(rng, int(rows.sum()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrustWarning)
            safe.calibrate(
                np.column_stack([predicted, trust]), np.where(correct, predicted, (predicted + 1) % 3)
            )
        kept = [(t, shape) for t, shape in zip(safe.thresholds_, shapes, strict=True) if np.isfinite(t)]
        promised += len(kept)
        broken += any(shape.risk(t) > target for t, shape in kept)
    assert promised > REPETITIONS / 10
    assert not incredible(broken, REPETITIONS, 1.0 - level), broken


@pytest.mark.parametrize(
    ("name", "n", "target", "level"),
    [
        ("falling", 60, 0.8, 0.9),
        ("tied", 60, 0.8, 0.9),
        ("tied", 200, 0.45, 0.9),
        ("falling", 200, 0.5, 0.95),
    ],
)
def test_promised_coverage_is_broken_no_more_often_than_allowed(name, n, target, level):
    family, rng = families(0.2)[name], np.random.default_rng(n)
    broken = 0
    for _ in range(REPETITIONS):
        found = coverage_threshold(*family.draw(rng, n), target_coverage=target, confidence_level=level)
        assert found.promised
        broken += family.coverage(found.threshold) < target
    assert not incredible(broken, REPETITIONS, 1.0 - level), broken
    if name == "falling":
        # Without ties the coverage of the chosen rank is known exactly, so the test sees both sides.
        ranks = np.arange(1, n + 1)
        rates = beta.cdf(target, n - ranks + 1, ranks)
        expected = rates[rates <= 1.0 - level][-1]
        assert binomtest(broken, REPETITIONS, expected).pvalue > LEVEL


def test_promised_coverage_within_every_predicted_class(given_model):
    target, level, n = 0.6, 0.9, 150
    rng = np.random.default_rng(6)
    safe = SelectiveClassifier(
        given_model((0, 1)), target_coverage=target, confidence_level=level, per_class=True
    )
    broken = 0
    for _ in range(REPETITIONS):
        rows = np.column_stack([rng.integers(0, 2, n), rng.random(n)])
        safe.calibrate(rows, rng.integers(0, 2, n))
        broken += bool((1.0 - safe.thresholds_ < target).any())
    assert not incredible(broken, REPETITIONS, 1.0 - level), broken


@pytest.mark.parametrize(("n", "target"), [(1000, 0.05), (1000, 0.3), (5000, 0.3)])
def test_an_easy_target_is_nearly_always_promised(n, target):
    """True risk is a third of the target everywhere; many rows must not make the search start too high."""
    family, rng = continuous(lambda t: 0.6 * target * (1.0 - t)), np.random.default_rng(7)
    found = [
        risk_threshold(*family.draw(rng, n), target_risk=target, random_state=i)
        for i in range(draws(100, 300))
    ]
    assert np.mean([result.promised for result in found]) >= 0.95
    assert np.mean([result.coverage for result in found]) > 0.9
