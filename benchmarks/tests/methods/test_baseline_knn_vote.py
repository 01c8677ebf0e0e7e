"""Votes of the nearest rows against scikit-learn's classifier."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.methods import KNNVote
from neighboragg.exceptions import InvalidParameterError


def trust_of(method, X, y, queries, classes=None):
    n_classes = len(np.unique(y)) if classes is None else len(classes)
    method.fit(X, y, proba_val=np.full((len(X), n_classes), 1 / n_classes), classes=classes)
    return method.predict_trust(queries, np.full((len(queries), n_classes), 1 / n_classes))


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("n_neighbors", [1, 7])
def test_votes_are_those_of_scikit_learn(weights, metric, n_neighbors):
    X, y = load_iris(return_X_y=True)
    X = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape)  # no ties for the last vote
    trust = trust_of(
        KNNVote(n_neighbors=n_neighbors, weights=weights, metric=metric), X[::2], y[::2], X[1::2]
    )
    theirs = KNeighborsClassifier(n_neighbors, weights=weights, metric=metric).fit(X[::2], y[::2])
    np.testing.assert_allclose(trust, theirs.predict_proba(X[1::2]), atol=1e-6)


def test_only_duplicates_vote_where_there_are_any():
    X = [[0.0], [0.0], [0.0], [1e-150]]
    trust = trust_of(KNNVote(n_neighbors=4, weights="distance"), X, [0, 0, 1, 1], [[0.0], [2e-150], [1.0]])
    np.testing.assert_allclose(trust[0], [2 / 3, 1 / 3])
    np.testing.assert_allclose(trust.sum(axis=1), 1.0)


def test_with_fewer_rows_than_votes_all_vote():
    trust = trust_of(KNNVote(n_neighbors=10), [[0.0], [1.0], [9.0]], ["a", "a", "b"], [[100.0]])
    np.testing.assert_allclose(trust, [[2 / 3, 1 / 3]])


def test_a_class_without_rows_gets_no_vote():
    trust = trust_of(KNNVote(), [[0.0], [1.0]], ["a", "c"], [[0.2]], classes=["a", "b", "c"])
    np.testing.assert_allclose(trust, [[0.5, 0.0, 0.5]])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_neighbors": 0}, "The 'n_neighbors' parameter of KNNVote must be an int >= 1. Got 0 instead."),
        (
            {"weights": "near"},
            "The 'weights' parameter of KNNVote must be one of 'distance', 'uniform'. Got 'near' instead.",
        ),
    ],
)
def test_parameters_are_checked(params, message):
    with pytest.raises(InvalidParameterError) as error:
        trust_of(KNNVote(**params), [[0.0], [1.0]], [0, 1], [[0.0]])
    assert str(error.value) == message


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("k", [1, 3, 12, 50])
def test_rows_of_fit_do_not_vote_for_themselves(weights, k):
    rng = np.random.default_rng(0)
    X, y, even = rng.normal(size=(12, 2)), np.arange(12) % 3, np.full((12, 3), 1 / 3)
    method = KNNVote(n_neighbors=k, weights=weights).fit(X, y, proba_val=even)
    found = method.predict_trust(X, even, exclude=np.arange(12))
    for row in range(12):
        others = np.arange(12) != row
        alone = KNNVote(n_neighbors=k, weights=weights).fit(
            X[others], y[others], proba_val=even[others], classes=[0, 1, 2]
        )
        np.testing.assert_allclose(found[row], alone.predict_trust(X[row : row + 1], even[:1])[0], rtol=1e-12)
    # Rows after the training rows are validation rows, which do not vote.
    plain = method.predict_trust(X, even)
    np.testing.assert_array_equal(method.predict_trust(X, even, exclude=np.full(12, 15)), plain)


def test_a_row_without_any_other_has_no_votes():
    method = KNNVote().fit([[0.0]], [0], proba_val=[[0.5, 0.5]], classes=[0, 1])
    trust = method.predict_trust([[0.0]], [[0.5, 0.5]], exclude=np.array([0]))
    np.testing.assert_array_equal(trust, [[0.5, 0.5]])
