"""Every baseline on data that breaks naive implementations, and saved to a file and back."""

import numpy as np
import pytest
from sklearn.base import clone

import neighboragg
from neighboragg.methods import (
    Mahalanobis,
    NeighborGCN,
    TemperatureScaling,
    TopLabelCalibration,
    TrueClassProbability,
)

BASELINES = [
    Mahalanobis(),
    NeighborGCN(),
    NeighborGCN(n_hops=3),
    TemperatureScaling(),
    TopLabelCalibration(),
    TopLabelCalibration(points_per_bin=2),
    TrueClassProbability(max_epochs=20),
]


def random_case(n, n_val, n_classes, seed, labels=None):
    rng = np.random.default_rng(seed)
    classes = np.arange(n_classes) if labels is None else np.array(labels)
    y = np.concatenate([classes, rng.choice(classes, n)])
    X = rng.normal(size=(len(y), 3))
    case = {"X": X, "y": y, "proba_val": rng.dirichlet(np.ones(n_classes), len(y))}
    if n_val:
        case["X_val"], case["y_val"] = rng.normal(size=(n_val, 3)), rng.choice(classes, n_val)
        case["proba_val"] = rng.dirichlet(np.ones(n_classes), n_val)
    return case


def with_rows(case, X):
    return {**case, "X": X}


ORDINARY = random_case(40, 30, 3, seed=0, labels=["ant", "bee", "cat"])
SHARED = random_case(40, 0, 3, seed=1)
CASES = {
    "ordinary": ORDINARY,
    "shared": SHARED,
    "one class": random_case(10, 8, 1, seed=2),
    "one class, shared": random_case(10, 0, 1, seed=3),
    "one row": {"X": [[1.0, 2.0, 3.0]], "y": [7], "proba_val": [[1.0]]},
    "one row of each class": random_case(0, 5, 4, seed=4),
    "one row of each class, shared": random_case(0, 0, 4, seed=5),
    "class missing in validation": {
        **ORDINARY,
        "y_val": np.where(np.array(ORDINARY["y_val"]) == "cat", "ant", ORDINARY["y_val"]),
    },
    "class missing in training": {**SHARED, "y": SHARED["y"] % 2, "classes": [0, 1, 2]},
    "one validation row": random_case(20, 1, 3, seed=6),
    "constant features": with_rows(SHARED, np.full((43, 3), 0.1)),
    "duplicated rows": with_rows(SHARED, np.repeat(SHARED["X"][:1], 43, axis=0) * (SHARED["y"][:, None] > 0)),
    "certain probabilities": {**SHARED, "proba_val": np.eye(3)[np.argsort(SHARED["proba_val"])[:, 0]]},
    "equal probabilities": {**SHARED, "proba_val": np.full((43, 3), 1 / 3)},
    "single precision": with_rows(SHARED, SHARED["X"].astype(np.float32)),
    "more classes than rows a bin": random_case(60, 40, 20, seed=7),
}


def queries(case):
    rng = np.random.default_rng(9)
    rows = np.asarray(case["X"])[:4]
    X = np.concatenate([rows, rng.normal(size=(4, rows.shape[1])), 1e6 * np.ones((1, rows.shape[1]))])
    n_classes = np.shape(case["proba_val"])[1]
    proba = rng.dirichlet(np.ones(n_classes), len(X))
    proba[0] = np.eye(n_classes)[0]
    return X, proba


def ids(method):
    return str(method).replace("\n", "")


@pytest.mark.full(keep=60)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("method", BASELINES, ids=ids)
def test_trust_is_finite_and_survives_a_file(method, case, tmp_path):
    fitted = clone(method).fit(**case)
    X, proba = queries(case)
    trust = fitted.predict_trust(X, proba)
    assert trust.shape == proba.shape
    assert np.isfinite(trust).all()
    assert (np.abs(trust) <= 1 + 1e-12).all()
    fitted.save(tmp_path / "method.nagg")
    loaded = neighboragg.load(tmp_path / "method.nagg")
    assert type(loaded) is type(method)
    assert ids(loaded) == ids(method)
    np.testing.assert_array_equal(loaded.classes_, fitted.classes_)
    np.testing.assert_array_equal(loaded.predict_trust(X, proba), trust)


@pytest.mark.parametrize("method", BASELINES, ids=ids)
def test_neither_the_order_of_queries_nor_their_company_matters(method):
    fitted = clone(method).fit(**SHARED)
    X, proba = queries(SHARED)
    trust = fitted.predict_trust(X, proba)
    np.testing.assert_allclose(fitted.predict_trust(X[::-1], proba[::-1])[::-1], trust, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fitted.predict_trust(X[2:3], proba[2:3]), trust[2:3], rtol=1e-9, atol=1e-12)
    assert fitted.predict_trust(X[:0], proba[:0]).shape == (0, 3)
