"""The opinion pool: its optimum, its symmetry, its guard, and evidence with holes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from scipy.stats import rankdata

import neighboragg
from neighboragg._pool import weights as _pool_weights
from neighboragg._pool.evidence import Evidence
from neighboragg._pool.experts import DistanceScale, NeighborDistances
from neighboragg._pool.pool import PoolAggregator
from neighboragg._pool.weights import (
    centered,
    fit_pool,
    guard_weight,
    log_likelihood,
    pool_weights,
    skill_prior,
)
from neighboragg.exceptions import InvalidParameterError
from sizes import examples


def make_tensor(n=80, n_classes=3, n_experts=4, seed=0):
    rng = np.random.default_rng(seed)
    return centered(rng.normal(size=(n, n_classes, n_experts))), rng.integers(0, n_classes, n)


def make_evidence(n=300, n_classes=3, k=8, seed=0, informative=True, opinion=False):
    """A mediocre classifier; neighbors that know more than it, or nothing."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    own = codes[:, None] == np.arange(n_classes)
    proba = rng.dirichlet(np.ones(n_classes), n) + 0.4 * own
    proba /= proba.sum(axis=1, keepdims=True)
    pull = np.where(own & informative, 0.6, 1.0)[:, :, None]
    distances = {
        "features": np.sort(pull * (0.5 + rng.random((n, n_classes, k))), axis=2),
        "learned metric": np.sort(3 * pull * (0.5 + rng.random((n, n_classes, k))), axis=2),
    }
    opinions = {"forest": rng.dirichlet(np.ones(n_classes), n)} if opinion else {}
    return Evidence(proba, distances, opinions, {"forest": 0.01}), codes


def penalized_loss(theta, tensor, codes, penalty, weight, prior=0.0):
    logits = tensor @ theta
    return (weight * (logsumexp(logits, axis=1) - logits[np.arange(len(codes)), codes])).sum() + penalty * (
        (theta - prior) ** 2
    ).sum()


def every_expert(tensor):
    return [{e: 1.0} for e in range(tensor.shape[2])]


def guard(tensor, codes):
    return guard_weight(tensor, codes, every_expert(tensor), penalty=1.0)


