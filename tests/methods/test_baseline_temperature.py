"""Temperature scaling: the right temperature, its limits, and agreement with scikit-learn."""

import hypothesis.strategies as st
import numpy as np
import pytest
import sklearn
from hypothesis import given
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from neighboragg.methods import MaxConfidence, TemperatureScaling
from sizes import examples


def fitted(proba, y, classes=None):
    X = np.zeros((len(y), 1))
    return TemperatureScaling().fit(X, y, proba_val=proba, classes=classes)


def sharpened(n, n_classes, temperature, seed):
    """Probabilities whose logits were multiplied by `temperature`, and labels drawn from the true ones."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, n_classes))
    y = (rng.random(n)[:, None] > softmax(logits, axis=1).cumsum(axis=1)).sum(axis=1)
    return softmax(temperature * logits, axis=1), np.minimum(y, n_classes - 1)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_it_finds_the_temperature_that_was_applied(temperature):
    proba, y = sharpened(20_000, 4, temperature, seed=0)
    assert fitted(proba, y).temperature_ == pytest.approx(temperature, rel=0.03)


@examples(40)
@given(st.integers(0, 10_000), st.integers(2, 5), st.floats(0.3, 5.0))
def test_no_other_temperature_has_a_smaller_loss(seed, n_classes, applied):
    proba, y = sharpened(60, n_classes, applied, seed)
    method = fitted(proba, y, classes=np.arange(n_classes))

    def loss(trust):
        return -np.log(trust[np.arange(60), y]).mean()

    least = loss(method.predict_trust(np.zeros((60, 1)), proba))
    for other in np.geomspace(0.1, 100, 40):
        assert least <= loss(softmax(np.log(proba + 1e-12) / other, axis=1)) + 1e-9


if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8):

    def test_it_agrees_with_scikit_learn():
        X, y = load_iris(return_X_y=True)
        clf = LogisticRegression(C=1e-3, max_iter=1000).fit(X[::2], y[::2])
        theirs = CalibratedClassifierCV(FrozenEstimator(clf), method="temperature").fit(X[1::2], y[1::2])
        ours = TemperatureScaling().fit(
            X[::2], y[::2], X_val=X[1::2], y_val=y[1::2], proba_val=clf.predict_proba(X[1::2])
        )
        np.testing.assert_allclose(
            ours.predict_trust(X, clf.predict_proba(X)), theirs.predict_proba(X), atol=1e-6
        )


@examples(40)
@given(st.integers(0, 10_000), st.integers(2, 5), st.floats(0.1, 1.0))
def test_without_errors_trust_expects_half_an_error(seed, n_classes, applied):
    proba, _ = sharpened(60, n_classes, applied, seed)
    method = fitted(proba, proba.argmax(axis=1), classes=np.arange(n_classes))

    def expected_errors(temperature):
        return (1 - softmax(np.log(proba + 1e-12) / temperature, axis=1).max(axis=1)).sum()

    # Rows that all but tie are still doubtful at the lowest temperature.
    allowed = 0.5 + expected_errors(0.01)
    if method.temperature_ == 1.0:
        assert expected_errors(1.0) <= allowed
    else:
        assert 0.01 < method.temperature_ < 1
        assert expected_errors(method.temperature_) == pytest.approx(allowed)


def test_a_confident_classifier_without_errors_is_left_alone():
    assert fitted([[0.9, 0.1], [0.2, 0.8]], [0, 1]).temperature_ == 1.0


def test_ties_do_not_count_as_errors():
    proba = [[0.5, 0.5]] * 4 + [[0.6, 0.4]] * 10
    method = fitted(proba, [0] * 14, classes=[0, 1])
    trust = method.predict_trust(np.zeros((14, 1)), proba)[:, 0]
    assert (1 - trust).sum() == pytest.approx(4 * 0.5 + 0.5)


def test_a_classifier_that_is_always_wrong_is_made_as_humble_as_allowed():
    assert fitted([[0.9, 0.1], [0.2, 0.8]], [1, 0]).temperature_ == 100.0


@pytest.mark.parametrize("proba", [np.ones((3, 1)), np.full((3, 2), 0.5)])
def test_where_nothing_depends_on_it_the_temperature_is_one(proba):
    method = fitted(proba, [0, 0, 0], classes=np.arange(proba.shape[1]))
    assert method.temperature_ == 1.0
    np.testing.assert_allclose(method.predict_trust(np.zeros((3, 1)), proba), proba)


def test_impossible_labels_leave_it_finite():
    proba = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    method = fitted(proba, [0, 1, 2])
    assert np.isfinite(method.predict_trust(np.zeros((3, 1)), proba)).all()
    assert method.temperature_ > 1


def test_two_classes_keep_the_order_of_confidence():
    proba, y = sharpened(300, 2, 3.0, seed=1)
    X = np.zeros((300, 1))
    confidence = MaxConfidence().fit(X, y, proba_val=proba).score_samples(X, proba)
    trust = fitted(proba, y).score_samples(X, proba)
    assert (np.diff(trust[np.argsort(confidence)]) >= -1e-15).all()
