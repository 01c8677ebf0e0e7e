"""Mahalanobis trust against the formula, its invariances, and degenerate covariances."""

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf
from sklearn.datasets import load_iris

from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods import Mahalanobis


def fitted(X, y, classes=None):
    X = np.asarray(X, dtype=float)
    n_classes = len(np.unique(y)) if classes is None else len(classes)
    return Mahalanobis().fit(X, y, proba_val=np.full((len(X), n_classes), 1 / n_classes), classes=classes)


def trust_of(method, X):
    n_classes = len(method.classes_)
    return method.predict_trust(X, np.full((len(X), n_classes), 1 / n_classes))


def test_trust_is_the_formula():
    X, y = load_iris(return_X_y=True)
    method = fitted(X, y)
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    covariance, shrinkage = ledoit_wolf(X - means[y], assume_centered=True)
    difference = X[:, None, :] - means
    squared = np.einsum("ncd,de,nce->nc", difference, np.linalg.inv(covariance), difference)
    np.testing.assert_allclose(trust_of(method, X), 1 / (1 + squared / 4), rtol=1e-9)
    assert method.shrinkage_ == pytest.approx(shrinkage)
    np.testing.assert_array_equal(method.class_count_, [50, 50, 50])


@pytest.mark.parametrize("factor", [1e-140, 1e-3, 1e7, 1e140])
def test_neither_units_nor_origin_matter(factor):
    X, y = load_iris(return_X_y=True)
    expected = trust_of(fitted(X, y), X)
    moved = factor * (X + 3.0)
    np.testing.assert_allclose(trust_of(fitted(moved, y), moved), expected, rtol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_shrinkage_as_given(share):
    X, y = load_iris(return_X_y=True)
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    covariance = np.cov((X - means[y]).T, bias=True)
    shrunk = (1 - share) * covariance + share * np.trace(covariance) / 4 * np.eye(4)
    difference = X[:, None, :] - means
    squared = np.einsum("ncd,de,nce->nc", difference, np.linalg.inv(shrunk), difference)
    method = Mahalanobis(shrinkage=share).fit(X, y, proba_val=np.full((150, 3), 1 / 3))
    np.testing.assert_allclose(trust_of(method, X), 1 / (1 + squared / 4), rtol=1e-8)
    assert method.shrinkage_ == share


@pytest.mark.parametrize(
    ("value", "rule"), [("oas", "one of 'auto'"), (1.5, "a number in [0, 1]"), (None, "a number in [0, 1]")]
)
def test_shrinkage_is_checked(value, rule):
    with pytest.raises(InvalidParameterError) as caught:
        Mahalanobis(shrinkage=value).fit([[0.0], [1.0]], [0, 1], proba_val=[[0.5, 0.5]] * 2)
    assert str(caught.value) == (
        f"The 'shrinkage' parameter of Mahalanobis must be {rule}. Got {value!r} instead."
    )


def test_single_precision_rows_give_the_same_trust():
    X, y = load_iris(return_X_y=True)
    single = X.astype(np.float32)
    method = Mahalanobis().fit(single, y, proba_val=np.full((150, 3), 1 / 3))
    np.testing.assert_allclose(trust_of(method, single), trust_of(fitted(single, y), single), rtol=1e-12)


def test_without_spread_within_classes_distance_is_euclidean():
    method = fitted([[0.1, 0.1]] * 3 + [[4.1, 0.1]] * 3, [0, 0, 0, 1, 1, 1])
    assert method.shrinkage_ == 1.0
    # The largest deviation from the common mean is 2, so that [2.1, 0.1] is one unit from both means.
    np.testing.assert_allclose(trust_of(method, [[2.1, 0.1], [0.1, 0.1]])[:, 0], [1 / (1 + 1 / 2), 1.0])


def test_a_single_distinct_row():
    method = fitted([[0.1, 7.0]] * 3, ["a"] * 3)
    np.testing.assert_allclose(trust_of(method, [[0.1, 7.0], [1.1, 7.0]])[:, 0], [1.0, 2 / 3])


def test_a_singular_covariance_is_inverted():
    # Deviations are ±(1, 1) only: nothing to shrink by, and no variance across.
    X = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, 1.0], [-1.0, -1.0]])
    trust = trust_of(fitted(X, [0, 0, 0, 0]), [[1.0, 1.0], [1.0, -1.0]])[:, 0]
    assert trust[0] == pytest.approx(1 / (1 + 1 / 2))
    assert 0 <= trust[1] < 1e-6


def test_a_constant_feature_does_no_harm():
    X, y = load_iris(return_X_y=True)
    with_constant = np.column_stack([X, np.full(150, 0.1)])
    trust = trust_of(fitted(with_constant, y), with_constant)
    assert (trust.argmax(axis=1) == y).mean() > 0.95


def test_rows_far_beyond_everything_have_no_trust_and_no_warning():
    method = fitted([[0.0], [1e-140], [2e-140], [3e-140]], [0, 0, 1, 1])
    trust = trust_of(method, [[1e150], [-1e150], [1e-140]])
    assert np.isfinite(trust).all()
    assert trust[:2].max() < 1e-100
    assert trust[2, 0] > 0.1


def test_a_class_without_rows_is_never_trusted():
    method = fitted([[0.0], [1.0], [5.0]], ["a", "a", "c"], classes=["a", "b", "c"])
    np.testing.assert_array_equal(method.class_count_, [2, 0, 1])
    trust = trust_of(method, [[0.5], [5.0]])
    np.testing.assert_array_equal(trust[:, 1], 0.0)
    assert trust[0, 0] == trust[1, 2] == 1.0