class TestPoolWeights:
    @pytest.mark.parametrize("penalty", [1e-3, 1.0, 50.0])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_optimum(self, penalty, weighted):
        tensor, codes = make_tensor()
        weight = np.random.default_rng(5).random(80) if weighted else np.ones(80)
        theta = pool_weights(tensor, codes, penalty=penalty, sample_weight=weight if weighted else None)
        trust = np.exp(log_softmax(tensor @ theta, axis=1))
        expected = np.einsum("nc,nce->ne", trust, tensor) - tensor[np.arange(80), codes]
        gradient = (weight[:, None] * expected).sum(axis=0) + 2 * penalty * theta
        np.testing.assert_allclose(gradient, 0, atol=1e-4)
        # Convex: a general optimizer finds the same point from elsewhere.
        start = np.random.default_rng(6).normal(size=4)
        other = minimize(penalized_loss, start, args=(tensor, codes, penalty, weight), tol=1e-10)
        np.testing.assert_allclose(theta, other.x, atol=1e-4)

    @pytest.mark.parametrize("seed", range(6))
    def test_optimum_over_weights_of_at_least_zero(self, seed):
        tensor, codes = make_tensor(seed=seed)
        prior = np.array([0.5, 0.0, 0.2, 0.0])
        theta = pool_weights(tensor, codes, penalty=2.0, prior=prior, nonnegative=True)
        other = minimize(
            penalized_loss,
            np.ones(4),
            args=(tensor, codes, 2.0, np.ones(80), prior),
            bounds=[(0, None)] * 4,
            tol=1e-12,
        )
        np.testing.assert_allclose(theta, other.x, atol=1e-4)
        assert (theta >= 0).all()

    @pytest.mark.parametrize("seed", range(6))
    def test_only_some_weights_may_be_negative(self, seed):
        tensor, codes = make_tensor(seed=seed)
        bound = np.array([True, False, False, True])
        theta = pool_weights(tensor, codes, nonnegative=bound)
        other = minimize(
            penalized_loss,
            np.ones(4),
            args=(tensor, codes, 1.0, np.ones(80)),
            bounds=[(0, None) if b else (None, None) for b in bound],
            tol=1e-12,
        )
        np.testing.assert_allclose(theta, other.x, atol=1e-4)

    def test_some_weights_would_be_negative(self):
        thetas = np.array([pool_weights(*make_tensor(seed=seed)) for seed in range(6)])
        assert (thetas < -0.05).any()

    def test_a_strong_penalty_leaves_the_prior(self):
        tensor, codes = make_tensor()
        prior = np.array([0.5, 0.0, -0.2, 1.0])
        np.testing.assert_allclose(pool_weights(tensor, codes, penalty=1e9, prior=prior), prior, atol=1e-6)

    @pytest.mark.parametrize("size", [0.1, 5.0, 100.0])
    def test_start_does_not_matter(self, size):
        tensor, codes = make_tensor()
        start = size * np.random.default_rng(2).normal(size=4)
        kept = start.copy()
        np.testing.assert_allclose(
            pool_weights(tensor, codes, start=start), pool_weights(tensor, codes), atol=1e-5
        )
        np.testing.assert_array_equal(start, kept)

    def test_weights_act_as_repetitions(self):
        tensor, codes = make_tensor()
        repeats = np.random.default_rng(1).integers(0, 4, 80)
        np.testing.assert_allclose(
            pool_weights(tensor, codes, sample_weight=repeats.astype(float)),
            pool_weights(np.repeat(tensor, repeats, axis=0), np.repeat(codes, repeats)),
            atol=1e-6,
        )

    def test_separable_rows_give_finite_weights(self):
        codes = np.arange(40) % 2
        tensor = centered(1e3 * (codes[:, None] == np.arange(2))[:, :, None].astype(float))
        theta = pool_weights(tensor, codes, penalty=1e-9)
        assert np.isfinite(theta).all()
        assert theta[0] > 0

    def test_opposing_experts_far_out(self):
        tensor, codes = make_tensor()
        theta = pool_weights(1e4 * tensor, codes, penalty=1e-6)
        assert np.isfinite(theta).all()
        np.testing.assert_allclose(1e4 * theta, pool_weights(tensor, codes, penalty=1e-14), atol=1e-4)

    @pytest.mark.parametrize("shape", [(0, 3, 2), (5, 1, 2)], ids=["no rows", "one class"])
    def test_nothing_to_learn_from(self, shape):
        np.testing.assert_array_equal(
            pool_weights(np.zeros(shape), np.zeros(shape[0], dtype=int)), np.zeros(shape[2])
        )


class TestFitPool:
    def test_each_expert_is_calibrated(self):
        """In its unit, no other temperature gives an expert alone a better likelihood."""
        tensor, codes = make_tensor(400, 3, 3)
        tensor[np.arange(400), codes] += np.array([1.0, 2.0, 0.5])
        tensor = centered(tensor) * np.array([1.0, 50.0, 1e-3])
        scale = fit_pool(tensor, codes, every_expert(tensor), penalty=1.0).scale
        for e in range(3):
            alone = tensor[:, :, [e]] / scale[e]
            best = log_likelihood(alone, codes, np.ones(1)).mean()
            for factor in (0.8, 1.25):
                assert log_likelihood(alone, codes, np.full(1, factor)).mean() < best

    def test_unit_of_the_evidence_does_not_matter(self):
        tensor, codes = make_tensor(400, 3, 3)
        tensor[np.arange(400), codes] += 1.0
        plain = fit_pool(centered(tensor), codes, every_expert(tensor), penalty=1.0)
        other = fit_pool(
            centered(tensor) * np.array([1.0, 1e3, 1e-3]), codes, every_expert(tensor), penalty=1.0
        )
        np.testing.assert_allclose(other.theta, plain.theta, atol=1e-4)

    def test_whoever_says_the_opposite_says_nothing(self):
        tensor, codes = make_tensor(400, 3, 2)
        tensor[np.arange(400), codes, 1] -= 2.0
        pool = fit_pool(centered(tensor), codes, every_expert(tensor), penalty=1.0)
        assert np.abs(centered(tensor)[:, :, 1] * pool.theta[1] / pool.scale[1]).max() < 0.05

    def test_few_rows_stay_near_the_prior(self):
        tensor, codes = make_tensor(400, 3, 3)
        tensor[np.arange(400), codes] += np.array([1.0, 1.0, 0.0])
        tensor = centered(tensor)
        few, many = (fit_pool(tensor[:n], codes[:n], every_expert(tensor), penalty=10.0) for n in (20, 400))
        assert np.abs(few.theta - few.prior).max() < 0.5 * np.abs(many.theta - many.prior).max()

    def test_start_does_not_matter(self):
        tensor, codes = make_tensor(200)
        groups = every_expert(tensor)
        start = fit_pool(tensor[:100], codes[:100], groups, penalty=1.0)
        plain = fit_pool(tensor, codes, groups, penalty=1.0)
        warm = fit_pool(tensor, codes, groups, penalty=1.0, start=start)
        np.testing.assert_allclose(warm.theta / warm.scale, plain.theta / plain.scale, atol=1e-3)

    def test_prior_by_hand(self):
        tensor = np.log(np.array([[[0.5, 0.8, 0.9], [0.5, 0.2, 0.1]]]))
        losses = -np.log([0.5, 0.8, 0.9])
        prior = skill_prior(tensor, np.array([0]), [{0: 1.0}, {1: 0.25, 2: 0.75}])
        skills = np.array([losses[0], losses[2]]) ** -2.0
        parts = 1.15 * skills / skills.sum()
        np.testing.assert_allclose(prior, [parts[0], 0.25 * parts[1], 0.75 * parts[1]], rtol=1e-6)


