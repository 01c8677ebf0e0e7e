"""No test label reaches a trust score, and chance looks like chance."""

import numpy as np
import pytest

from benchmarks.runs import ENTRANTS
from neighboragg.metrics import auroc
from neighboragg.trust._compare import make_cell


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 400)
    return rng.normal(size=(400, 5)) + labels[:, None], labels


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("name", [name for name in ENTRANTS if name != "Pool, best"])
def test_test_labels_change_no_trust_score(rows, name):
    X, labels = rows
    cell = make_cell(X, labels, "LR", 0)
    shuffled = labels.copy()
    shuffled[cell.test] = np.random.default_rng(1).permutation(labels[cell.test])
    other = make_cell(X, shuffled, "LR", 0)
    assert (cell.correct != other.correct).mean() > 0.2
    np.testing.assert_array_equal(cell.proba, other.proba)
    entrant = ENTRANTS[name]
    np.testing.assert_array_equal(
        cell.trust(entrant.make(), entrant.vectors), other.trust(entrant.make(), entrant.vectors)
    )


@pytest.mark.full
def test_test_labels_change_no_second_opinion(rows):
    X, labels = rows[0][:200], rows[1][:200]
    cell = make_cell(X, labels, "LR", 0)
    shuffled = labels.copy()
    shuffled[cell.test] = np.random.default_rng(1).permutation(labels[cell.test])
    other = make_cell(X, shuffled, "LR", 0)
    entrant = ENTRANTS["Pool, best"]
    np.testing.assert_array_equal(
        cell.trust(entrant.make(), entrant.vectors), other.trust(entrant.make(), entrant.vectors)
    )


def test_validation_labels_do_change_it(rows):
    """The comparison can fail: labels that are meant to be used make a difference."""
    X, labels = rows
    cell = make_cell(X, labels, "LR", 0)
    shuffled = labels.copy()
    shuffled[cell.val] = np.random.default_rng(1).permutation(labels[cell.val])
    other = make_cell(X, shuffled, "LR", 0)
    trust = [c.trust(ENTRANTS["Pool"].make(), "quantiles") for c in (cell, other)]
    assert np.abs(trust[0] - trust[1]).max() > 0.01


@pytest.mark.full
def test_shuffled_labels_give_no_better_than_chance():
    """Labels independent of the rows: who is right is a coin's choice, and trust must not foresee it."""
    found = []
    for seed, base in enumerate(("LR", "RF", "LR", "RF")):
        rng = np.random.default_rng(seed)
        X, labels = rng.normal(size=(2400, 6)), rng.permutation(np.arange(2400) % 2)
        cell = make_cell(X, labels, base, seed)
        found.append(auroc(cell.correct, cell.trust(ENTRANTS["Pool"].make(), "quantiles")))
    # The standard error of the mean is 0.0083.
    assert np.mean(found) == pytest.approx(0.5, abs=0.03)
