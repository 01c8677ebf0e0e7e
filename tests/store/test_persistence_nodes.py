"""Trees whose nodes point where no fit would: refused on loading, before they can be followed."""

from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.neighbors import KDTree, KernelDensity, KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, SplineTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from neighboragg._store.estimators import _reachable, dump_estimator, load_estimator
from neighboragg.exceptions import FileFormatError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = (X[:, 0] + X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)


def malformed(estimator):
    """Return the reason for which a saved estimator is refused."""
    with pytest.raises(FileFormatError) as caught:
        load_estimator(dump_estimator(estimator))
    start, end = (
        "The saved estimator is malformed: ",
        ".\nHint: pass the estimator again instead of loading it.",
    )
    assert str(caught.value).startswith(start)
    assert str(caught.value).endswith(end)
    return str(caught.value)[len(start) : -len(end)]


def tree_with(classifier, *, state=None, **fields):
    """Return the tree of a fitted classifier with some numbers of its first nodes changed."""
    kind, arguments, old = classifier.tree_.__reduce__()
    new = {key: np.copy(value) if isinstance(value, np.ndarray) else value for key, value in old.items()}
    new.update(state or {})
    for name, (position, value) in fields.items():
        new["nodes"][name][position] = value
    tree = kind(*arguments)
    tree.__setstate__(new)
    return tree


@pytest.fixture
def classifier():
    return DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, Y)


OUTSIDE = "a tree has a node that points outside or back"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"left_child": (0, 10**9)}, OUTSIDE),
        ({"right_child": (0, 10**9)}, OUTSIDE),
        ({"right_child": (0, -5)}, OUTSIDE),
        ({"left_child": (1, 0)}, OUTSIDE),
        ({"left_child": (0, 0)}, OUTSIDE),
        ({"right_child": (0, 1)}, "a tree has a node with two parents"),
        ({"feature": (0, 4)}, "a tree reads a missing feature"),
        ({"feature": (0, -1)}, "a tree reads a missing feature"),
        ({"state": {"max_depth": 2}}, "a tree has another depth than it says"),
        ({"state": {"max_depth": 10**6}}, "a tree has another depth than it says"),
        ({"state": {"node_count": 0}}, "a tree has no nodes"),
        ({"state": {"node_count": 2}}, OUTSIDE),
    ],
)
def test_decision_trees(classifier, fields, reason):
    classifier.tree_ = tree_with(classifier, **fields)
    assert malformed(make_pipeline(StandardScaler().fit(X), classifier)) == reason


def test_leaves_may_say_anything(classifier):
    leaf = int(np.flatnonzero(classifier.tree_.children_left == -1)[0])
    expected = classifier.predict(X)
    classifier.tree_ = tree_with(classifier, feature=(leaf, 99))
    assert np.array_equal(load_estimator(dump_estimator(classifier)).predict(X), expected)


def test_tree_without_outputs(classifier):
    kind, _, state = classifier.tree_.__reduce__()
    tree = kind(4, np.array([0]), 1)
    tree.__setstate__(state | {"values": np.zeros((len(state["nodes"]), 1, 0))})
    classifier.tree_ = tree
    assert malformed(classifier) == "a tree has no outputs"


def test_tree_of_other_features_than_its_owners(classifier):
    classifier.n_features_in_ = 3
    assert malformed(classifier) == "a tree of DecisionTreeClassifier has other features"
    del classifier.n_features_in_
    assert malformed(classifier) == "a tree of DecisionTreeClassifier has other features"


@pytest.mark.parametrize(
    "ensemble", [RandomForestClassifier(2, max_depth=2), GradientBoostingClassifier(n_estimators=2)]
)
def test_ensemble_of_other_features_than_its_trees(ensemble):
    ensemble.fit(X, Y)
    ensemble.n_features_in_ = 3
    assert malformed(ensemble) == f"a tree of {type(ensemble).__name__} has other features"


@pytest.fixture
def boosting():
    return HistGradientBoostingClassifier(max_iter=2).fit(X, Y)


@pytest.mark.parametrize(
    ("field", "position", "value", "reason"),
    [
        ("left", 0, 2**32 - 1, OUTSIDE),
        ("right", 0, 2**20, OUTSIDE),
        ("left", 1, 0, OUTSIDE),
        ("right", 0, 1, "a tree has a node with two parents"),
        ("feature_idx", 0, -1, "a tree reads a missing feature"),
        ("feature_idx", 0, 4, "a tree of HistGradientBoostingClassifier reads a missing feature"),
        ("is_categorical", 0, 1, "a tree of HistGradientBoostingClassifier reads categories of a number"),
    ],
)
def test_histogram_trees(boosting, field, position, value, reason):
    boosting._predictors[1][0].nodes[field][position] = value
    assert malformed(boosting) == reason


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("raw_left_cat_bitsets", np.zeros((9, 7), dtype=np.uint32), "a tree has no categories"),
        ("binned_left_cat_bitsets", None, "a tree has no categories"),
    ],
)
def test_bit_sets(boosting, attribute, value, reason):
    setattr(boosting._predictors[0][0], attribute, value)
    assert malformed(boosting) == reason


def test_histogram_tree_outside_of_an_ensemble(boosting):
    holder = BaseEstimator()
    holder.tree = boosting._predictors[0][0]
    holder.tree.nodes = holder.tree.nodes[:0]
    with pytest.raises(FileFormatError, match="malformed: a tree has no nodes"):
        load_estimator(dump_estimator(holder), trusted=["sklearn.base.BaseEstimator"])