class TestGuardWeight:
    def test_between_nothing_and_all(self):
        for seed in range(10):
            assert 0.0 <= guard(*make_tensor(seed=seed)) <= 1.0

    def test_too_few_rows_to_know(self):
        assert guard(*make_tensor(4)) == 0.0

    def test_a_second_expert_who_knows(self):
        tensor, codes = make_tensor()
        tensor[np.arange(80), codes, 1] += 3.0
        assert guard(centered(tensor), codes) == 1.0

    def test_two_hundred_rows_are_enough(self):
        """A classifier that is nearly always right, and an expert who knows some of its few errors."""
        weights = []
        for seed in range(5):
            tensor, codes = make_tensor(220, 11, 3, seed=seed)
            tensor[np.arange(220), codes] += np.array([5.0, 4.0, 3.5])
            weights.append(guard(centered(tensor), codes))
        assert min(weights) > 0.9

    def test_nothing_beside_the_classifier(self):
        assert guard(*make_tensor(n_experts=1)) == 0.0

    def test_noise_seldom_passes(self):
        weights = np.array([guard(*make_tensor(60, 3, 5, seed=seed)) for seed in range(60)])
        assert weights.mean() < 0.1


def test_log_likelihood():
    tensor, codes = make_tensor()
    theta = np.array([0.5, -1.0, 2.0, 0.0])
    expected = log_softmax(tensor @ theta, axis=1)[np.arange(80), codes]
    np.testing.assert_allclose(log_likelihood(tensor, codes, theta), expected, atol=1e-5)
    assert log_likelihood(np.array([[[0.0], [1e6]]]), np.array([0]), np.ones(1))[0] == pytest.approx(
        np.log(1e-9)
    )


class TestEvidence:
    def test_log_evidence_by_hand(self):
        distances = np.array([[[1.0, 2.0, 4.0], [0.0, 0.0, 3.0]]])
        expert = NeighborDistances("features", (1, 3), scale=DistanceScale(10.0, 0.5))
        found = expert.logs(Evidence(np.full((1, 2), 0.5), {"features": distances})) @ expert.means
        logs = np.log(distances[0] + 0.5)
        np.testing.assert_allclose(found[0], np.stack([-logs[:, 0], -logs.mean(axis=1)], axis=1), rtol=1e-12)

    def test_first_metric_is_the_feature_space(self):
        evidence, _ = make_evidence(20)
        assert evidence.feature_distances is evidence.distances["features"]
        assert len(evidence) == 20
        assert not evidence.opinions


def test_evidence_in_parts_teaches_the_same():
    evidence, codes = make_evidence(opinion=True)
    evidence.distances["features"][::7, 1, -2:] = np.inf
    whole = PoolAggregator().fit(evidence, codes).predict_trust(evidence)
    asked = []

    def parts():
        asked.append(True)
        return evidence.parts(47)

    in_parts = PoolAggregator().fit_parts(parts, codes)
    np.testing.assert_array_equal(in_parts.predict_trust(evidence), whole)
    assert len(asked) == 2


def test_weights_of_very_many_rows_are_those_of_all_at_once(monkeypatch):
    tensor, codes = make_tensor(n=200)
    at_once = pool_weights(tensor, codes)
    monkeypatch.setattr(_pool_weights, "OUTER_ELEMENTS", 100)
    np.testing.assert_allclose(pool_weights(tensor, codes), at_once, rtol=1e-9)


