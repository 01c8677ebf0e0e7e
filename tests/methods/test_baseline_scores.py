"""Margin, entropy and its generalization against their formulas."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from scipy.stats import entropy

from benchmarks.methods import GeneralizedEntropy, Margin, NegativeEntropy
from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods import MaxConfidence

VOTES = st.integers(1, 6).flatmap(
    lambda n_classes: arrays(float, (5, n_classes), elements=st.integers(0, 4).map(float))
)


def trust_of(method, proba):
    n, n_classes = proba.shape
    method.fit(np.zeros((1, 1)), [0], proba_val=proba[:1], classes=np.arange(n_classes))
    return method.predict_trust(np.zeros((n, 1)), proba)


def normalized(votes):
    votes = votes + (votes.sum(axis=1, keepdims=True) == 0)
    return votes / votes.sum(axis=1, keepdims=True)


@given(VOTES)
def test_margin_is_the_lead_over_the_best_other_class(votes):
    proba = normalized(votes)
    trust = trust_of(Margin(), proba)
    for c in range(proba.shape[1]):
        others = np.delete(proba, c, axis=1)
        np.testing.assert_allclose(trust[:, c], proba[:, c] - others.max(axis=1, initial=0.0), atol=1e-15)


@given(VOTES)
def test_negative_entropy_is_one_minus_the_relative_entropy(votes):
    proba = normalized(votes)
    trust = trust_of(NegativeEntropy(), proba)
    assert (trust >= 0).all()
    assert (trust <= 1).all()
    if proba.shape[1] == 1:
        np.testing.assert_array_equal(trust, 1.0)
    else:
        expected = 1 - entropy(proba, axis=1) / np.log(proba.shape[1])
        np.testing.assert_allclose(trust, np.repeat(expected[:, None], proba.shape[1], axis=1), atol=1e-12)


@pytest.mark.parametrize("method", [GeneralizedEntropy(), Margin(), MaxConfidence(), NegativeEntropy()])
def test_certain_predictions_are_finite_and_trusted_most(method):
    trust = trust_of(method, np.array([[1.0, 0.0, 0.0], [0.5, 0.3, 0.2]]))
    assert np.isfinite(trust).all()
    assert trust[0, 0] > trust[1, 0]


@pytest.mark.parametrize("n_largest", [1, 2, 100])
def test_generalized_entropy_is_a_sum_over_the_largest_probabilities(n_largest):
    proba = np.random.default_rng(0).dirichlet(np.ones(4), 20)
    trust = trust_of(GeneralizedEntropy(gamma=0.3, n_largest=n_largest), proba)
    for row, found in zip(proba, trust, strict=True):
        terms = [p**0.3 * (1 - p) ** 0.3 for p in sorted(row)[::-1][:n_largest]]
        np.testing.assert_allclose(found, 1 / (1 + sum(terms)), rtol=1e-12)


def test_generalized_entropy_orders_as_entropy_does_for_two_classes():
    proba = np.random.default_rng(0).dirichlet(np.ones(2), 50)
    order = np.argsort(trust_of(NegativeEntropy(), proba)[:, 0])
    np.testing.assert_array_equal(np.argsort(trust_of(GeneralizedEntropy(), proba)[:, 0]), order)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"gamma": 0},
            "The 'gamma' parameter of GeneralizedEntropy must be a number in (0, 1). Got 0 instead.",
        ),
        (
            {"n_largest": 0},
            "The 'n_largest' parameter of GeneralizedEntropy must be an int >= 1. Got 0 instead.",
        ),
    ],
)
def test_generalized_entropy_refuses(params, message):
    with pytest.raises(InvalidParameterError) as refusal:
        trust_of(GeneralizedEntropy(**params), np.eye(2))
    assert str(refusal.value) == message
