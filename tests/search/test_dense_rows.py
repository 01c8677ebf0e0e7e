"""The density filter against the sorted radii themselves."""

import numpy as np
import pytest

from neighboragg.search._in_memory import dense_rows


def expected_mask(X, codes, share, k):
    keep = np.ones(len(X), dtype=bool)
    for c in np.unique(codes):
        members = np.flatnonzero(codes == c)
        between = np.linalg.norm(X[members, None] - X[members], axis=2)
        np.fill_diagonal(between, -1.0)  # itself, sorted first
        radius = np.sort(between, axis=1)[:, min(k, len(members) - 1)]
        drop = min(int(share * len(members)), len(members) - 1)
        keep[members[np.argsort(-radius, kind="stable")[:drop]]] = False
    return keep


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("k", [1, 10, 500])
def test_drops_the_rows_with_the_largest_radius(share, k):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(150, 3)), rng.choice(4, 150, p=[0.6, 0.3, 0.09, 0.01])
    keep = dense_rows(X, codes, share=share, n_neighbors=k)
    np.testing.assert_array_equal(keep, expected_mask(X, codes, share, k))
    np.testing.assert_array_equal(np.unique(codes[keep]), np.unique(codes))


def test_finds_the_outliers_of_each_class():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(100, 2)), np.repeat([0, 1], 50)
    X[[3, 60]] += 100.0
    assert np.flatnonzero(~dense_rows(X, codes, share=0.02)).tolist() == [3, 60]


def test_ties_drop_the_first_rows_of_equal_radius():
    assert dense_rows(np.zeros((4, 1)), np.zeros(4, dtype=int), share=0.5).tolist() == [
        False,
        False,
        True,
        True,
    ]


def test_a_class_with_one_row_keeps_it():
    assert dense_rows(np.zeros((2, 1)), np.array([0, 1]), share=0.9).all()
