"""Trust Score against brute force, with ties, duplicates, empty classes and both filters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods import TrustScore
from sizes import examples


def brute_force(X, y, queries, n_classes, rank=2):
    """s / (1 + s) with s the published ratio: distance to the nearest other class over that to the class.

    The distance to a class is that to its row of this rank, or to its farthest if it has fewer.
    """
    trust = np.empty((len(queries), n_classes))
    for i, query in enumerate(queries):
        nearest = [
            [np.inf, *sorted(float(np.linalg.norm(row - query)) for row in X[y == c])[:rank]][-1]
            for c in range(n_classes)
        ]
        for c in range(n_classes):
            own, other = nearest[c], min((d for j, d in enumerate(nearest) if j != c), default=np.inf)
            if np.isinf(own):
                trust[i, c] = 0.0
            elif np.isinf(other):
                trust[i, c] = 1.0
            elif own == 0:
                trust[i, c] = 1.0 if other > 0 else 0.5
            else:
                ratio = other / own
                trust[i, c] = ratio / (1 + ratio)
    return trust


def fit(method, X, y, n_classes):
    return method.fit(
        X, y, proba_val=np.full((len(X), n_classes), 1 / n_classes), classes=np.arange(n_classes)
    )


def even(queries, n_classes):
    return np.full((len(queries), n_classes), 1 / n_classes)


@examples(60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.integers(1, 4),
    st.sampled_from(["random", "lattice", "constant"]),
    st.sampled_from([1, 2, 7]),
)
def test_agrees_with_brute_force(seed, n, n_classes, kind, rank):
    rng = np.random.default_rng(seed)
    X = {
        "random": rng.normal(size=(n, 2)),
        "lattice": rng.integers(0, 3, (n, 2)) * 1.0,
        "constant": np.ones((n, 2)),
    }[kind]
    y = rng.integers(0, n_classes, n)
    queries = np.concatenate([X[:5], rng.integers(0, 3, (5, 2)) * 1.0])
    method = fit(TrustScore(n_neighbors=rank), X, y, n_classes)
    found = method.predict_trust(queries, even(queries, n_classes))
    np.testing.assert_allclose(found, brute_force(X, y, queries, n_classes, rank), rtol=1e-12, atol=0)


def test_the_second_nearest_row_by_default_and_the_farthest_of_a_class_with_fewer():
    X, y = [[0.0], [1.0], [4.0], [9.0]], [0, 0, 0, 1]
    trust = {
        rank: fit(TrustScore(**params), np.array(X), np.array(y), 2).predict_trust([[3.0]], [[0.5, 0.5]])[
            0, 0
        ]
        for rank, params in {1: {"n_neighbors": 1}, 2: {}, 3: {"n_neighbors": 3}}.items()
    }
    # Distances to class 0: 1, 2, 3; to the only row of class 1: 6.
    assert trust == pytest.approx({1: 6 / 7, 2: 6 / 8, 3: 6 / 9})


@pytest.mark.parametrize("filtering", ["none", "density"])
def test_rows_of_fit_leave_themselves_out(filtering):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
    method = fit(TrustScore(n_neighbors=1, filtering=filtering, alpha=0.2), X, y, 2)
    kept = method.reference_
    found = method.predict_trust(X, even(X, 2), exclude=np.arange(30))
    for row in range(30):
        others = kept[kept != row]
        expected = brute_force(X[others], y[others], X[row : row + 1], 2, 1)
        np.testing.assert_allclose(found[row : row + 1], expected, rtol=1e-12)
    # Rows after the training rows are validation rows, which are not neighbors.
    plain = method.predict_trust(X, even(X, 2))
    np.testing.assert_array_equal(method.predict_trust(X, even(X, 2), exclude=np.full(30, 35)), plain)


def kept_by_density(X, y, share, k):
    keep = np.ones(len(X), dtype=bool)
    for c in np.unique(y):
        members = np.flatnonzero(y == c)
        radius = [
            sorted(np.linalg.norm(X[i] - X[j]) for j in members if j != i)[: min(k, len(members) - 1)][-1:]
            for i in members
        ]
        n_dropped = min(int(share * len(members)), len(members) - 1)
        order = sorted(range(len(members)), key=lambda i: (-radius[i][0] if radius[i] else 0.0, i))
        keep[members[order[:n_dropped]]] = False
    return keep


def kept_by_agreement(X, y, share, k):
    agreement = []
    for i in range(len(X)):
        others = np.array([j for j in range(len(X)) if j != i])
        distances = np.linalg.norm(X[others] - X[i], axis=1)
        radius = np.sort(distances)[min(k, len(others)) - 1]
        # All rows that tie at the radius count, but no class for more than k.
        counts = np.minimum(np.bincount(y[others[distances <= radius]], minlength=y.max() + 1), k)
        agreement.append(counts[y[i]] / counts.sum())
    keep = np.ones(len(X), dtype=bool)
    keep[np.argsort(agreement, kind="stable")[: int(share * len(X))]] = False
    return keep


FILTERS = {"density": kept_by_density, "uncertainty": kept_by_agreement}


@pytest.mark.parametrize("lattice", [False, True])
@pytest.mark.parametrize("k", [1, 5, 100])
@pytest.mark.parametrize("filtering", FILTERS)
def test_filters_agree_with_brute_force(filtering, k, lattice):
    rng = np.random.default_rng(k)
    X = rng.integers(0, 4, (60, 2)) * 1.0 if lattice else rng.normal(size=(60, 2))
    y = rng.choice(3, 60, p=[0.6, 0.38, 0.02])
    method = fit(TrustScore(filtering=filtering, alpha=0.25, filter_neighbors=k), X, y, 3)
    keep = FILTERS[filtering](X, y, 0.25, k)
    np.testing.assert_array_equal(method.reference_, np.flatnonzero(keep))
    queries = rng.normal(size=(20, 2))
    np.testing.assert_allclose(
        method.predict_trust(queries, even(queries, 3)), brute_force(X[keep], y[keep], queries, 3), rtol=1e-12
    )


@pytest.mark.parametrize("filtering", ["none", "density", "uncertainty"])
def test_nothing_is_dropped_by_default(filtering):
    X = np.random.default_rng(0).normal(size=(20, 2))
    assert len(fit(TrustScore(filtering=filtering), X, np.arange(20) % 2, 2).reference_) == 20


@pytest.mark.parametrize("filtering", ["density", "uncertainty"])
def test_filters_with_a_single_row(filtering):
    method = fit(TrustScore(filtering=filtering, alpha=0.5), np.zeros((1, 2)), np.array([1]), 2)
    np.testing.assert_array_equal(method.predict_trust([[1.0, 0.0]], [[0.5, 0.5]]), [[0.0, 1.0]])


def test_uncertainty_drops_the_wrong_labels():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = rng.normal(size=(100, 2)) + 8 * y[:, None]
    wrong = [3, 40, 77]
    y[wrong] = 1 - y[wrong]
    method = fit(TrustScore(filtering="uncertainty", alpha=0.03), X, y, 2)
    assert sorted(set(range(100)) - set(method.reference_.tolist())) == wrong


@pytest.mark.parametrize(
    ("params", "rule"),
    [
        ({"filtering": "knn"}, "one of 'density', 'none', 'uncertainty'"),
        ({"filtering": None}, "one of 'density', 'none', 'uncertainty'"),
        ({"alpha": 1.0}, "a number in [0, 1)"),
        ({"alpha": -0.1}, "a number in [0, 1)"),
        ({"n_neighbors": 0}, "an int >= 1"),
        ({"filter_neighbors": 0}, "an int >= 1"),
    ],
)
def test_parameters(params, rule):
    ((name, value),) = params.items()
    with pytest.raises(InvalidParameterError) as caught:
        fit(TrustScore(**params), np.zeros((2, 1)), np.array([0, 1]), 2)
    assert str(caught.value) == f"The {name!r} parameter of TrustScore must be {rule}. Got {value!r} instead."
