"""Validation rows whose classes have other shares than all labels, by chance or not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from neighboragg.aggregators import Evidence, PoolAggregator
from neighboragg.aggregators._class_shares import CHANCE, share_weights
from neighboragg.methods import NeighborAgg


def shares_after(codes, weights, n_classes):
    return np.bincount(codes, weights, minlength=n_classes) / weights.sum()


def test_many_rows_get_the_shares():
    shares = np.array([0.5, 0.3, 0.2])
    codes = np.repeat([0, 1, 2], [5100, 2950, 1950])
    weights = share_weights(codes, shares)
    np.testing.assert_allclose(shares_after(codes, weights, 3), shares, atol=1e-4)
    assert weights.mean() == pytest.approx(1.0)


def test_few_rows_of_a_class_keep_their_weight():
    codes = np.repeat([0, 1], [198, 2])
    weights = share_weights(codes, np.array([0.98, 0.02]))  # twice as many were to be expected of the second
    assert 1.0 < weights[-1] / weights[0] < 1.2


def test_equal_shares_give_equal_weights():
    np.testing.assert_array_equal(share_weights(np.repeat([0, 1], 50), np.full(2, 0.5)), 1.0)


@pytest.mark.parametrize("n_first", range(400, 601, 10))
def test_other_than_by_chance_counts_as_it_is(n_first):
    codes = np.repeat([0, 1], [n_first, 1000 - n_first])
    by_chance = chisquare([n_first, 1000 - n_first]).pvalue >= CHANCE
    weights = share_weights(codes, np.full(2, 0.5))
    assert (weights == 1.0).all() == (not by_chance or n_first == 500)


@pytest.mark.parametrize(
    ("codes", "shares"),
    [([0, 0, 0], [1.0, 0.0]), ([0, 1], [1.0, 0.0]), ([0, 2], [0.6, 0.2, 0.2]), ([], [0.5, 0.5])],
    ids=["one class", "a class that has no share", "a class without rows", "no rows"],
)
def test_odd_cases(codes, shares):
    weights = share_weights(np.array(codes, dtype=int), np.array(shares))
    assert weights.shape == (len(codes),)
    assert np.isfinite(weights).all()


def rows_of(shares, n, rng):
    """Two overlapping classes, and a classifier that is right about the first more often."""
    codes = (rng.random(n) >= shares[0]).astype(int)
    X = np.c_[codes + rng.normal(0, 0.9, n), rng.normal(size=n)]
    return X, codes, np.c_[np.full(n, 0.7), np.full(n, 0.3)]


def test_the_pool_weighs_rows():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], [160, 140])
    near = np.where(codes[:, None] == np.arange(2), 0.8, 1.0)[:, :, None] + rng.random((300, 2, 1))
    evidence = Evidence(np.tile([0.6, 0.4], (300, 1)), {"features": near})
    plain, weighed = (
        PoolAggregator(guard=False).fit(replace(evidence, class_shares=shares), codes)
        for shares in (None, np.full(2, 0.5))
    )
    # Of rows that are half and half, a classifier which always says 0.6 knows nothing.
    assert weighed.scale_[0] > 2 * plain.scale_[0]


class WithoutShares(PoolAggregator):
    """As if nothing were known but the validation rows."""

    def fit(self, evidence, codes):
        return super().fit(replace(evidence, class_shares=None), codes)


@pytest.mark.slow
def test_mean_trust_is_nearer_to_the_accuracy():
    gaps = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        (X, y, _), (X_val, y_val, P_val), (X_test, y_test, P_test) = (
            rows_of((0.85, 0.15), n, rng) for n in (4000, 150, 4000)
        )
        methods = [
            NeighborAgg(aggregator, effort="fast").fit(X, y, X_val=X_val, y_val=y_val, proba_val=P_val)
            for aggregator in (PoolAggregator(), WithoutShares())
        ]
        accuracy = (y_test == 0).mean()
        gaps.append([abs(method.score_samples(X_test, P_test).mean() - accuracy) for method in methods])
    with_shares, without = np.mean(gaps, axis=0)
    assert with_shares < 0.9 * without
