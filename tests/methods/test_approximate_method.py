"""NeighborAgg with an approximate search: trust next to the exact one, and the contract of any setting."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV

import neighboragg
from neighboragg import NeighborAgg, TrustedClassifier
from neighboragg.exceptions import InvalidParameterError
from neighboragg.search import Approximate, Exact

pytest.importorskip("faiss", reason="the extra `approximate` is not installed")


def make_rows(n, seed):
    X = np.random.default_rng(seed).uniform(-2, 2, size=(n, 4))
    return X, (np.floor(X[:, 0]) + np.floor(X[:, 1])).astype(int) % 2


X, y = make_rows(10_000, 0)
X_VAL, Y_VAL = make_rows(400, 1)
X_TEST, Y_TEST = make_rows(1000, 2)
MODEL = LogisticRegression().fit(X[:, 1:], y)
P_VAL, P_TEST = MODEL.predict_proba(X_VAL[:, 1:]), MODEL.predict_proba(X_TEST[:, 1:])


def fitted(**params):
    method = NeighborAgg(n_neighbors=5, effort="fast", **params)
    return method.fit(X, y, X_val=X_VAL, y_val=Y_VAL, proba_val=P_VAL)


@pytest.fixture(scope="module")
def method():
    return fitted(search=Approximate(0.95, always=True))


@pytest.mark.full
def test_every_metric_has_indexes_that_say_what_they_find(method):
    assert list(method.neighborhoods_.indexes) == ["features", "learned metric"]
    for index in method.neighborhoods_.indexes.values():
        assert not index.is_exact_.any()
        assert (index.recall_interval_[:, 0] >= 0.95).all()


@pytest.mark.full(keep=1)
def test_trust_is_next_to_that_of_the_exact_search(method):
    exact, found = fitted().score_samples(X_TEST, P_TEST), method.score_samples(X_TEST, P_TEST)
    assert (exact != found).any()  # otherwise nothing is approximate here
    assert np.abs(exact - found).mean() < 0.01
    correct = P_TEST.argmax(axis=1) == Y_TEST
    assert abs(roc_auc_score(correct, exact) - roc_auc_score(correct, found)) < 0.01


@pytest.mark.full(keep=1)
def test_saved_and_loaded_it_says_the_same(method, tmp_path):
    method.save(tmp_path / "method.nagg")
    loaded = neighboragg.load(tmp_path / "method.nagg")
    assert loaded.predict_trust(X_TEST, P_TEST).tobytes() == method.predict_trust(X_TEST, P_TEST).tobytes()


def test_rows_of_fit_leave_themselves_out(method):
    rows = np.arange(50)
    proba = MODEL.predict_proba(X[rows, 1:])
    exclude = method.predict_trust(X[rows], proba, exclude=rows)
    assert (exclude != method.predict_trust(X[rows], proba)).any()


def test_clone_and_parameters():
    method = NeighborAgg(search=Approximate(0.9))
    assert repr(clone(method)) == repr(method) == "NeighborAgg(search=Approximate(recall=0.9))"
    assert method.set_params(search__recall=0.8).search.recall == 0.8


def test_the_search_is_exact_for_so_few_rows():
    method = fitted(search=Approximate(), learned_metric=False)
    assert method.neighborhoods_.indexes["features"].is_exact_.all()


def test_through_a_trusted_classifier_and_a_grid():
    model = TrustedClassifier(
        LogisticRegression(), NeighborAgg(n_neighbors=5, learned_metric=False, effort="fast"), random_state=0
    )
    searches = [Exact(), Approximate(0.9, always=True)]
    grid = GridSearchCV(model, {"method__search": searches}, cv=2)
    grid.fit(X[:, 1:], y)
    np.testing.assert_array_equal(np.isfinite(grid.cv_results_["mean_test_score"]), True)
    assert repr(grid.best_estimator_.method.search) == repr(grid.best_params_["method__search"])


@pytest.mark.parametrize("search", ["hnsw", Approximate])
def test_other_searches_are_refused(search):
    with pytest.raises(InvalidParameterError) as caught:
        fitted(search=search)
    assert str(caught.value) == (
        "The 'search' parameter of NeighborAgg must be None or one of Exact(), Approximate(), Streamed() "
        f"from neighboragg.search. Got {search!r} instead."
    )