class TestGuard:
    def test_neighbors_that_know_nothing_change_no_order(self):
        trusted = 0
        for seed in range(8):
            evidence, codes = make_evidence(seed=seed, informative=False)
            pool = PoolAggregator().fit(evidence, codes)
            assert pool.guard_weight_ < 0.5
            if pool.guard_weight_ == 0.0:
                trusted += 1
                assert (pool.theta_[1:] == 0).all()
                order = np.argsort(pool.predict_trust(evidence), axis=1)
                np.testing.assert_array_equal(order, np.argsort(evidence.proba, axis=1))
        assert trusted >= 6

    def test_order_of_two_classes_is_the_classifiers(self):
        evidence, codes = make_evidence(n_classes=2, informative=False)
        pool = PoolAggregator().fit(evidence, codes)
        assert pool.guard_weight_ == 0.0
        ranks = rankdata(pool.predict_trust(evidence)[:, 1].round(12))
        np.testing.assert_array_equal(ranks, rankdata(evidence.proba[:, 1].round(12)))

    def test_neighbors_that_know_count_in_full(self):
        evidence, codes = make_evidence()
        pool = PoolAggregator().fit(evidence, codes)
        assert pool.guard_weight_ == 1.0
        np.testing.assert_array_equal(pool.theta_, PoolAggregator(guard=False).fit(evidence, codes).theta_)
        fresh, fresh_codes = make_evidence(seed=1)
        agree = pool.predict_trust(fresh).argmax(axis=1) == fresh_codes
        assert agree.mean() > (fresh.proba.argmax(axis=1) == fresh_codes).mean() + 0.1

    def test_without_guard_noise_enters(self):
        evidence, codes = make_evidence(informative=False)
        assert PoolAggregator(guard=False).fit(evidence, codes).theta_[1:].max() > 0.05

    def test_trust_is_calibrated(self):
        pool = PoolAggregator().fit(*make_evidence(1000))
        fresh, codes = make_evidence(4000, seed=1)
        trust = pool.predict_trust(fresh)
        top, right = trust.max(axis=1), trust.argmax(axis=1) == codes
        for part in np.array_split(np.argsort(top), 8):
            assert top[part].mean() == pytest.approx(right[part].mean(), abs=0.08)


@examples(15)
@given(st.permutations(range(4)), st.integers(0, 100))
def test_names_of_the_classes_do_not_matter(order, seed):
    evidence, codes = make_evidence(60, 4, seed=seed, opinion=True)
    order = np.array(order)
    permuted = Evidence(
        evidence.proba[:, order],
        {name: distances[:, order] for name, distances in evidence.distances.items()},
        {name: proba[:, order] for name, proba in evidence.opinions.items()},
        evidence.floors,
    )
    trust = PoolAggregator().fit(evidence, codes).predict_trust(evidence)
    other = PoolAggregator().fit(permuted, np.argsort(order)[codes]).predict_trust(permuted)
    np.testing.assert_allclose(other, trust[:, order], atol=1e-8)


@pytest.mark.parametrize("exponent", [-40, 60])
def test_unit_of_the_distances_does_not_matter(exponent):
    evidence, codes = make_evidence()
    scaled = Evidence(
        evidence.proba, {name: distances * 2.0**exponent for name, distances in evidence.distances.items()}
    )
    np.testing.assert_allclose(
        PoolAggregator().fit(scaled, codes).predict_trust(scaled),
        PoolAggregator().fit(evidence, codes).predict_trust(evidence),
        atol=1e-5,
    )


def without(distances, c, first=0):
    holes = distances.copy()
    holes[:, c, first:] = np.inf
    return holes


HOLES = {
    "few rows in a class": lambda d: without(d, 1, 2),
    "no row in a class": lambda d: without(d, 1),
    "rows in one class only": lambda d: without(without(d, 1), 2),
    "no row at all": lambda d: np.full_like(d, np.inf),
    "duplicates only": lambda d: np.zeros_like(d),
    "huge": lambda d: d * 1e149,
}


