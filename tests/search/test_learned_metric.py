"""The learned metric: its gradient, what it finds, and data that could break it."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import logsumexp

from neighboragg.search._learned_metric import _gradient, default_rank, learn_metric, nca_loss


def informative_third(n=600, n_features=5, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, n_features))
    return X, (X[:, 2] > 0).astype(int)


def assert_gradient_is_right(X, codes, components):
    numeric = approx_fprime(
        components.ravel(), lambda flat: nca_loss(X, codes, flat.reshape(components.shape)), 1e-7
    )
    np.testing.assert_allclose(_gradient(X, codes, components).ravel(), numeric, atol=3e-6)
    assert np.abs(numeric).max() > 1e-3


@pytest.mark.parametrize(
    ("n", "rank", "n_classes"),
    [(40, 2, 3), (40, 4, 2), (300, 3, 4), (300, 3, 30), (6, 1, 3)],
    ids=["low rank", "full rank", "more rows than a block", "many classes", "few rows"],
)
def test_gradient_equals_finite_differences(n, rank, n_classes):
    rng = np.random.default_rng(n)
    X, codes = rng.normal(size=(n, 4)), np.arange(n) % n_classes
    # Small enough that no pair is so far apart that its probability is floored.
    assert_gradient_is_right(X, codes, 0.4 * rng.normal(size=(4, rank)))


def test_single_rows_do_not_contribute_to_the_gradient():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(20, 3)), np.array([0] * 10 + [1] * 9 + [2])
    assert_gradient_is_right(X, codes, np.eye(3))


def test_a_row_far_from_all_still_has_nearest_neighbors():
    """exp(−r²) of its distances underflows, their ratios do not."""
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(30, 3)), np.arange(30) % 2
    X[7] = [12.0, 0.0, 0.0]
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    same = np.where(codes[:, None] == codes, 0.0, -np.inf)
    loss = logsumexp(-squared, axis=1) - logsumexp(same - squared, axis=1)
    assert np.exp(-squared[7]).max() < 1e-30 and loss[7] > 1
    assert nca_loss(X, codes, np.eye(3)) == pytest.approx(loss.mean(), rel=1e-12)
    gradient = _gradient(X, codes, np.eye(3))
    numeric = approx_fprime(np.eye(3).ravel(), lambda flat: nca_loss(X, codes, flat.reshape(3, 3)), 1e-7)
    np.testing.assert_allclose(gradient.ravel(), numeric, atol=1e-5)


def test_loss_by_hand():
    X, codes = np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 1])
    near, far = np.exp(-1.0), np.exp(-4.0)
    # The row of class 1 is alone: no neighbor can agree with it, and it is left out of the sum.
    expected = -(np.log(near / (near + far)) + np.log(near / (near + near))) / 3
    assert nca_loss(X, codes, np.eye(1)) == pytest.approx(expected, rel=1e-12)


def test_same_seed_same_map():
    X, codes = informative_third()
    first = learn_metric(X, codes, batch_size=50, n_steps=10, random_state=3)
    assert first.tobytes() == learn_metric(X, codes, batch_size=50, n_steps=10, random_state=3).tobytes()
    assert not np.array_equal(first, learn_metric(X, codes, batch_size=50, n_steps=10, random_state=4))


def test_lowers_the_loss():
    X, codes = informative_third()
    scale = learn_metric(X, codes, n_steps=0)
    assert nca_loss(X, codes, learn_metric(X, codes)) < 0.5 * nca_loss(X, codes, scale)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch_size", [60, 1000])
def test_finds_the_informative_feature(dtype, batch_size):
    X, codes = informative_third()
    weights = np.linalg.norm(learn_metric(X.astype(dtype), codes, batch_size=batch_size), axis=1)
    assert weights[2] > 1.5 * np.delete(weights, 2).max()


@pytest.mark.parametrize("scale", [1e-100, 1e-20, 1e-10, 1e10, 1e100])
def test_unit_of_the_features_does_not_matter(scale):
    X, codes = informative_third()
    np.testing.assert_allclose(
        learn_metric(X * scale, codes, n_steps=20) * scale, learn_metric(X, codes, n_steps=20), atol=1e-3
    )


def test_origin_of_the_features_does_not_matter():
    X, codes = informative_third()
    np.testing.assert_allclose(
        learn_metric(X + 1e4, codes, n_steps=20), learn_metric(X, codes, n_steps=20), atol=1e-3
    )


def test_an_outlier_does_not_decide():
    X, codes = informative_third()
    X[0] = 1e30
    weights = np.linalg.norm(learn_metric(X, codes), axis=1)
    assert weights[2] > 1.5 * np.delete(weights, 2).max()


DEGENERATE = {
    "duplicates": lambda X, codes: (X[np.arange(len(X)) % 3], codes),
    "constant": lambda X, codes: (np.full_like(X, 7.0), codes),
    "constant columns": lambda X, codes: (X * [0, 1, 0, 1, 0], codes),
    "single class": lambda X, codes: (X, np.zeros_like(codes)),
    "a class for each row": lambda X, codes: (X, np.arange(len(X))),
    "two rows": lambda X, codes: (X[:2], np.array([0, 1])),
    "two equal rows": lambda X, codes: (X[[0, 0]], np.array([0, 1])),
    "one row": lambda X, codes: (X[:1], codes[:1]),
    "subnormal": lambda X, codes: (X * 5e-324, codes),
    "integers": lambda X, codes: (np.rint(X * 9).astype(int), codes),
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("rank", [None, 2])
def test_degenerate_data_give_a_finite_map(case, rank):
    X, codes = DEGENERATE[case](*informative_third(40))
    components = learn_metric(X, codes, rank=rank, n_steps=15)
    assert components.shape == (5, 5 if rank is None else 2)
    assert np.isfinite(components).all()
    assert np.isfinite(X @ components).all()


def test_rank_is_at_most_the_features():
    X, codes = informative_third(30)
    assert learn_metric(X, codes, rank=9, n_steps=1).shape == (5, 5)


@pytest.mark.parametrize(
    ("n_features", "n_classes", "rank"), [(100, 2, 6), (100, 5, 10), (100, 50, 24), (4, 2, 4), (20, 50, 20)]
)
def test_default_rank(n_features, n_classes, rank):
    assert default_rank(n_features, n_classes) == rank


def test_fewer_rows_than_columns():
    """The start of the search is then found by another way; the class structure is found all the same."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    hidden = rng.normal(size=(90, 4)) + 4.0 * np.eye(3, 4)[y]
    X = hidden @ rng.normal(size=(4, 400)) + 0.1 * rng.normal(size=(90, 400))
    mapped = X @ learn_metric(X[:60], y[:60], random_state=0)
    distances = ((mapped[60:, None] - mapped[None, :60]) ** 2).sum(axis=2)
    assert (y[:60][distances.argmin(axis=1)] == y[60:]).mean() > 0.8


def test_a_value_that_stands_for_a_missing_one_leaves_the_map_finite():
    """A row of a rare class far from it, and beside one of another class: its share of similarity is huge."""
    X = np.random.default_rng(0).normal(size=(800, 4))
    codes = (X[:, 1] > 0).astype(int)
    codes[:2] = 2
    X[0, 0] = 999_999
    X[-1] = X[0]
    assert np.isfinite(learn_metric(X, codes)).all()