def test_histogram_boosting_without_a_width(boosting):
    del boosting.n_features_in_
    assert malformed(boosting) == "HistGradientBoostingClassifier has no number of features"


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
def test_neighbor_indexes_are_built_anew(algorithm):
    classifier = KNeighborsClassifier(3, algorithm=algorithm, leaf_size=5).fit(X, Y)
    expected = classifier.kneighbors(X + 0.1)
    state = classifier._tree.__getstate__()
    positions, nodes = state[1].copy(), state[2].copy()
    positions[:] = 10**12
    nodes["idx_end"] = 10**12
    nodes["is_leaf"] = 0
    forged = type(classifier._tree).__new__(type(classifier._tree))
    forged.__setstate__((state[0], positions, nodes, *state[3:]))
    classifier._tree = forged
    found = load_estimator(dump_estimator(classifier)).kneighbors(X + 0.1)
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1])


def test_weights_of_an_index():
    density = KernelDensity(bandwidth=1.0).fit(X, sample_weight=np.arange(1.0, 201.0))
    loaded = load_estimator(dump_estimator(density))
    assert np.allclose(loaded.score_samples(X), density.score_samples(X))
    state = density.tree_.__getstate__()
    density.tree_.__setstate__((*state[:-1], np.ones(3)))
    assert malformed(density) == "a neighbor index has other weights than rows"


def test_index_without_a_metric():
    classifier = KNeighborsClassifier(algorithm="kd_tree").fit(X, Y)
    state = classifier._tree.__getstate__()
    classifier._tree.__setstate__((*state[:-2], None, None))
    with pytest.raises(FileFormatError, match="The saved estimator cannot be restored"):
        load_estimator(dump_estimator(classifier))


def test_every_place_is_reached():
    found = object()
    holder = BaseEstimator()
    array = np.empty((1, 1), dtype=object)
    array[0, 0] = {"key": [(holder,)]}
    holder.itself = holder
    holder.call = partial(holder.get_params, deep=FunctionTransformer(found))
    assert any(item is found for item in _reachable(array))


def test_code_is_not_entered():
    items = list(_reachable([np.mean, len, test_code_is_not_entered, np, BaseEstimator, "text", 1.5, None]))
    assert len(items) == 1


NEIGHBORS = KNeighborsClassifier(2, algorithm="brute").fit(X, Y)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"_y": Y[:-1]}, "KNeighborsClassifier has other labels than rows"),
        ({"_y": Y + 10**6}, "KNeighborsClassifier has labels of no class"),
        ({"_y": Y - 1}, "KNeighborsClassifier has labels of no class"),
        ({"_y": Y * 1.0}, "KNeighborsClassifier has labels of no class"),
        ({"classes_": np.array([0])}, "KNeighborsClassifier has labels of no class"),
        ({"_fit_X": X[:-1]}, "KNeighborsClassifier has other rows than it says"),
        ({"n_samples_fit_": 10**9}, "KNeighborsClassifier has other rows than it says"),
        ({"_fit_X": X[:, :2].copy()}, "KNeighborsClassifier has other features than it says"),
        ({"_fit_X": X.astype(str)}, "KNeighborsClassifier has rows that are not numbers"),
        ({"_tree": KDTree(X[:9])}, "KNeighborsClassifier has an index of other rows"),
    ],
)
def test_neighbors_whose_arrays_do_not_match(changes, reason):
    forged = deepcopy(NEIGHBORS)
    vars(forged).update(changes)
    assert malformed(forged) == reason


def test_several_outputs_of_neighbors_are_right():
    both = np.column_stack([Y, Y > 0])
    loaded = load_estimator(dump_estimator(KNeighborsClassifier(2).fit(X, both)))
    assert loaded.predict(X).shape == both.shape


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_rows_with_positions_outside(kind):
    rows = kind(X)
    forged = KNeighborsClassifier(2).fit(rows, Y)
    forged._fit_X.indices[3] = 10**8
    with pytest.raises(FileFormatError, match="cannot be restored"):
        load_estimator(dump_estimator(forged))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"_n_support": np.array([10**6, 1, 1], dtype=np.int32)},
            "an SVC has other support vectors than it says",
        ),
        ({"_n_support": np.array([1, 1], dtype=np.int32)}, "an SVC has other classes than it says"),
        ({"support_": np.arange(3, dtype=np.int32)}, "an SVC has other support vectors than it says"),
        ({"support_vectors_": np.zeros((2, 4))}, "an SVC has other support vectors than it says"),
        ({"_dual_coef_": np.zeros((1, 1))}, "an SVC has other weights than support vectors"),
        ({"_intercept_": np.zeros(1)}, "an SVC has other offsets than pairs of classes"),
        ({"_probA": np.zeros(1)}, "an SVC has other offsets than pairs of classes"),
        ({"shape_fit_": (200, 999)}, "an SVC has other features than it says"),
    ],
)
def test_support_vectors_that_do_not_match(changes, reason):
    forged = SVC().fit(X, Y)
    vars(forged).update(changes)
    assert malformed(forged) == reason


def test_categories_of_a_number():
    boosting = HistGradientBoostingClassifier(max_iter=1).fit(X, Y)
    for trees in boosting._predictors:
        for tree in trees:
            tree.nodes["is_categorical"] = 1
            tree.nodes["bitset_idx"] = 0
            tree.raw_left_cat_bitsets = tree.binned_left_cat_bitsets = np.zeros((1, 8), dtype=np.uint32)
    assert malformed(boosting) == "a tree of HistGradientBoostingClassifier reads categories of a number"


def test_a_spline_without_enough_knots():
    forged = SplineTransformer().fit(X)
    forged.bsplines_[0].t = forged.bsplines_[0].t[:3]
    with pytest.raises(FileFormatError, match="cannot be restored"):
        load_estimator(dump_estimator(forged))
