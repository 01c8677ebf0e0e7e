"""Mistakes with the rows that trust is learned from: a refitted classifier, copies of X, labels that do not fit."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from neighboragg import TrustedClassifier
from neighboragg._core.stats import agreement_with_labels
from neighboragg.exceptions import FittedRowsWarning, InvalidInputError, TrustWarning
from neighboragg.methods import MaxConfidence


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(600, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=2)
    return X[:300], y[:300], X[300:], y[300:]


def fit(classifier, X, y, X_val, y_val):
    return TrustedClassifier(classifier, MaxConfidence()).fit(X, y, X_val=X_val, y_val=y_val)


def silent_fit(*arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return fit(*arguments)


@pytest.mark.parametrize(
    "make",
    [GaussianNB, lambda: make_pipeline(StandardScaler(), LogisticRegression())],
    ids=["plain", "pipeline"],
)
def test_a_fitted_classifier_that_is_fitted_again_is_named(rows, make):
    X, y = rows[:2]
    classifier = make().fit(X[:100], y[:100])
    with pytest.warns(TrustWarning) as caught:
        fit(classifier, *rows)
    assert [str(warning.message) for warning in caught] == [
        f"The {type(classifier).__name__} passed to TrustedClassifier is fitted already, and is fitted again on X and "
        "y.\nHint: to keep it as it is, TrustedClassifier(FrozenEstimator(classifier)), with from sklearn.frozen "
        "import FrozenEstimator."
    ]
    assert caught[0].filename == __file__
    silent_fit(make(), *rows)
    silent_fit(FrozenEstimator(classifier), *rows)
    silent_fit(make_pipeline(StandardScaler(), FrozenEstimator(LogisticRegression().fit(X, y))), *rows)


def test_validation_rows_that_are_training_rows_are_refused(rows):
    X, y, X_val, y_val = rows
    with pytest.raises(InvalidInputError) as caught:
        fit(
            GaussianNB(), X, y, np.concatenate([X[:200], X_val[:100]]), np.concatenate([y[:200], y_val[:100]])
        )
    assert str(caught.value) == (
        "200 of 300 rows of X_val passed to TrustedClassifier.fit (67%) are exact copies of rows of X. Trust learned "
        "from rows that the classifier was trained on is over-confident.\n"
        "Hint: pass rows as X_val that the classifier was not trained on, and leave them out of X."
    )


def test_some_training_rows_among_validation_rows_are_reported(rows):
    X, y, X_val, y_val = rows
    with pytest.warns(
        FittedRowsWarning, match=r"^60 of 360 rows of X_val passed to TrustedClassifier\.fit \(17%\)"
    ) as caught:
        fit(GaussianNB(), X, y, np.concatenate([X[:60], X_val]), np.concatenate([y[:60], y_val]))
    assert caught[0].filename == __file__


def test_chance_copies_of_a_discrete_table_are_fine():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, size=(900, 3)).astype(float)
    y = (X.sum(axis=1) > 5).astype(int)
    silent_fit(GaussianNB(), X[:500], y[:500], X[500:], y[500:])


def test_labels_in_another_order_than_their_rows_are_reported(rows):
    X, y, X_val, y_val = rows
    shuffled = np.random.default_rng(0).permutation(y_val)
    with pytest.warns(
        TrustWarning, match=r"of 300 predictions agree with y_val passed to TrustedClassifier\.fit, no"
    ):
        fit(GaussianNB(), X, y, X_val, shuffled)


def test_an_order_of_classes_that_explains_the_labels_is_named(rows):
    X, y, X_val, y_val = rows
    classifier = FrozenEstimator(GaussianNB().fit(X, y))
    n_right = (classifier.predict(X_val) == y_val).sum()
    n_wrong = (classifier.predict(X_val) == (y_val + 1) % 3).sum()
    with pytest.warns(TrustWarning) as caught:
        fit(classifier, X, y, X_val, (y_val + 1) % 3)
    assert caught[0].filename == __file__
    assert str(caught[0].message) == (
        f"{n_wrong} of 300 predictions agree with y_val passed to TrustedClassifier.fit, no more than by chance: "
        "either the classifier is worthless, or rows, labels and classes do not belong together.\n"
        f"Hint: {n_right} of them agree if the columns of the probabilities are the classes 1, 2, 0, instead of 0, 1, "
        "2. Check the order of the columns."
    )


def predictions(accuracy, n, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    predicted = np.where(rng.random(n) < accuracy, codes, (codes + 1) % n_classes)
    return np.eye(n_classes)[predicted], codes


@pytest.mark.parametrize(
    ("proba", "codes"),
    [
        predictions(0.9, 300),
        predictions(0.7, 400),
        (np.eye(2)[np.arange(12) % 2], np.arange(12) < 6),  # too few to know
        (np.tile([0.9, 0.1], (400, 1)), np.arange(400) % 20 == 0),  # a rare class that is never predicted
        (np.eye(2)[np.zeros(50, dtype=int)], np.zeros(50, dtype=int)),  # one class
        (np.empty((0, 2)), np.empty(0, dtype=int)),
    ],
    ids=["good", "fair", "few", "rare", "one class", "none"],
)
def test_agreement_that_chance_does_not_explain(proba, codes):
    assert not agreement_with_labels(proba, np.asarray(codes, dtype=int)).by_chance


def test_false_alarms_are_rare():
    """A classifier half as good as can be is hardly ever taken for chance, and no order is found in chance."""
    alarms = sum(agreement_with_labels(*predictions(0.75, n, seed=n)).by_chance for n in range(10, 210))
    assert alarms <= 2
    for seed in range(100):
        predicted, codes = np.random.default_rng(seed).integers(0, 4, (2, 200))
        found = agreement_with_labels(np.eye(4)[predicted], codes)
        assert found.by_chance
        assert found.order is None
