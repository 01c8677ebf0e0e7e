"""Relative Mahalanobis distance and distance to the k-th neighbor against their formulas."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from benchmarks.methods import KNNDistance, RelativeMahalanobis
from neighboragg.methods import Mahalanobis

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 200)
X = RNG.normal(size=(200, 4)) @ RNG.normal(size=(4, 4)) + 2 * np.eye(3, 4)[Y]
P = RNG.dirichlet(np.ones(3), 200)
TEST, P_TEST = RNG.normal(size=(30, 4)) + 1, RNG.dirichlet(np.ones(3), 30)


def test_relative_distance_is_a_difference_of_two():
    method = RelativeMahalanobis(shrinkage=0.0).fit(X, Y, proba_val=P)
    within = X - np.stack([X[c == Y].mean(axis=0) for c in range(3)])[Y]
    inner, outer = np.linalg.inv(within.T @ within / 200), np.linalg.inv(np.cov(X.T, ddof=0))
    for row, found in zip(TEST, method.predict_trust(TEST, P_TEST), strict=True):
        background = (row - X.mean(axis=0)) @ outer @ (row - X.mean(axis=0))
        for c in range(3):
            difference = row - X[c == Y].mean(axis=0)
            gain = (background - difference @ inner @ difference) / 4
            np.testing.assert_allclose(found[c], gain / (1 + abs(gain)), rtol=1e-8)


def test_a_direction_that_classes_share_no_longer_counts():
    """One loud direction has nothing to do with the class; it drowns the plain distance but not the relative one."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 400)
    rows = np.column_stack([rng.normal(size=400) + 6 * y, rng.normal(size=400)])
    far = np.array([[0.0, 40.0], [6.0, 40.0]])
    fitted = RelativeMahalanobis().fit(rows, y, proba_val=np.full((400, 2), 0.5))
    plain = Mahalanobis().fit(rows, y, proba_val=np.full((400, 2), 0.5))
    half = np.full((2, 2), 0.5)
    assert (plain.predict_trust(far, half) < 0.01).all()
    trust = fitted.predict_trust(far, half)
    near = fitted.predict_trust([[0.0, 0.0], [6.0, 0.0]], half)
    np.testing.assert_array_equal(trust.argmax(axis=1), near.argmax(axis=1))


def test_a_class_without_rows_is_not_trusted():
    method = RelativeMahalanobis().fit(X, Y, proba_val=np.full((200, 4), 0.25), classes=np.arange(4))
    trust = method.predict_trust(TEST, np.full((30, 4), 0.25))
    np.testing.assert_array_equal(trust[:, 3], -1.0)
    assert (trust[:, :3] > -1).all()


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_the_kth_neighbor(metric):
    method = KNNDistance(n_neighbors=7, metric=metric).fit(X, Y, proba_val=P)
    distances = NearestNeighbors(n_neighbors=7, metric=metric).fit(X).kneighbors(TEST)[0][:, -1]
    np.testing.assert_allclose(
        method.predict_trust(TEST, P_TEST), np.repeat(1 / (1 + distances)[:, None], 3, axis=1), rtol=1e-9
    )


def test_the_default_orders_as_embeddings_of_length_one():
    def unit(rows):
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    trust = KNNDistance().fit(X, Y, proba_val=P).score_samples(TEST, P_TEST)
    distances = NearestNeighbors(n_neighbors=50).fit(unit(X)).kneighbors(unit(TEST))[0][:, -1]
    np.testing.assert_array_equal(np.argsort(-trust), np.argsort(distances))


def test_fewer_rows_than_neighbors():
    method = KNNDistance(metric="euclidean").fit([[0.0], [3.0]], [0, 1], proba_val=np.full((2, 2), 0.5))
    np.testing.assert_array_equal(method.score_samples([[1.0]], [[0.5, 0.5]]), [1 / 3])


def test_a_row_does_not_count_as_its_own_neighbor():
    method = KNNDistance(n_neighbors=3, metric="euclidean").fit(X, Y, proba_val=P)
    trust = method.predict_trust(X, P, exclude=np.arange(200))
    distances = NearestNeighbors(n_neighbors=3).fit(X).kneighbors()[0][:, -1]
    np.testing.assert_allclose(trust[:, 0], 1 / (1 + distances), rtol=1e-9)
    alone = KNNDistance().fit([[0.0]], [0], proba_val=[[1.0]])
    np.testing.assert_array_equal(alone.predict_trust([[0.0]], [[1.0]], exclude=np.array([0])), [[0.0]])
