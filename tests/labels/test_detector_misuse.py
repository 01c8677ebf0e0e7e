"""Probabilities of rows that the classifier was trained on are noticed, honest ones are not suspected."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from benchmarks.datasets import add_label_noise
from neighboragg import MislabelDetector, find_mislabeled
from neighboragg.exceptions import TrustWarning

FAST = {"effort": "fast"}


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("settings", [FAST, {}], ids=["neighbors", "models"])
def test_an_overfitted_forest_is_noticed(digits, settings):
    forest = RandomForestClassifier(50, random_state=0).fit(digits.X, digits.y)
    with pytest.warns(TrustWarning) as caught:
        find_mislabeled(digits.X, digits.y, proba=forest.predict_proba(digits.X), **settings)
    (warning,) = [str(warning.message) for warning in caught]
    agreeing = int((forest.predict(digits.X) == digits.y).sum())
    kept, contradicted = (
        int(word) for word in warning.split(" labels that all")[0].split() if word.isdigit()
    )
    assert 20 < 0.9 * contradicted < kept <= contradicted < 100
    assert warning == (
        f"proba passed to MislabelDetector agrees with {kept} of the {contradicted} labels that all models and "
        f"neighbors that have not seen them contradict (and with {agreeing} of all 500). It looks like predictions for "
        "rows that the classifier was trained on, which repeat wrong labels.\n"
        "Hint: proba=cross_val_predict(classifier, X, y, cv=5, method='predict_proba')."
    )


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("load", [load_digits, load_breast_cancer])
@pytest.mark.parametrize("rate", [0.0, 0.1])
@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(30, random_state=0),
        KNeighborsClassifier(1),
    ],
    ids=["forest", "nearest"],
)
def test_out_of_fold_probabilities_are_not_suspected(load, rate, model):
    X, y = load(return_X_y=True)
    X, y = scale(X[:500]), add_label_noise(y[:500], rate=rate, random_state=0).y
    proba = cross_val_predict(model, X, y, cv=5, method="predict_proba")
    find_mislabeled(X, y, proba=proba, **FAST)


def test_a_memory_of_most_labels_is_noticed_below_perfect_agreement():
    """It repeats nearly all wrong labels, and 97% of all: too good for rows it has not seen."""
    X, y = load_breast_cancer(return_X_y=True)
    noisy = add_label_noise(y, rate=0.1, random_state=0)
    forgotten = np.arange(len(y)) % 40 == 0
    proba = np.where((noisy.y ^ forgotten)[:, None] == [0, 1], 0.9, 0.1)
    assert 0.95 < (proba.argmax(axis=1) == noisy.y).mean() < 0.995
    with pytest.warns(TrustWarning, match="all models and neighbors that have not seen them contradict"):
        find_mislabeled(scale(X), noisy.y, proba=proba, **FAST)


def test_a_classifier_much_better_than_neighbors_is_not_suspected():
    """Rings: neighbors overlap a lot, a kernel machine hardly errs, and that is no memory of labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=600)
    angle, radius = rng.uniform(0, 2 * np.pi, size=600), 1.0 + 0.7 * y + 0.12 * rng.normal(size=600)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), 0.4 * rng.normal(size=(600, 6))])
    decision = cross_val_predict(SVC(), X[:, :2], y, cv=5)
    proba = np.where(decision[:, None] == [0, 1], 0.99, 0.01)
    assert (decision == y).mean() > 0.99
    find_mislabeled(X, y, proba=proba, features="passthrough", **FAST)


def test_few_rows_prove_nothing(blobs):
    perfect = np.where(blobs.y[:, None] == ["left", "right"], 1.0, 0.0)
    find_mislabeled(blobs.X, blobs.y, proba=perfect, **FAST)


def test_an_estimator_is_never_suspected(digits):
    find_mislabeled(digits.X, digits.y, estimator=KNeighborsClassifier(1), **FAST)


@pytest.mark.parametrize(
    "rows", [np.arange(80), np.arange(80)[::-1], np.arange(5)], ids=["all", "turned", "some"]
)
def test_judging_fitted_rows_again_is_noticed(blobs, rows):
    detector = MislabelDetector(**FAST).fit(blobs.X, blobs.y)
    with pytest.warns(TrustWarning) as caught:
        detector.predict(blobs.X[rows], blobs.y[rows])
    assert [str(warning.message) for warning in caught] == [
        "Most rows of X passed to MislabelDetector are rows it was fitted on, so each confirms its own label.\n"
        "Hint: use result_.mask and result_.scores for these rows."
    ]


def test_new_rows_are_not_taken_for_fitted_ones(blobs):
    detector = MislabelDetector(**FAST).fit(blobs.X, blobs.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detector.predict(blobs.X + 0.01, blobs.y)
        detector.predict(np.concatenate([blobs.X[:2], blobs.X[2:6] + 0.01]), blobs.y[:6])
        detector.predict(blobs.X[:0], blobs.y[:0])
    coarse = np.round(blobs.X[:, :1])
    few_values = MislabelDetector(duplicates="ignore", **FAST).fit(coarse, blobs.y)
    few_values.predict(coarse[:20], blobs.y[:20])
