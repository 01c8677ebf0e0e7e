"""What numbers about wrong labels assume, by simulation over kinds of noise."""

import warnings

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import binom

from neighboragg import find_mislabeled
from neighboragg.exceptions import TrustWarning
from neighboragg.labels import FDR, FalseAlarms
from neighboragg.labels._noise import confident_of_another
from neighboragg.labels._rules import look_chosen
from neighboragg.promises import cmd_threshold, errors_left_interval
from sizes import draws

KINDS = ("random", "pairs", "plausible", "instance dependent", "model", "copies")
LEVEL = 1e-4


def noisy_labels(rng, kind, n, n_classes=3, rate=0.2):
    """Trust of rows, their labels, and which are wrong."""
    log_trust = 2.5 * rng.normal(size=(n, n_classes))
    trust = softmax(log_trust, axis=1)
    true = (trust.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(0, n_classes - 1)
    given, others = true.copy(), trust.copy()
    others[np.arange(n), true] = 0
    weight = others.max(axis=1) if kind == "instance dependent" else 1 - trust[np.arange(n), true]
    if kind in ("plausible", "instance dependent"):
        rows = rng.choice(n, round(rate * n), replace=False, p=weight / weight.sum())
        given[rows] = others[rows].argmax(axis=1)
    elif kind == "model":
        given = trust.argmax(axis=1)
    else:
        rows = rng.permutation(n)[: round(rate * n)]
        step = 1 if kind == "pairs" else rng.integers(1, n_classes, size=len(rows))
        given[rows] = (true[rows] + step) % n_classes
        if kind == "copies":
            # Copies that vouch for each other are trusted in the wrong label.
            trust[rows] = 0.01 + 0.97 * np.eye(n_classes)[given[rows]]
    return trust / trust.sum(axis=1, keepdims=True), given, given != true


@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_for_errors_left_holds_for_every_kind_of_noise(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    n_runs, missed = draws(60, 500), 0
    for _ in range(n_runs):
        trust, given, wrong = noisy_labels(rng, kind, 400)
        unflagged = rng.permutation(np.flatnonzero(~confident_of_another(trust, given)))
        reviewed, left = unflagged[:60], unflagged[60:]
        low, high = errors_left_interval(int(wrong[reviewed].sum()), 60, len(left))
        missed += not low <= wrong[left].sum() <= high
    assert binom.sf(missed - 1, n_runs, 0.05) > LEVEL


@pytest.mark.parametrize("kind", KINDS)
def test_false_alarms_stay_below_the_level_if_no_more_are_wrong_than_assumed(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    level, above, n_runs, new_flags = 0.1, 0, draws(60, 500), 0
    for _ in range(n_runs):
        trust, given, wrong = noisy_labels(rng, kind, 401)
        scores = np.log(trust[np.arange(401), given])
        share = float(wrong[:400].mean())
        threshold = cmd_threshold(scores[:400], alpha=level, noise_rate=share)
        above += ((scores < threshold) & ~wrong)[:400].sum() > level * (~wrong[:400]).sum()
        # A new row counts if its label is right; one that is wrong is replaced by a right one of the fitted rows.
        new = 400 if not wrong[400] else rng.choice(np.flatnonzero(~wrong))
        new_flags += scores[new] < threshold
        unaware = scores[:400] < cmd_threshold(scores[:400], alpha=level)
        assert (unaware & ~wrong[:400]).sum() <= level * 400
    assert above == 0
    assert binom.sf(new_flags - 1, n_runs, level) > LEVEL


def test_wrong_copies_break_the_level_of_false_alarms_if_none_is_assumed_and_the_promise_says_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = rng.integers(0, 2, size=200)
    X[:, 0] += 2.2 * y
    wrong = np.arange(200) < 60
    far = np.array([[30, 0], [0, 30], [30, 30]])
    X[wrong] = np.repeat(far, 20, axis=0) + 0.01 * X[wrong]
    y[wrong] = np.repeat([0, 1, 0], 20)
    settings = {"features": "passthrough", "effort": "fast"}
    assumed = find_mislabeled(X, y, flag=FalseAlarms(0.1, noise_rate=0.3), **settings)
    assert assumed.mask[~wrong].mean() <= 0.1
    found = find_mislabeled(X, y, flag=FalseAlarms(0.1), **settings)
    assert found.mask[~wrong].mean() > 0.1
    assert (
        "is an estimate, too low where wrong labels look right to a model; pass noise_rate" in found.promise
    )


@pytest.mark.parametrize("kind", ["random", "pairs", "plausible", "instance dependent"])
def test_random_verified_rows_are_not_suspected(kind):
    """With as many wrong labels allowed for as there are, chance alone decides."""
    rng = np.random.default_rng(KINDS.index(kind))
    n_runs, suspected = draws(100, 1000), 0
    for _ in range(n_runs):
        trust, given, wrong = noisy_labels(rng, kind, 400, rate=0.1)
        scores = np.log(trust[np.arange(400), given])
        verified = np.isin(np.arange(400), rng.permutation(np.flatnonzero(~wrong))[:80])
        suspected += look_chosen(scores[verified], scores[~verified], int(wrong.sum()))
    assert binom.sf(suspected - 1, n_runs, 1e-3) > LEVEL


def test_verified_rows_that_look_right_are_noticed():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=300)
    X = rng.normal(size=(300, 2)) + 2.2 * y[:, None]
    wrong = np.arange(300) < 20
    given = np.where(wrong, 1 - y, y)
    settings = {"effort": "fast", "flag": FDR(0.2)}
    trusted = find_mislabeled(X, given, effort="fast").ranking[::-1]
    chosen = trusted[~wrong[trusted]][:100]
    with pytest.warns(TrustWarning, match="draw the rows to verify at random from all rows"):
        result = find_mislabeled(X, given, verified=chosen, **settings)
    assert (result.mask & ~wrong).sum() > 0.4 * result.n_flagged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        find_mislabeled(X, given, verified=rng.permutation(np.flatnonzero(~wrong))[:100], **settings)


def test_labels_of_a_model_look_right_and_the_summary_says_so():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, size=400)
    X = rng.normal(size=(400, 3)) + 1.8 * true[:, None] * [1, 1, 0]
    made = (X @ [1.0, 0.0, 0.0] > 0.9).astype(int)
    assert (made != true).mean() > 0.1
    result = find_mislabeled(X, made, effort="fast")
    assert result.noise_rate < (made != true).mean() / 2
    assert (
        "It is too low where errors look right to a model, as in labels that a model made."
        in result.summary()
    )
