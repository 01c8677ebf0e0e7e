"""Features that say nothing about the labels: a loud warning, and no flags but those of a budget."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from neighboragg import MislabelDetector, find_mislabeled
from neighboragg.exceptions import TrustWarning
from sizes import draws

FAST = {"effort": "fast"}


@pytest.fixture(scope="module")
def nonsense():
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 3)), rng.choice(["a", "b", "c"], p=[0.5, 0.3, 0.2], size=300)


def test_nothing_is_flagged_where_nothing_is_known(nonsense):
    X, y = nonsense
    with pytest.warns(TrustWarning) as caught:
        result = find_mislabeled(X, y, **FAST)
    figures = (
        f" of 300 labels are predicted from the other rows, and {(y == 'a').sum()} by always predicting "
        "the most frequent class"
    )
    (warning,) = caught
    message = str(warning.message)
    assert message.startswith(
        "What was passed to MislabelDetector predicts the labels no better than the class frequencies alone: "
    )
    assert message.endswith(
        "Nothing is flagged.\nHint: pass columns, texts, embeddings or probabilities that say more about the "
        "labels; flag=100 flags the 100 most suspicious labels all the same."
    )
    assert figures in message
    assert figures in result.promise
    assert result.promise in result.summary()
    assert result.n_flagged == 0
    assert result.rule == "estimated"
    assert result.threshold == -np.inf


@pytest.mark.parametrize("flag", ["estimated", 0.1])
def test_most_rules_flag_nothing_then_nor_new_rows(nonsense, flag):
    X, y = nonsense
    detector = MislabelDetector(flag=flag, **FAST)
    with pytest.warns(TrustWarning, match="Nothing is flagged"):
        detector.fit(X, y, verified=np.arange(50))
    assert not detector.result_.mask.any()
    assert not detector.predict(X[:50] + 0.01, np.roll(y[:50], 1)).any()


def test_a_budget_is_flagged_all_the_same(nonsense):
    with pytest.warns(TrustWarning, match="The order of labels is close to chance"):
        assert find_mislabeled(*nonsense, flag=7, **FAST).n_flagged == 7


def test_probabilities_that_know_are_enough(nonsense):
    X, y = nonsense
    guess = np.where(np.arange(300) % 3 == 0, np.roll(y, 1), y)
    proba = np.where(guess[:, None] == np.unique(y), 0.6, 0.2)
    assert find_mislabeled(X, y, proba=proba, flag=3, **FAST).n_flagged == 3


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
@pytest.mark.parametrize("step", [1, 7])
def test_real_data_are_no_false_alarm(load, step):
    X, y = load(return_X_y=True)
    assert find_mislabeled(X[::step], y[::step], flag=2, **FAST).n_flagged == 2


def test_labels_at_random_are_hardly_ever_taken_for_predictable():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    missed, n_draws = 0, draws(20, 60)
    for _ in range(n_draws):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            find_mislabeled(X, rng.permutation(y), **FAST)
        missed += not caught
    assert missed <= 0.1 * n_draws
