"""The network behind the true class probability, and what is made of its output."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods import MaxConfidence, TrueClassProbability
from neighboragg.methods._true_class import first_weights, network_gradient, network_output


def two_moods(n, seed):
    """A classifier that is right where the first feature is positive and guesses elsewhere, as confident."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = rng.integers(0, 3, n)
    predicted = np.where((X[:, 0] > 0) | (rng.random(n) < 0.4), y, (y + 1) % 3)
    sure = rng.uniform(0.6, 0.95, n)[:, None]
    return X, y, np.where(predicted[:, None] == np.arange(3), sure, (1 - sure) / 2)


def test_it_learns_where_the_classifier_errs():
    X, y, proba = two_moods(1500, seed=0)
    method = TrueClassProbability().fit(X[:10], y[:10], X_val=X, y_val=y, proba_val=proba, classes=[0, 1, 2])
    X, y, proba = two_moods(1500, seed=1)
    correct = proba.argmax(axis=1) == y
    trust = method.score_samples(X, proba)
    confidence = MaxConfidence().fit(X, y, proba_val=proba).score_samples(X, proba)
    assert roc_auc_score(correct, confidence) < 0.6
    assert roc_auc_score(correct, trust) > 0.8
    # Where it guesses, the expected true class probability is about .4 of .775 and .6 of the half of the rest.
    assert trust[X[:, 0] < -0.5].mean() == pytest.approx(0.4 * 0.775 + 0.6 * 0.1125, abs=0.06)


def test_other_classes_share_the_rest_in_proportion():
    X, y, proba = two_moods(200, seed=0)
    method = TrueClassProbability(max_epochs=2).fit(X, y, proba_val=proba)
    queries = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [1.0, 0.0, 0.0]])
    trust = method.predict_trust(X[:3], queries)
    np.testing.assert_allclose(trust.sum(axis=1), 1.0)
    np.testing.assert_allclose(trust[0, 1] / trust[0, 2], 3.0)
    np.testing.assert_allclose(trust[1, 1] / trust[1, 0], 2.0)
    np.testing.assert_allclose(trust[2, 1], trust[2, 2])
    W, b, w, b_out = method.weights_
    for row, p, q in zip(X[:3], queries, trust, strict=True):
        raw = np.concatenate([row, p, np.sort(p)[:-3:-1]])
        z = np.clip((raw - method.center_) / method.scale_, -10, 10)
        assert q[p.argmax()] == pytest.approx(expit(np.maximum(z @ W + b, 0) @ w + b_out)[0])


def test_the_gradient_is_that_of_the_loss():
    rng = np.random.default_rng(0)
    inputs, target, penalty = rng.normal(size=(20, 4)), rng.random(20), 0.1
    weights = first_weights(4, 3, rng)
    weights[1] += rng.normal(size=3)

    def loss(flat):
        parts = [p.reshape(w.shape) for p, w in zip(np.split(flat, [12, 15, 18]), weights, strict=True)]
        error = ((network_output(parts, inputs) - target) ** 2).mean()
        return error + penalty * ((parts[0] ** 2).sum() + (parts[2] ** 2).sum())

    flat = np.concatenate([w.ravel() for w in weights])
    gradient = np.concatenate([g.ravel() for g in network_gradient(weights, inputs, target, penalty)])
    steps = 1e-6 * np.eye(len(flat))
    expected = [(loss(flat + step) - loss(flat - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient, expected, atol=1e-8)


def test_it_stops_when_rows_held_out_gain_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 30)), rng.integers(0, 2, 60)
    proba = np.where(rng.integers(0, 2, 60)[:, None] == [0, 1], 0.9, 0.1)  # pure chance
    short = TrueClassProbability(max_epochs=400).fit(X, y, proba_val=proba)
    long = TrueClassProbability(max_epochs=2000).fit(X, y, proba_val=proba)
    np.testing.assert_array_equal(short.predict_trust(X, proba), long.predict_trust(X, proba))
    # Chance was not learned by heart.
    target = proba[np.arange(60), y]
    trust = short.score_samples(X, proba, y_pred=proba.argmax(axis=1))
    assert ((trust - target) ** 2).mean() > 0.3 * target.var()


def test_the_seed_decides_and_constant_features_do_not():
    X, y, proba = two_moods(100, seed=0)
    wide = np.column_stack([X, np.full(100, 0.1)])
    first, second = (
        TrueClassProbability(max_epochs=3, random_state=np.random.RandomState(5)).fit(
            wide, y, proba_val=proba
        )
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.predict_trust(wide, proba), second.predict_trust(wide, proba))
    other = TrueClassProbability(max_epochs=3, random_state=6).fit(wide, y, proba_val=proba)
    assert not np.array_equal(first.predict_trust(wide, proba), other.predict_trust(wide, proba))
    assert first.scale_[3] == 1.0


def test_extreme_queries_stay_finite():
    X, y, proba = two_moods(100, seed=0)
    method = TrueClassProbability(max_epochs=3).fit(1e-150 * X, y, proba_val=proba)
    trust = method.predict_trust([[1e150, -1e150, 0.0]], [[1.0, 0.0, 0.0]])
    assert np.isfinite(trust).all()
    assert 0 < trust[0, 0] < 1


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"n_hidden": 0},
            "The 'n_hidden' parameter of TrueClassProbability must be an int >= 1. Got 0 instead.",
        ),
        (
            {"penalty": -1.0},
            "The 'penalty' parameter of TrueClassProbability must be a number in [0, inf). Got -1.0 instead.",
        ),
        (
            {"max_epochs": 1.5},
            "The 'max_epochs' parameter of TrueClassProbability must be an int >= 1. Got 1.5 instead.",
        ),
    ],
)
def test_parameters_are_checked(params, message):
    X, y, proba = two_moods(30, seed=0)
    with pytest.raises(InvalidParameterError) as error:
        TrueClassProbability(**params).fit(X, y, proba_val=proba)
    assert str(error.value) == message
