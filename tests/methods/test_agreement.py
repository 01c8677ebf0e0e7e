"""Probabilities that do not fit the labels: shuffled rows, permuted columns, and what is no cause for a warning."""

import warnings

import numpy as np
import pytest

from neighboragg import NeighborAgg
from neighboragg.exceptions import TrustWarning
from neighboragg.methods import MaxConfidence

RNG = np.random.default_rng(0)
N, N_CLASSES = 300, 4
CODES = RNG.integers(0, N_CLASSES, N)
X = RNG.normal(size=(N, 3)) + 2 * np.eye(N_CLASSES, 3)[CODES]
PROBA = RNG.dirichlet(np.ones(N_CLASSES), N) + 1.5 * np.eye(N_CLASSES)[CODES]
PROBA /= PROBA.sum(axis=1, keepdims=True)
LABELS = np.array(["a", "b", "c", "d"])[CODES]


def fit(proba, labels=LABELS, method=MaxConfidence):
    return method().fit(X, LABELS, X_val=X, y_val=labels, proba_val=proba)


def warning_of(*arguments):
    with pytest.warns(TrustWarning) as caught:
        fit(*arguments)
    (warning,) = caught
    assert warning.filename == __file__
    return str(warning.message)


def test_probabilities_that_fit_are_taken_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(PROBA)
        fit(PROBA, LABELS, NeighborAgg)


@pytest.mark.parametrize(
    ("proba", "labels"),
    [(PROBA[RNG.permutation(N)], LABELS), (PROBA, RNG.permutation(LABELS))],
    ids=["rows of proba_val", "y_val"],
)
def test_shuffled_rows(proba, labels):
    message = warning_of(proba, labels)
    assert message.startswith("proba_val passed to MaxConfidence agrees with the labels in ")
    assert "and unrelated probabilities would in about 7" in message
    assert "Hint: check that the rows of proba_val and of the labels are in the same order" in message


@pytest.mark.parametrize(
    "order", [[3, 2, 1, 0], [0, 2, 1, 3], [1, 2, 3, 0]], ids=["reversed", "two", "turned"]
)
def test_permuted_columns_are_named(order):
    right = int((PROBA.argmax(axis=1) == CODES).sum())
    names = ", ".join(repr("abcd"[c]) for c in order)
    message = warning_of(PROBA[:, order])
    assert f"but it would agree in {right} if its columns were {names}.\nHint: order the columns" in message


def test_two_classes_the_wrong_way_round():
    labels, proba = (
        np.where(CODES < 2, "no", "yes"),
        np.c_[PROBA[:, :2].sum(axis=1), PROBA[:, 2:].sum(axis=1)],
    )
    with pytest.warns(TrustWarning, match="if its columns were 'yes', 'no'"):
        MaxConfidence().fit(X, labels, proba_val=proba[:, ::-1])


@pytest.mark.parametrize(
    "proba",
    [np.full((N, N_CLASSES), 1 / N_CLASSES), np.tile([0.7, 0.1, 0.1, 0.1], (N, 1))],
    ids=["uniform", "always the same class"],
)
def test_a_constant_classifier_shows_nothing(proba):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(proba)


def test_few_rows_show_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MaxConfidence().fit(X[:60], LABELS[:60], proba_val=PROBA[59::-1])
