"""The promises of the conformal rules, by simulation against exact bounds."""

from itertools import product
from math import ceil, floor

import numpy as np
import pytest
from scipy.stats import binom

from neighboragg.promises import benjamini_hochberg, cmd_threshold, conformal_p_values
from neighboragg.promises._conformal import cmd_flags
from sizes import draws

REPETITIONS = 1000
# Chance of a false failure per configuration, if the guarantee just holds.
LEVEL = 1e-4
SIZES = draws((50, 500), (50, 500, 5000))
ALPHAS = (0.01, 0.05, 0.2)
NOISE_RATES = (0.0, 0.1, 0.3)
KINDS = ("continuous", "tied")


def draw(rng, shape, kind):
    """Scores of correctly labeled rows; tied ones take seven values, most of them the upper three."""
    return rng.normal(size=shape) if kind == "continuous" else rng.binomial(6, 0.8, size=shape).astype(float)


def thresholds(rng, n, alpha, noise_rate, kind, *, wrong, assumed=None):
    """Thresholds of many noisy data sets; `wrong` turns correct scores into those of wrong labels."""
    scores = draw(rng, (REPETITIONS, n), kind)
    m = floor(n * noise_rate + 1e-9)
    scores[:, :m] = wrong(scores[:, :m])
    assumed = noise_rate if assumed is None else assumed
    return np.array([cmd_threshold(row, alpha=alpha, noise_rate=assumed) for row in scores])


def exceeds(hits, trials, rate):
    """Whether so many hits are incredible at the promised rate."""
    return binom.sf(hits - 1, trials, rate) < LEVEL


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_cmd_false_alarms_stay_below_alpha_when_wrong_labels_score_highest(alpha, kind):
    """The worst case: wrong labels look best of all. One fresh row a data set keeps trials independent."""
    rng = np.random.default_rng([int(1000 * alpha), KINDS.index(kind)])
    total = trials = 0
    for n, noise_rate in product(SIZES, NOISE_RATES):
        if alpha * (n + 1 - n * noise_rate) < 1:
            continue
        tau = thresholds(rng, n, alpha, noise_rate, kind, wrong=lambda s: s + 100.0)
        hits = int((draw(rng, REPETITIONS, kind) < tau).sum())
        assert not exceeds(hits, REPETITIONS, alpha), (n, noise_rate, hits)
        total, trials = total + hits, trials + REPETITIONS
    assert trials >= 3 * REPETITIONS
    assert not exceeds(total, trials, alpha)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shift", [-2.0, 0.0])
def test_cmd_false_alarms_stay_below_alpha_when_wrong_labels_score_lower_or_alike(shift, kind):
    rng = np.random.default_rng([11, int(-shift), KINDS.index(kind)])
    for alpha, noise_rate in product((0.05, 0.2), (0.1, 0.3)):
        tau = thresholds(rng, 300, alpha, noise_rate, kind, wrong=lambda s: s + shift)
        hits = int((draw(rng, REPETITIONS, kind) < tau).sum())
        assert not exceeds(hits, REPETITIONS, alpha), (alpha, noise_rate, hits)


@pytest.mark.parametrize(("n", "alpha", "noise_rate"), [(99, 0.1, 0.0), (99, 0.1, 0.3), (400, 0.05, 0.2)])
def test_cmd_false_alarm_rate_is_as_large_as_the_theory_says(n, alpha, noise_rate):
    """For uniform scores the threshold itself is the false-alarm rate; its mean is known exactly."""
    rng = np.random.default_rng(5)
    m = floor(n * noise_rate + 1e-9)
    scores = rng.uniform(size=(4 * REPETITIONS, n))
    scores[:, :m] += 1.0
    tau = np.array([cmd_threshold(row, alpha=alpha, noise_rate=noise_rate) for row in scores])
    rank = ceil(round((n + 1) * (1 - alpha) + alpha * n * noise_rate, 9))
    expected = (n + 1 - rank) / (n + 1 - m)
    assert expected <= alpha
    assert tau.mean() == pytest.approx(expected, abs=5 * tau.std() / np.sqrt(len(tau)))


