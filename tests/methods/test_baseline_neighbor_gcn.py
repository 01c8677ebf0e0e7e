"""The graph convolution: equal to the paper's theorem, to a dense graph, and without leaks."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score

from neighboragg._pool.evidence import Evidence
from neighboragg._pool.network import NetworkAggregator, gcn_weights
from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods import NeighborGCN
from neighboragg.methods._neighbor_gcn import softmax_weights
from neighboragg.search import ClasswiseNeighbors

X, Y = load_iris(return_X_y=True)
X = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape)
TRAIN, VAL = np.arange(150) % 3 > 0, np.arange(150) % 3 == 0
PROBA = np.random.default_rng(1).dirichlet([1, 1, 1], 150)


def fitted(**params):
    return NeighborGCN(**params).fit(X[TRAIN], Y[TRAIN], X_val=X[VAL], y_val=Y[VAL], proba_val=PROBA[VAL])


def dense_adjacency(queries, rows, codes, k, bandwidth, *, same=False):
    """exp(-d / T) / K to the K nearest rows of each class."""
    distances = cdist(queries, rows)
    if same:
        np.fill_diagonal(distances, np.inf)
    weights = np.zeros_like(distances)
    for c in np.unique(codes):
        members = np.flatnonzero(codes == c)
        nearest = members[np.argsort(distances[:, members], axis=1)[:, :k]]
        np.put_along_axis(
            weights, nearest, np.exp(-np.take_along_axis(distances, nearest, axis=1) / bandwidth) / k, axis=1
        )
    return weights


def test_one_hop_is_the_hidden_layer_of_theorem_1():
    method = fitted(n_neighbors=4, bandwidth=0.7)
    distances, _ = ClasswiseNeighbors(4).fit(X[TRAIN], Y[TRAIN]).kneighbors(X[VAL])
    network = NetworkAggregator(bandwidth=0.7, activation="identity")
    network.bandwidth_ = 0.7
    network.W_h_, network.W_p_ = gcn_weights(3, 4)
    z = network.pre_activation(Evidence(PROBA[VAL], {"features": distances}))
    np.testing.assert_allclose(method.predict_trust(X[VAL], PROBA[VAL]), softmax(z @ method.W_.T, axis=1))


@pytest.mark.parametrize("n_hops", [1, 2, 3])
def test_hops_are_products_with_the_adjacency(n_hops):
    method = fitted(n_hops=n_hops, n_neighbors=3, bandwidth=0.5)
    nodes = np.eye(3)[Y[TRAIN]]
    among = dense_adjacency(X[TRAIN], X[TRAIN], Y[TRAIN], 3, 0.5, same=True)
    for _ in range(n_hops - 1):
        nodes = (nodes + among @ nodes) / (1 + among.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(method.nodes_, nodes)
    arrived = dense_adjacency(X[VAL], X[TRAIN], Y[TRAIN], 3, 0.5) @ nodes
    expected = softmax(np.hstack([arrived, PROBA[VAL]]) @ method.W_.T, axis=1)
    np.testing.assert_allclose(method.predict_trust(X[VAL], PROBA[VAL]), expected)


def test_the_median_bandwidth_is_the_median_distance_to_the_nearest_training_row():
    expected = np.median(cdist(X[VAL], X[TRAIN]).min(axis=1))
    assert fitted().bandwidth_ == pytest.approx(expected)
    shared = NeighborGCN().fit(X, Y, proba_val=PROBA)
    distances = cdist(X, X)
    np.fill_diagonal(distances, np.inf)
    assert shared.bandwidth_ == pytest.approx(np.median(distances.min(axis=1)))


@pytest.mark.parametrize("n_hops", [1, 2, 3])
def test_labels_of_pure_noise_do_not_leak_through_the_graph(n_hops):
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
    method = NeighborGCN(n_hops).fit(rows, labels, proba_val=np.full((400, 2), 0.5))
    fresh, fresh_labels = rng.normal(size=(4000, 2)), rng.integers(0, 2, 4000)
    trust = method.predict_trust(fresh, np.full((4000, 2), 0.5))
    # With a row's own label among its evidence, W would grow and trust with it, for nothing.
    assert trust.max(axis=1).mean() < 0.58
    assert abs(roc_auc_score(fresh_labels, trust[:, 1]) - 0.5) < 0.05


def test_neighbors_correct_a_classifier_that_knows_nothing():
    method = fitted(n_hops=2)
    trust = method.predict_trust(X, PROBA)
    assert (trust.argmax(axis=1) == Y).mean() > 0.93
    np.testing.assert_allclose(trust.sum(axis=1), 1.0)


def test_scoring_in_parts_changes_nothing(monkeypatch):
    method = fitted(n_hops=2)
    whole = method.predict_trust(X, PROBA)
    monkeypatch.setattr("neighboragg.methods._neighbor_gcn.SCORING_EDGES", 7 * 15)
    np.testing.assert_allclose(method.predict_trust(X, PROBA), whole, rtol=1e-12)


def test_output_weights_are_the_minimum_of_the_penalized_loss():
    rng = np.random.default_rng(0)
    features, codes, start = rng.normal(size=(80, 6)), rng.integers(0, 3, 80), np.tile(np.eye(3), 2)

    def loss(W):
        log_trust = log_softmax(features @ W.T, axis=1)
        return -log_trust[np.arange(80), codes].mean() + 0.01 * ((W - start) ** 2).sum()

    W = softmax_weights(features, codes, start, penalty=0.01, max_iter=500)
    for _ in range(20):
        assert loss(W) <= loss(W + 1e-3 * rng.normal(size=W.shape))
    assert loss(W) < loss(start)
    # A penalty without limit leaves them where they start.
    np.testing.assert_allclose(
        softmax_weights(features, codes, start, penalty=1e9, max_iter=500), start, atol=1e-6
    )


def test_a_single_training_row_has_no_neighbor():
    method = NeighborGCN(n_hops=2).fit([[1.0]], ["b"], proba_val=[[0.3, 0.7]], classes=["a", "b"])
    assert method.bandwidth_ == 1.0
    np.testing.assert_allclose(method.predict_trust([[1.0]], [[0.3, 0.7]]).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_hops": 0}, "The 'n_hops' parameter of NeighborGCN must be an int >= 1. Got 0 instead."),
        (
            {"n_neighbors": 2.5},
            "The 'n_neighbors' parameter of NeighborGCN must be an int >= 1. Got 2.5 instead.",
        ),
        (
            {"bandwidth": "mean"},
            "The 'bandwidth' parameter of NeighborGCN must be one of 'median'. Got 'mean' instead.",
        ),
        (
            {"bandwidth": 0.0},
            "The 'bandwidth' parameter of NeighborGCN must be a number in (0, inf). Got 0.0 instead.",
        ),
        (
            {"penalty": -1.0},
            "The 'penalty' parameter of NeighborGCN must be a number in [0, inf). Got -1.0 instead.",
        ),
        ({"max_iter": 0}, "The 'max_iter' parameter of NeighborGCN must be an int >= 1. Got 0 instead."),
    ],
)
def test_parameters_are_checked(params, message):
    with pytest.raises(InvalidParameterError) as error:
        fitted(**params)
    assert str(error.value) == message
