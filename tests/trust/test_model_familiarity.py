"""Familiarity of rows as a model tells it: for every way to fit, in every answer that shows it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom, norm
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline

from neighboragg import NeighborAgg, TrustedClassifier
from neighboragg._pool.pool import PoolAggregator
from neighboragg.exceptions import FittedRowsWarning
from neighboragg.methods import MaxConfidence
from sizes import draws

ROWS, LABELS = make_classification(900, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
X, Y, NEW = ROWS[:600], LABELS[:600], ROWS[600:]
FAR = NEW[:20] + 30.0


def fitted(way, rows=X, labels=Y, method=None, classifier=None, features="auto"):
    classifier = GaussianNB() if classifier is None else classifier
    if way == "held out":
        return TrustedClassifier(classifier, method, features=features, random_state=0).fit(rows, labels)
    if way == "cross-validated":
        return TrustedClassifier(classifier, method, features=features, cv=3).fit(rows, labels)
    half = len(rows) // 2
    frozen = FrozenEstimator(clone(classifier).fit(rows[:half], labels[:half]))
    return TrustedClassifier(frozen, method, features=features).fit(
        rows[:half], labels[:half], X_val=rows[half:], y_val=labels[half:]
    )


@pytest.mark.parametrize("way", ["held out", "cross-validated", "given"])
def test_rows_far_away_are_unfamiliar(way):
    model = fitted(way)
    assert model.familiarity(FAR).max() <= 0.02
    assert 0.3 < model.familiarity(NEW).mean() < 0.8


def heavy_tailed(rng, n):
    """Two classes of different spread, with rows far from all others."""
    labels = rng.integers(0, 2, n)
    return rng.standard_t(3, (n, 2)) * (1 + 2 * labels[:, None]), labels


def tied(rng, n):
    """Few different rows, so that distances and probabilities tie all the time."""
    labels = rng.integers(0, 2, n)
    return rng.integers(0, 4, (n, 2)) * (1.0 + labels[:, None]), labels


def rare_copies(rng, n):
    """Of 1,000 rows 12 are at one of 12 places far from everything, so that most rows there copy others."""
    far = rng.random(n) < 0.012
    place = 100.0 * rng.integers(1, 13, n)
    rows = np.where(far, place, rng.normal(size=n))
    return np.column_stack([rows, rng.normal(size=n) * ~far]), (rng.random(n) < 0.1).astype(int)


TOPICS = ("goal match team player score league", "flour oven sugar recipe bake butter")


def texts(rng, n):
    """Three words of a topic, some of them rare; one text in twenty has no word that another has."""
    labels = rng.integers(0, 2, n)
    words = [[*TOPICS[label].split(), f"rare{rng.integers(30)}"] for label in labels]
    rows = [" ".join(rng.choice(known, 3)) for known in words]
    return [f"x{rng.integers(10**9)}" if rng.random() < 0.05 else row for row in rows], labels


WAYS = ("given", "held out", "cross-validated")
POPULATIONS = (heavy_tailed, tied, texts)
CHEAP = NeighborAgg(PoolAggregator(guard=False), learned_metric=False, effort="fast")


def mean_false_alarms(way, population, n_draws, n_fit, levels, method=CHEAP, n_new=20):
    """Share of new rows that are called unfamiliar at each level, and how much of it chance explains, mostly."""
    rng = np.random.default_rng(0)
    shares = np.empty((n_draws, len(levels)))
    words = population is texts
    classifier = make_pipeline(CountVectorizer(min_df=2), MultinomialNB()) if words else GaussianNB()
    features = "passthrough" if population is rare_copies else "auto"  # which would bring outliers near
    for draw in range(n_draws):
        rows, labels = population(rng, n_fit + n_new)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FittedRowsWarning)
            model = fitted(way, rows[:n_fit], labels[:n_fit], method, classifier, features)
            p = model.familiarity(rows[n_fit:])
        shares[draw] = (p[:, None] <= levels).mean(axis=0)
    n_compared = {"given": n_fit // 2, "held out": n_fit // 5, "cross-validated": n_fit}[way]
    ranks = np.floor(np.array(levels) * (n_compared + 1))
    by_chance = betabinom(n_new, ranks, n_compared + 1 - ranks).std() / n_new
    error = np.maximum(shares.std(axis=0), by_chance) / np.sqrt(n_draws)
    return shares.mean(axis=0), norm.isf(1e-4) * error


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("population", POPULATIONS)
def test_false_alarms_stay_within_the_level(way, population):
    """Also what the proof leaves out: a draw by class, and classifiers and scales that have seen the rows."""
    levels = [0.05, 0.1, 0.2]
    found, by_chance = mean_false_alarms(way, population, draws(30), 100, levels)
    assert (found <= levels + by_chance).all()
    if population is heavy_tailed:
        assert found[-1] > 0.1  # not so by never giving an alarm


@pytest.mark.full
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("population", POPULATIONS)
def test_false_alarms_with_a_learned_metric_and_second_opinions(way, population):
    levels = [0.05, 0.1, 0.2]
    found, by_chance = mean_false_alarms(way, population, 200, 200, levels, NeighborAgg())
    assert (found <= levels + by_chance).all()


@pytest.mark.parametrize("way", WAYS)
def test_rows_that_copy_rows_of_fit_give_no_more_false_alarms(way):
    """A copy of a rare row of fit must not leave it out: validation rows that are copies have found theirs."""
    found, by_chance = mean_false_alarms(way, rare_copies, draws(60, 300), 1000, [0.01], n_new=1000)
    assert (found <= 0.01 + by_chance).all()


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