def test_cmd_bound_breaks_if_the_noise_rate_is_left_out():
    """The simulation can fail: noise of 30 % taken for none raises the rate to nearly alpha / 0.7."""
    rng = np.random.default_rng(6)
    tau = thresholds(rng, 500, 0.2, 0.3, "continuous", wrong=lambda s: s + 100.0, assumed=0.0)
    assert exceeds(int((rng.normal(size=REPETITIONS) < tau).sum()), REPETITIONS, 0.2)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_cmd_bound_breaks_with_ties_if_the_threshold_itself_is_flagged(alpha):
    rng = np.random.default_rng(7)
    tau = thresholds(rng, 500, alpha, 0.0, "tied", wrong=lambda s: s)
    fresh = draw(rng, REPETITIONS, "tied")
    assert not exceeds(int((fresh < tau).sum()), REPETITIONS, alpha)
    assert exceeds(int((fresh <= tau).sum()), REPETITIONS, alpha)


def test_cmd_flags_at_most_a_share_alpha_of_the_correct_rows_in_sample():
    """No luck involved: even if all flags hit correct labels, they are no more than alpha of them."""
    rng = np.random.default_rng(8)
    for n, alpha, noise_rate in product(SIZES, ALPHAS, NOISE_RATES):
        if alpha * (n + 1 - n * noise_rate) < 1:
            continue
        n_flags = cmd_flags(rng.normal(size=n), alpha=alpha, noise_rate=noise_rate).sum()
        assert n_flags <= alpha * (n - floor(n * noise_rate + 1e-9))
        assert n_flags >= alpha * (1 - noise_rate) * n - 2


def false_discovery_proportions(rng, *, m, n_clean, n_wrong, q, kind, repetitions):
    """False discovery proportion and power of each simulated data set."""
    clean = draw(rng, (repetitions, m), kind)
    right = draw(rng, (repetitions, n_clean), kind)
    wrong = draw(rng, (repetitions, n_wrong), kind) - 4.0
    scores = np.concatenate([right, wrong], axis=1)
    masks = np.array(
        [benjamini_hochberg(conformal_p_values(s, c), q=q) for s, c in zip(scores, clean, strict=True)]
    )
    false = masks[:, :n_clean].sum(axis=1)
    return false / np.maximum(masks.sum(axis=1), 1), masks[:, n_clean:].mean()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("q", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("m", [150, 1000])
def test_false_discovery_rate_stays_below_q(m, q, kind):
    rng = np.random.default_rng([9, m, int(100 * q), KINDS.index(kind)])
    fdp, power = false_discovery_proportions(
        rng, m=m, n_clean=80, n_wrong=20, q=q, kind=kind, repetitions=REPETITIONS
    )
    # The guarantee is q times the share of correct labels, here 0.8 q.
    assert fdp.mean() <= 0.8 * q + 4 * fdp.std() / np.sqrt(len(fdp))
    assert power > 0.3


def test_false_discovery_rate_is_exactly_the_share_of_correct_labels_times_q():
    """For scores without ties and (m + 1) q / n whole there is no slack: the test sees both sides."""
    rng = np.random.default_rng(10)
    fdp, _ = false_discovery_proportions(
        rng, m=999, n_clean=70, n_wrong=30, q=0.2, kind="continuous", repetitions=2000
    )
    assert fdp.mean() == pytest.approx(0.7 * 0.2, abs=4 * fdp.std() / np.sqrt(len(fdp)))


@pytest.mark.parametrize("kind", KINDS)
def test_conformal_p_values_of_correct_labels_are_not_too_small(kind):
    rng = np.random.default_rng(12)
    clean, fresh = draw(rng, (4 * REPETITIONS, 59), kind), draw(rng, (4 * REPETITIONS, 1), kind)
    p = np.array([conformal_p_values(s, c)[0] for s, c in zip(fresh, clean, strict=True)])
    for level in (1 / 60, 0.05, 0.1, 0.25, 0.5, 0.75):
        assert not exceeds(int((p <= level + 1e-12).sum()), len(p), level)
