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

pytest.importorskip("faiss", reason="the extra `approximate` is not installed")

KINDS = ("hnsw", "ivf")


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


@pytest.fixture(scope="module", params=KINDS)
def method(request):
    return fitted(algorithm=request.param, recall=0.95)


@pytest.mark.full
def test_every_metric_has_indexes_that_say_what_they_find(method):
    assert list(method.indexes_) == ["features", "learned metric"]
    for index in method.indexes_.values():
        assert index.algorithm_.tolist() == [method.algorithm] * 2
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
    left_out = method.predict_trust(X[rows], proba, left_out=rows)
    assert (left_out != method.predict_trust(X[rows], proba)).any()


def test_clone_and_parameters():
    method = NeighborAgg(algorithm="ivf", recall=0.9)
    assert clone(method).get_params() == method.get_params()
    assert NeighborAgg().algorithm == "exact"


def test_auto_is_exact_for_so_few_rows():
    method = fitted(algorithm="auto", learned_metric=False)
    assert method.indexes_["features"].algorithm_.tolist() == ["exact"] * 2


def test_through_a_trusted_classifier_and_a_grid():
    model = TrustedClassifier(
        LogisticRegression(), NeighborAgg(n_neighbors=5, learned_metric=False, effort="fast"), random_state=0
    )
    grid = GridSearchCV(model, {"method__algorithm": ["exact", "ivf"], "method__recall": [0.9]}, cv=2)
    grid.fit(X[:, 1:], y)
    np.testing.assert_array_equal(np.isfinite(grid.cv_results_["mean_test_score"]), True)
    assert grid.best_estimator_.method.algorithm == grid.best_params_["method__algorithm"]


def test_not_with_rows_in_blocks():
    with pytest.raises(InvalidParameterError) as caught:
        fitted(algorithm="hnsw", memory="1 GB")
    assert str(caught.value) == (
        "The 'algorithm' parameter of NeighborAgg is for reference rows in memory, so not with `memory`, whose search "
        "is exact. Got 'hnsw'.\nHint: leave one of the two out."
    )