class TestHoles:
    @pytest.mark.parametrize("case", HOLES)
    def test_trust_stays_finite(self, case):
        evidence, codes = make_evidence(opinion=True)
        evidence = Evidence(
            evidence.proba,
            {m: HOLES[case](d) for m, d in evidence.distances.items()},
            evidence.opinions,
            evidence.floors,
        )
        pool = PoolAggregator(guard=False).fit(evidence, codes)
        trust = pool.predict_trust(evidence)
        assert np.isfinite(trust).all()
        np.testing.assert_allclose(trust.sum(axis=1), 1.0, atol=1e-12)
        assert np.isfinite(pool.contributions(evidence).values).all()

    @pytest.mark.parametrize("case", HOLES)
    def test_holes_that_only_new_rows_have(self, case):
        evidence, codes = make_evidence()
        pool = PoolAggregator(guard=False).fit(evidence, codes)
        holed = Evidence(evidence.proba, {m: HOLES[case](d) for m, d in evidence.distances.items()})
        trust = pool.predict_trust(holed)
        assert np.isfinite(trust).all()
        np.testing.assert_allclose(trust.sum(axis=1), 1.0, atol=1e-12)

    @pytest.mark.parametrize("away", [1.0, 10.0, 1e6])
    def test_a_class_without_rows_is_never_the_nearest(self, away):
        evidence, codes = make_evidence(n_classes=2)
        pool = PoolAggregator(guard=False).fit(
            Evidence(evidence.proba, {"features": evidence.feature_distances}), codes
        )
        distances = without(away * evidence.feature_distances, 1)
        trust = pool.predict_trust(Evidence(np.full((len(codes), 2), 0.5), {"features": distances}))
        assert (trust[:, 0] > 0.5).all()

    def test_probabilities_of_zero_and_one(self):
        evidence, codes = make_evidence()
        certain = np.eye(3)[evidence.proba.argmax(axis=1)]
        pool = PoolAggregator().fit(Evidence(certain, evidence.distances), codes)
        assert np.isfinite(pool.predict_trust(Evidence(certain, evidence.distances))).all()

    def test_floor_of_probabilities(self):
        evidence, codes = make_evidence()
        assert PoolAggregator().fit(evidence, codes).experts_[0].floor == 0.5 * evidence.proba.min()
        proba = np.full_like(evidence.proba, 1e-9)
        proba[:, 0] = 1 - 2e-9
        assert PoolAggregator().fit(Evidence(proba, evidence.distances), codes).experts_[0].floor == 1e-6

    def test_one_validation_row(self):
        evidence, codes = make_evidence(1)
        pool = PoolAggregator().fit(evidence, codes)
        assert pool.guard_weight_ == 0.0
        assert np.isfinite(pool.predict_trust(evidence)).all()

    def test_one_class(self):
        evidence, codes = make_evidence(n_classes=1)
        np.testing.assert_array_equal(
            PoolAggregator().fit(evidence, codes).predict_trust(evidence), np.ones((300, 1))
        )


