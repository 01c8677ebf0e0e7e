"""Validation rows that are easier or harder than all labeled rows, by chance or not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, chi2_contingency

from neighboragg import NeighborAgg
from neighboragg._pool import row_weights as _sample_weights
from neighboragg._pool.evidence import Evidence, FitData
from neighboragg._pool.pool import PoolAggregator
from neighboragg._pool.row_weights import (
    AGREEMENT_BY_CHANCE,
    CLASSES_BY_CHANCE,
    sample_weights,
    share_weights,
)
from neighboragg.search import Streamed
from neighboragg.search._blocks import open_rows
from sizes import draws


def shares_after(strata, weights, n_strata):
    return np.bincount(strata, weights, minlength=n_strata) / weights.sum()


class TestShares:
    def test_many_rows_get_the_shares(self):
        codes = np.repeat([0, 1, 2], [5100, 2950, 1950])
        weights = share_weights(codes, np.array([50_000, 30_000, 20_000]), by_chance=CLASSES_BY_CHANCE)
        np.testing.assert_allclose(shares_after(codes, weights, 3), [0.5, 0.3, 0.2], atol=1e-4)
        assert weights.mean() == pytest.approx(1.0)

    def test_weights_that_were_given_are_changed_no_more_than_it_takes(self):
        rng = np.random.default_rng(0)
        strata, given = rng.integers(0, 2, 4000), rng.uniform(0.5, 1.5, 4000)
        weights = share_weights(strata, np.array([49_000, 51_000]), by_chance=1e-9, given=given)
        np.testing.assert_allclose(shares_after(strata, weights, 2), [0.49, 0.51], atol=1e-3)
        for stratum in (0, 1):
            factors = (weights / given)[strata == stratum]
            np.testing.assert_allclose(factors, factors[0])

    def test_few_rows_of_a_class_keep_their_weight(self):
        codes = np.repeat([0, 1], [198, 2])
        everybody = np.array([980, 20])  # twice as many were to be expected of the second
        weights = share_weights(codes, everybody, by_chance=CLASSES_BY_CHANCE)
        assert 1.0 < weights[-1] / weights[0] < 1.2

    def test_equal_shares_give_equal_weights(self):
        weights = share_weights(np.repeat([0, 1], 50), np.array([300, 300]), by_chance=CLASSES_BY_CHANCE)
        np.testing.assert_array_equal(weights, 1.0)

    @pytest.mark.parametrize("by_chance", [CLASSES_BY_CHANCE, AGREEMENT_BY_CHANCE])
    @pytest.mark.parametrize("n_others", [100, 1000, 10_000])
    @pytest.mark.parametrize("n_first", range(380, 621, 10))
    def test_other_than_by_chance_counts_as_it_is(self, n_first, n_others, by_chance):
        """As a test of both samples says, of which these rows are one."""
        rows, others = np.array([n_first, 1000 - n_first]), np.array([n_others // 2, n_others // 2])
        weights = share_weights(np.repeat([0, 1], rows), rows + others, by_chance=by_chance)
        expected = chi2_contingency([rows, others], correction=False).pvalue >= by_chance
        assert (weights == 1.0).all() == (not expected or n_first == 500)

    @pytest.mark.parametrize("n_others", [75, 300, 1200])
    def test_rows_drawn_like_the_others_are_refused_as_often_as_said(self, n_others):
        rng = np.random.default_rng(0)
        n_refused = 0
        for _ in range(2000):
            strata = rng.choice(4, size=300 + n_others, p=[0.1, 0.2, 0.3, 0.4])
            weights = share_weights(strata[:300], np.bincount(strata, minlength=4), by_chance=0.02)
            n_refused += (weights == 1.0).all()
        assert binom.ppf(1e-4, 2000, 0.02) <= n_refused <= binom.ppf(1 - 1e-4, 2000, 0.02)

    @pytest.mark.parametrize(
        ("codes", "everybody"),
        [([0, 0, 0], [7, 0]), ([0, 2], [6, 2, 2]), ([], [5, 5]), ([0, 1], [1, 1]), ([], [0, 0])],
        ids=["one class", "a class without rows", "no rows", "no others", "nobody"],
    )
    def test_odd_cases(self, codes, everybody):
        weights = share_weights(np.array(codes, dtype=int), np.array(everybody), by_chance=CLASSES_BY_CHANCE)
        assert weights.shape == (len(codes),)
        assert np.isfinite(weights).all()


def overlapping(n, rng, *, first=0.5, apart=2.0, spread=0.9):
    """Two overlapping classes."""
    codes = (rng.random(n) >= first).astype(int)
    return np.c_[apart * codes + rng.normal(0, spread, n), rng.normal(size=n)], codes


def fit_data(X, codes, X_val, codes_val):
    return FitData(X, codes, X_val, codes_val, np.full((len(X_val), 2), 0.5), 2)


def weights_of(data, **changes):
    asked = {"metric": "euclidean", "n_jobs": None, "seed": 0, **changes}
    return sample_weights(data, np.arange(len(data.X_val)), slice(None), **asked)


class TestWeights:
    def test_rows_among_others_of_another_class_get_their_share(self):
        off = []
        for seed in range(30):
            rng = np.random.default_rng(seed)
            X, codes = overlapping(3000, rng)
            X_val, codes_val = overlapping(300, rng)
            weights = weights_of(fit_data(X, codes, X_val, codes_val))
            truth, easy = ((x[:, 0] > 1) == (c == 1) for x, c in ((X, codes), (X_val, codes_val)))
            off.append([abs(np.average(easy, weights=w) - truth.mean()) for w in (weights, None)])
        weighed, plain = np.mean(off, axis=0)
        assert weighed < 0.85 * plain

    def test_many_validation_rows_are_not_searched_for(self, monkeypatch):
        rng = np.random.default_rng(0)
        data = fit_data(*overlapping(900, rng), *overlapping(300, rng))
        searched = weights_of(data)
        monkeypatch.setattr(_sample_weights, "ENOUGH_ROWS", 300)
        monkeypatch.delattr(_sample_weights, "ClasswiseNeighbors")
        by_class = weights_of(data)
        assert len(np.unique(by_class)) == 2 < len(np.unique(searched)) <= 2 * _sample_weights.N_LEVELS

    def test_of_very_many_training_rows_some_are_drawn(self):
        rng = np.random.default_rng(0)
        data = fit_data(*overlapping(2000, rng), *overlapping(100, rng))
        np.testing.assert_array_equal(weights_of(data), weights_of(data))
        assert not np.array_equal(weights_of(data), weights_of(data, seed=1))

    def test_vectors_that_know_their_training_rows_change_nothing(self):
        rng = np.random.default_rng(0)
        X, codes = overlapping(3000, rng, spread=0.2)  # as a network that has learned them by heart
        X_val, codes_val = overlapping(600, rng)
        alone = share_weights(codes_val, np.bincount(np.r_[codes, codes_val]), by_chance=CLASSES_BY_CHANCE)
        np.testing.assert_array_equal(weights_of(fit_data(X, codes, X_val, codes_val)), alone)

    def test_training_rows_that_vouch_for_themselves_count_alike(self):
        X, codes = overlapping(50, np.random.default_rng(0))
        np.testing.assert_array_equal(weights_of(FitData(X, codes, X, codes, np.full((50, 2), 0.5), 2)), 1.0)

    @pytest.mark.parametrize(("n_train", "n_val"), [(1, 1), (2, 1), (1, 2), (3, 40), (40, 1)])
    def test_hardly_any_rows(self, n_train, n_val):
        rng = np.random.default_rng(0)
        data = fit_data(*overlapping(n_train, rng), *overlapping(n_val, rng))
        weights = weights_of(data)
        assert weights.shape == (n_val,)
        assert np.isfinite(weights).all() and (weights > 0).all()

    def test_equal_rows(self):
        codes = np.arange(60) % 2
        weights = weights_of(fit_data(np.zeros((60, 3)), codes, np.zeros((60, 3)), codes))
        assert np.isfinite(weights).all() and (weights > 0).all()

    def test_the_order_of_training_rows_does_not_matter_where_all_are_looked_at(self):
        rng = np.random.default_rng(5)
        X, codes = overlapping(400, rng)
        X_val, codes_val = overlapping(150, rng)
        order = rng.permutation(400)
        np.testing.assert_allclose(
            weights_of(fit_data(X, codes, X_val, codes_val)),
            weights_of(fit_data(X[order], codes[order], X_val, codes_val)),
        )


def test_the_pool_weighs_rows():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], [160, 140])
    near = np.where(codes[:, None] == np.arange(2), 0.8, 1.0)[:, :, None] + rng.random((300, 2, 1))
    evidence = Evidence(np.tile([0.6, 0.4], (300, 1)), {"features": near})
    half = share_weights(codes, np.array([9000, 9000]), by_chance=CLASSES_BY_CHANCE)
    plain, weighed = (
        PoolAggregator(guard=False).fit(replace(evidence, weight=weight), codes) for weight in (None, half)
    )
    # Of rows that are half and half, a classifier which always says 0.6 knows nothing.
    assert weighed.scale_[0] > 2 * plain.scale_[0]


def test_evidence_in_parts_keeps_its_weights():
    near, weight = np.ones((5, 2, 1)), np.arange(1.0, 6.0)
    whole = Evidence(np.full((5, 2), 0.5), {"features": near}, weight=weight)
    first, second = whole.parts(3)
    np.testing.assert_array_equal(np.append(first.row_weights, second.row_weights), weight)
    assert (len(first), len(second)) == (3, 2)


def test_rows_read_in_blocks_get_the_same_weights():
    rng = np.random.default_rng(2)
    X, y = overlapping(500, rng)
    X_val, y_val = overlapping(120, rng)
    given = {"X_val": X_val, "y_val": y_val, "proba_val": np.full((120, 2), 0.5)}
    held = NeighborAgg(effort="fast").fit(X, y, **given)
    read = NeighborAgg(effort="fast", search=Streamed("100 MB")).fit(open_rows(X), y, **given)
    np.testing.assert_array_equal(read.aggregator_.theta_, held.aggregator_.theta_)


class WithoutWeights(PoolAggregator):
    """As if nothing were known but the validation rows."""

    weighs_rows = False


def always_the_first(X):
    return np.tile([0.7, 0.3], (len(X), 1))


def by_the_first_column(X):
    return 1 / (1 + np.exp(np.c_[2 * (X[:, 0] - 1), -2 * (X[:, 0] - 1)]))


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    ("rows", "classifier"),
    [
        ({"first": 0.85, "apart": 1.0}, always_the_first),
        ({"first": 0.5, "apart": 2.0, "spread": 1.2}, by_the_first_column),
    ],
    ids=["shares of classes", "agreement of neighbors"],
)
def test_mean_trust_is_nearer_to_the_accuracy(rows, classifier):
    gaps = []
    for seed in range(draws(2, 12)):
        rng = np.random.default_rng(seed)
        (X, y), (X_val, y_val), (X_test, y_test) = (overlapping(n, rng, **rows) for n in (3000, 150, 4000))
        proba_val, proba = classifier(X_val), classifier(X_test)
        methods = [
            NeighborAgg(aggregator, effort="fast").fit(X, y, X_val=X_val, y_val=y_val, proba_val=proba_val)
            for aggregator in (PoolAggregator(), WithoutWeights())
        ]
        accuracy = (proba.argmax(axis=1) == y_test).mean()
        gaps.append([abs(method.score_samples(X_test, proba).mean() - accuracy) for method in methods])
    weighed, plain = np.mean(gaps, axis=0)
    assert weighed < 0.9 * plain
