"""The paper's network: its gradient, the graph convolution it starts from, and its ablations."""

import numpy as np
import pytest
from sklearn.base import clone

import neighboragg
from neighboragg._pool.evidence import Evidence, laplacian_similarity
from neighboragg._pool.network import ACTIVATIONS, NetworkAggregator, gcn_weights, network_loss
from neighboragg.exceptions import InvalidParameterError
from neighboragg.search import ClasswiseNeighbors


def make_evidence(n=150, n_classes=3, k=4, seed=0, noise=0.4):
    """Neighbors that know the class rather well, and a classifier that knows it less."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    own = codes[:, None] == np.arange(n_classes)
    near = np.where(own, 0.5, 1.0)[:, :, None] + noise * rng.random((n, n_classes, k))
    proba = rng.dirichlet(np.ones(n_classes), n) + 0.3 * own
    return Evidence(proba / proba.sum(axis=1, keepdims=True), {"features": np.sort(near, axis=2)}), codes


class TestGradient:
    @pytest.mark.parametrize("activation", ACTIVATIONS)
    @pytest.mark.parametrize("matrix", [0, 1, 2], ids=["W_h", "W_p", "W"])
    def test_equals_finite_differences(self, activation, matrix):
        rng = np.random.default_rng(matrix)
        shapes = [(3, 12), (3, 3), (3, 6)]
        weights = [rng.normal(size=shape) for shape in shapes]
        evidence, codes = make_evidence(20)
        similarities = laplacian_similarity(evidence.feature_distances, 1.0).reshape(20, -1)

        def loss(position, change):
            changed = [part.copy() for part in weights]
            changed[matrix][position] += change
            return network_loss(*changed, similarities, evidence.proba, codes, activation)[0]

        _, gradients = network_loss(*weights, similarities, evidence.proba, codes, activation)
        numeric = np.empty(shapes[matrix])
        for position in np.ndindex(shapes[matrix]):
            numeric[position] = (loss(position, 1e-5) - loss(position, -1e-5)) / 2e-5
        np.testing.assert_allclose(gradients[matrix], numeric, atol=1e-8)
        assert np.abs(numeric).max() > 1e-3

    def test_loss_is_the_mean_cross_entropy(self):
        evidence, codes = make_evidence(30)
        similarities = laplacian_similarity(evidence.feature_distances, 0.5).reshape(30, -1)
        weights = [*gcn_weights(3, 4), np.tile(np.eye(3), 2)]
        loss, _ = network_loss(*weights, similarities, evidence.proba, codes, "identity")
        logits = np.exp(-evidence.feature_distances / 0.5).mean(axis=2) + evidence.proba
        trust = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        assert loss == pytest.approx(-np.log(trust[np.arange(30), codes]).mean(), rel=1e-12)


@pytest.mark.parametrize(("n_classes", "k", "bandwidth"), [(3, 4, 1.0), (2, 1, 0.3), (5, 7, 2.5)])
def test_theorem_1_hidden_layer_is_a_one_hop_graph_convolution(n_classes, k, bandwidth):
    """Z(I + A) of the bipartite graph of training and query rows; nodes are columns, as in the appendix."""
    rng = np.random.default_rng(0)
    n_train, n_query = 60, 25
    X, queries = rng.normal(size=(n_train, 3)), rng.normal(size=(n_query, 3))
    y = np.arange(n_train) % n_classes
    proba = rng.dirichlet(np.ones(n_classes), n_query)

    Z = np.zeros((2 * n_classes, n_train + n_query))
    Z[y, np.arange(n_train)] = 1.0
    Z[n_classes:, n_train:] = proba.T
    A = np.zeros((n_train + n_query, n_train + n_query))
    for j, query in enumerate(queries):
        distances = np.linalg.norm(X - query, axis=1)
        for c in range(n_classes):
            members = np.flatnonzero(y == c)
            for i in members[np.argsort(distances[members])[:k]]:
                A[i, n_train + j] = A[n_train + j, i] = np.exp(-distances[i] / bandwidth) / k
    updated = (Z @ (np.eye(len(A)) + A))[:, n_train:]

    network = NetworkAggregator(bandwidth=bandwidth)
    network.bandwidth_ = bandwidth
    network.W_h_, network.W_p_ = gcn_weights(n_classes, k)
    found, _ = ClasswiseNeighbors(k).fit(X, y).kneighbors(queries)
    hidden = network.pre_activation(Evidence(proba, {"features": found}))
    np.testing.assert_allclose(hidden, updated.T, rtol=0, atol=1e-10)


def test_gcn_weights():
    W_h, W_p = gcn_weights(2, 3)
    np.testing.assert_allclose(W_h, np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]) / 3)
    np.testing.assert_array_equal(W_p, np.eye(2))


class TestFit:
    @pytest.mark.parametrize("activation", ACTIVATIONS)
    def test_learns_the_class(self, activation):
        evidence, codes = make_evidence()
        network = NetworkAggregator(activation=activation).fit(evidence, codes)
        fresh, fresh_codes = make_evidence(seed=1)
        trust = network.predict_trust(fresh)
        np.testing.assert_allclose(trust.sum(axis=1), 1.0, atol=1e-12)
        assert (trust >= 0).all()
        assert (trust.argmax(axis=1) == fresh_codes).mean() > 0.9
        assert network.n_iter_ > 1

    def test_follows_the_definition(self):
        evidence, codes = make_evidence()
        network = NetworkAggregator(bandwidth=0.7).fit(evidence, codes)
        h = np.exp(-evidence.feature_distances / 0.7).reshape(len(evidence), -1)
        hidden = np.tanh(np.hstack([h @ network.W_h_.T, evidence.proba @ network.W_p_.T]))
        logits = hidden @ network.W_.T
        expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(network.predict_trust(evidence), expected, rtol=1e-10)

    def test_penalty_keeps_the_weights_at_their_start(self):
        evidence, codes = make_evidence()
        network = NetworkAggregator(penalty=1e8).fit(evidence, codes)
        np.testing.assert_allclose(network.W_h_, gcn_weights(3, 4)[0], atol=0.05)
        np.testing.assert_allclose(network.W_, np.tile(np.eye(3), 2), atol=0.05)

    def test_seed_decides(self):
        evidence, codes = make_evidence(40)
        first, second, other = (
            NetworkAggregator(random_state=seed, max_iter=3).fit(evidence, codes).W_ for seed in (1, 1, 2)
        )
        assert first.tobytes() == second.tobytes()
        assert not np.array_equal(first, other)

    @pytest.mark.parametrize(
        ("inputs", "names"),
        [("neighbors", ["classifier"]), ("proba", ["neighbors"])],
        ids=["NeighOnly", "ProbOnly"],
    )
    def test_ablations_ignore_the_other_input(self, inputs, names):
        evidence, codes = make_evidence()
        rng = np.random.default_rng(9)
        proba = rng.dirichlet(np.ones(3), len(evidence)) if inputs == "neighbors" else evidence.proba
        distances = (
            10 * rng.random((len(evidence), 3, 4)) if inputs == "proba" else evidence.feature_distances
        )
        changed = Evidence(proba, {"features": distances})
        network = NetworkAggregator(inputs=inputs, bandwidth=1.0)
        trust = clone(network).fit(evidence, codes).predict_trust(evidence)
        np.testing.assert_array_equal(clone(network).fit(changed, codes).predict_trust(changed), trust)
        experts, _, _, contributions = network.fit(evidence, codes).contributions(evidence)
        silent = contributions[:, :, [expert in names for expert in experts]]
        np.testing.assert_allclose(silent, 0, atol=1e-15)
        assert trust.std(axis=0).min() > 0.01

    def test_both_inputs_count(self):
        evidence, codes = make_evidence()
        network = NetworkAggregator(bandwidth=1.0).fit(evidence, codes)
        trust = network.predict_trust(evidence)
        for changed in (
            Evidence(evidence.proba[::-1], evidence.distances),
            Evidence(evidence.proba, {"features": evidence.feature_distances[::-1]}),
        ):
            assert np.abs(network.predict_trust(changed) - trust).max() > 0.01


class TestBandwidth:
    def test_median_of_the_nearest(self):
        evidence, codes = make_evidence()
        expected = np.median(evidence.feature_distances.min(axis=(1, 2)))
        assert NetworkAggregator().fit(evidence, codes).bandwidth_ == pytest.approx(expected, rel=1e-12)

    def test_unit_of_the_distances_does_not_matter(self):
        evidence, codes = make_evidence()
        scaled = Evidence(evidence.proba, {"features": evidence.feature_distances * 2.0**60})
        trust = NetworkAggregator().fit(evidence, codes).predict_trust(evidence)
        np.testing.assert_array_equal(NetworkAggregator().fit(scaled, codes).predict_trust(scaled), trust)

    @pytest.mark.parametrize("value", [0.0, np.inf], ids=["duplicates", "no neighbors"])
    def test_one_where_there_is_no_scale(self, value):
        evidence, codes = make_evidence()
        flat = Evidence(evidence.proba, {"features": np.full((len(evidence), 3, 4), value)})
        network = NetworkAggregator().fit(flat, codes)
        assert network.bandwidth_ == 1.0
        assert np.isfinite(network.predict_trust(flat)).all()

    def test_missing_neighbors_have_no_similarity(self):
        np.testing.assert_array_equal(laplacian_similarity(np.array([0.0, np.inf]), 2.0), [1.0, 0.0])
        assert laplacian_similarity(np.array([3.0]), 2.0)[0] == pytest.approx(np.exp(-1.5))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_contributions_add_up_to_the_log_trust(activation):
    evidence, codes = make_evidence()
    network = NetworkAggregator(activation=activation).fit(evidence, codes)
    names, _, _, contributions = network.contributions(evidence)
    assert names == ["classifier", "neighbors", "class balance"]
    assert contributions.shape == (len(evidence), 3, 3)
    rest = np.log(network.predict_trust(evidence)) - contributions.sum(axis=2)
    np.testing.assert_allclose(rest - rest[:, :1], 0, atol=1e-10)
    np.testing.assert_allclose(contributions.sum(axis=1), 0, atol=1e-10)


@pytest.mark.parametrize(
    "random_state", [0, None, np.random.RandomState(3)], ids=["int", "none", "generator"]
)
def test_saved_and_loaded_gives_equal_bits(random_state, tmp_path):
    evidence, codes = make_evidence()
    network = NetworkAggregator(inputs="both", activation="relu", max_iter=7, random_state=random_state)
    network.fit(evidence, codes)
    network.save(tmp_path / "network.nagg")
    loaded = neighboragg.load(tmp_path / "network.nagg")
    assert loaded.predict_trust(evidence).tobytes() == network.predict_trust(evidence).tobytes()
    assert loaded.contributions(evidence).values.tobytes() == network.contributions(evidence).values.tobytes()
    assert loaded.n_iter_ == network.n_iter_
    assert loaded.random_state == (0 if random_state == 0 else None)
    assert loaded.get_params() == {**network.get_params(), "random_state": loaded.random_state}


@pytest.mark.parametrize(
    ("params", "rule"),
    [
        ({"inputs": "probs"}, "one of 'both', 'neighbors', 'proba'"),
        ({"activation": "gelu"}, "one of 'identity', 'relu', 'sigmoid', 'tanh'"),
        ({"activation": None}, "one of 'identity', 'relu', 'sigmoid', 'tanh'"),
        ({"penalty": -1.0}, "a number in [0, inf)"),
        ({"penalty": np.inf}, "a number in [0, inf)"),
        ({"penalty": "1"}, "a number in [0, inf)"),
        ({"max_iter": 0}, "an int >= 1"),
        ({"bandwidth": "mean"}, "one of 'median'"),
        ({"bandwidth": 0}, "a number in (0, inf)"),
        ({"bandwidth": float("nan")}, "a number in (0, inf)"),
        ({"bandwidth": None}, "a number in (0, inf)"),
    ],
)
def test_parameters(params, rule):
    ((name, value),) = params.items()
    evidence, codes = make_evidence(10)
    with pytest.raises(InvalidParameterError) as caught:
        NetworkAggregator(**params).fit(evidence, codes)
    assert str(caught.value) == (
        f"The {name!r} parameter of NetworkAggregator must be {rule}. Got {value!r} instead."
    )