class TestExperts:
    def test_names(self):
        evidence, codes = make_evidence(opinion=True)
        assert PoolAggregator().fit(evidence, codes).contributions(evidence).names == [
            "classifier",
            "1 nearest (features)",
            "2 nearest (features)",
            "8 nearest (features)",
            "1 nearest (learned metric)",
            "2 nearest (learned metric)",
            "8 nearest (learned metric)",
            "forest",
        ]

    @pytest.mark.parametrize(
        ("counts", "available", "used"),
        [(None, 20, [1, 5, 20]), (None, 3, [1, 3]), (None, 1, [1]), ((1, 10), 8, [1, 8]), ([3], 8, [3])],
    )
    def test_counts(self, counts, available, used):
        evidence, codes = make_evidence(50, k=available)
        pool = PoolAggregator(neighbor_counts=counts).fit(evidence, codes)
        assert [list(expert.counts) for expert in pool.experts_[1:]] == [used, used]
        assert len(pool.theta_) == len(pool.scale_) == 1 + 2 * len(used)

    def test_follows_the_definition(self):
        evidence, codes = make_evidence()
        pool = PoolAggregator(neighbor_counts=[2], guard=False).fit(
            Evidence(evidence.proba, {"features": evidence.feature_distances}), codes
        )
        logs = np.log(evidence.feature_distances[:, :, :2] + pool.experts_[1].scale.offset).mean(axis=2)
        tensor = centered(np.stack([np.log(evidence.proba + pool.experts_[0].floor), -logs], axis=2))
        expected = pool_weights(
            tensor / pool.scale_, codes, penalty=10.0, prior=pool.prior_, nonnegative=np.array([True, False])
        )
        np.testing.assert_allclose(pool.theta_, expected, rtol=1e-9)
        np.testing.assert_allclose(
            pool.prior_, skill_prior(tensor / pool.scale_, codes, [{0: 1.0}, {1: 1.0}]), rtol=1e-9
        )
        logits = tensor @ (expected / pool.scale_)
        trust = pool.predict_trust(Evidence(evidence.proba, {"features": evidence.feature_distances}))
        np.testing.assert_allclose(np.log(trust), log_softmax(logits, axis=1), atol=1e-9)

    def test_neither_classifier_nor_opinion_counts_against_what_it_says(self):
        """An opinion that is right only where the classifier is wrong, and the other way round."""
        evidence, codes = make_evidence(600, opinion=True)
        own = codes[:, None] == np.arange(3)
        contrary = np.where(own, 0.02, 0.49)
        opinions = {"contrary": contrary / contrary.sum(axis=1, keepdims=True)}
        pool = PoolAggregator(guard=False).fit(
            Evidence(evidence.proba, evidence.distances, opinions, {"contrary": 1e-4}), codes
        )
        assert pool.experts_[-1].name == "contrary"
        assert pool.theta_[0] >= 0
        assert 0 <= pool.theta_[-1] / pool.scale_[-1] < 1e-2

    def test_an_opinion_that_knows_as_much_as_the_classifier_is_expected_to_count_as_much(self):
        evidence, codes = make_evidence()
        twice = Evidence(evidence.proba, evidence.distances, {"twin": evidence.proba}, {"twin": 1e-6})
        pool = PoolAggregator().fit(twice, codes)
        assert pool.prior_[-1] == pytest.approx(pool.prior_[0], rel=0.01)

    def test_contributions_add_up_to_the_log_trust(self):
        evidence, codes = make_evidence(opinion=True)
        pool = PoolAggregator().fit(evidence, codes)
        _, groups, spaces, contributions = pool.contributions(evidence)
        assert groups == ["classifier", *["neighbors"] * 6, "second opinions"]
        assert spaces == ["", *["features"] * 3, *["learned metric"] * 3, ""]
        assert contributions.shape == (300, 3, 8)
        rest = np.log(pool.predict_trust(evidence)) - contributions.sum(axis=2)
        np.testing.assert_allclose(rest - rest[:, :1], 0, atol=1e-9)

    def test_an_opinion_that_knows_is_heard(self):
        evidence, codes = make_evidence(informative=False)
        knows = 0.8 * np.eye(3)[codes] + 0.2 / 3
        pool = PoolAggregator().fit(
            Evidence(evidence.proba, evidence.distances, {"oracle": knows}, {"oracle": 1e-4}), codes
        )
        assert pool.guard_weight_ == 1.0
        assert pool.theta_.argmax() == len(pool.theta_) - 1


@pytest.mark.parametrize("counts", [None, (1, 3), np.array([2, 4])], ids=["none", "tuple", "array"])
def test_saved_and_loaded_gives_equal_bits(counts, tmp_path):
    evidence, codes = make_evidence(opinion=True)
    pool = PoolAggregator(neighbor_counts=counts, penalty=0.5).fit(evidence, codes)
    pool.save(tmp_path / "pool.nagg")
    loaded = neighboragg.load(tmp_path / "pool.nagg")
    assert loaded.predict_trust(evidence).tobytes() == pool.predict_trust(evidence).tobytes()
    assert loaded.contributions(evidence).names == pool.contributions(evidence).names
    assert loaded.contributions(evidence).values.tobytes() == pool.contributions(evidence).values.tobytes()
    assert loaded.guard_weight_ == pool.guard_weight_
    assert loaded.penalty == 0.5
    assert type(loaded.neighbor_counts) is type(counts)
    assert np.array_equal(loaded.neighbor_counts, counts)


@pytest.mark.parametrize(
    ("params", "shown", "rule"),
    [
        ({"penalty": 0}, "0", "a number in (0, inf)"),
        ({"penalty": -1.0}, "-1.0", "a number in (0, inf)"),
        ({"penalty": True}, "True", "a number in (0, inf)"),
        ({"neighbor_counts": [1, 0]}, "0", "an int >= 1"),
        ({"neighbor_counts": [2.5]}, "2.5", "an int >= 1"),
    ],
)
def test_parameters(params, shown, rule):
    (name,) = params
    with pytest.raises(InvalidParameterError) as caught:
        PoolAggregator(**params).fit(*make_evidence(10))
    assert (
        str(caught.value) == f"The {name!r} parameter of PoolAggregator must be {rule}. Got {shown} instead."
    )
