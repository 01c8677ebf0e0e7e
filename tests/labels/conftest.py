"""Small data with known wrong labels."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from benchmarks.datasets import add_label_noise
from neighboragg import MislabelDetector


def make_digits(kind):
    """500 noisy digits, the out-of-fold probabilities of a rough classifier, and 200 digits more."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:700]
    X, y = X[order] / 16.0, y[order]
    noisy = add_label_noise(y[:500], rate=0.1, kind=kind, random_state=0)
    proba = cross_val_predict(GaussianNB(var_smoothing=1e-2), X[:500], noisy.y, cv=5, method="predict_proba")
    return SimpleNamespace(
        X=X[:500], y=noisy.y, true=y[:500], wrong=noisy.mask, proba=proba, X_new=X[500:], y_new=y[500:]
    )


@pytest.fixture(scope="session")
def digits():
    return make_digits("symmetric")


@pytest.fixture(scope="session")
def digits_in_pairs():
    return make_digits("class_dependent")


@pytest.fixture(scope="session")
def detector(digits):
    """Fitted on the noisy digits with probabilities; read only."""
    return MislabelDetector().fit(digits.X, digits.y, proba=digits.proba)


@pytest.fixture(scope="session")
def blobs():
    """80 rows of two well separated classes, named by strings, of which rows 3 and 50 are mislabeled."""
    rng = np.random.default_rng(1)
    true = np.repeat(["left", "right"], 40)
    X = rng.normal(size=(80, 3)) + 5.0 * (true == "right")[:, None]
    y = true.copy()
    y[[3, 50]] = ["right", "left"]
    return SimpleNamespace(X=X, y=y, true=true)
