"""Familiarity of rows as a model tells it: for every way to fit, in every answer that shows it."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from neighboragg import NeighborAgg, TrustedClassifier
from neighboragg._pool.pool import PoolAggregator
from neighboragg.methods import MaxConfidence
from sizes import draws

ROWS, LABELS = make_classification(900, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
X, Y, NEW = ROWS[:600], LABELS[:600], ROWS[600:]
FAR = NEW[:20] + 30.0


def fitted(way, rows=X, labels=Y, method=None):
    if way == "held out":
        return TrustedClassifier(GaussianNB(), method, random_state=0).fit(rows, labels)
    if way == "cross-validated":
        return TrustedClassifier(GaussianNB(), method, cv=3).fit(rows, labels)
    half = len(rows) // 2
    frozen = FrozenEstimator(GaussianNB().fit(rows[:half], labels[:half]))
    return TrustedClassifier(frozen, method).fit(
        rows[:half], labels[:half], X_val=rows[half:], y_val=labels[half:]
    )


@pytest.mark.parametrize("way", ["held out", "cross-validated", "given"])
def test_rows_far_away_are_unfamiliar(way):
    model = fitted(way)
    assert model.familiarity(FAR).max() <= 0.02
    assert 0.3 < model.familiarity(NEW).mean() < 0.8


@pytest.mark.parametrize("way", ["held out", "cross-validated"])
def test_false_alarms_of_rows_drawn_by_class_and_out_of_fold(way):
    """What the proof leaves out: a draw by class, and classifiers and scales that have seen the rows."""
    rng = np.random.default_rng(0)
    cheap = NeighborAgg(PoolAggregator(guard=False), learned_metric=False, effort="fast")
    p, n_draws = [], draws(60)
    for _ in range(n_draws):
        labels = rng.integers(0, 2, 101)
        rows = rng.standard_t(3, (101, 2)) * (1 + 2 * labels[:, None])
        p.append(fitted(way, rows[:100], labels[:100], cheap).familiarity(rows[100:])[0])
    for level in (0.05, 0.1, 0.2):
        assert (np.array(p) <= level).sum() <= binom.ppf(1 - 1e-3, n_draws, level)
    assert (np.array(p) <= 0.2).mean() > 0.1


def test_an_assessment_shows_it():
    frame = pd.DataFrame(np.vstack([X, FAR]), columns=list("abcde"))
    model = fitted("held out", frame[:600], Y)
    assessed = model.assess(frame)
    np.testing.assert_array_equal(assessed.familiarity, model.familiarity(frame))
    assert list(assessed.to_frame()) == ["predicted", "probability", "trust", "familiarity", "seen_in_fit"]
    assert repr(assessed).splitlines()[0].split() == [
        "predicted",
        "probability",
        "trust",
        "familiarity",
        "seen_in_fit",
    ]
    assert (assessed[600:].familiarity < 0.02).all()


def test_an_explanation_shows_it():
    told = str(fitted("held out").explain(FAR[:1]))
    assert "unlike the rows seen so far" in told


def test_methods_without_neighbors_have_none():
    model = fitted("held out", method=MaxConfidence())
    assert model.assess(NEW).familiarity is None
    assert not hasattr(model, "familiarity")
