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
        f"The {type(classifier).__name__} passed to TrustedClassifier is fitted already and will be fitted again "
        "on X and y.\n"
        "Hint: to keep it as it is, TrustedClassifier(FrozenEstimator(classifier)), with from sklearn.frozen "
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
    with pytest.warns(TrustWarning, match=r"agrees with the labels in \d+ of 300 rows, and unrelated"):
        fit(GaussianNB(), X, y, X_val, shuffled)


def test_an_order_of_classes_that_explains_the_labels_is_named(rows):
    X, y, X_val, y_val = rows
    with pytest.warns(TrustWarning, match=r"but it would agree in \d+ if its columns were 1, 2, 0\."):
        fit(GaussianNB(), X, y, X_val, (y_val + 1) % 3)
