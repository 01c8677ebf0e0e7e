"""What compiled code of scikit-learn follows without looking, looked at once after loading.

A decision tree is an array of nodes that point at each other by position, and at columns of X. The
file decides these numbers, and prediction neither checks nor survives a wrong one.
"""

import gc
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from types import MethodType, ModuleType
from typing import Any

import numpy as np
from scipy import sparse
from scipy.interpolate import BSpline
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.svm import SVC, NuSVC

from neighboragg._typing import BoolArray, IntArray
from neighboragg.persistence._file import MalformedError
from neighboragg.persistence._trusted import BALL_TREE, DECISION_TREE, HISTOGRAM_TREE, KD_TREE, SPLINE

# These check X once, at the top, and their trees not again.
_ENSEMBLES = (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
_HISTOGRAM_ENSEMBLES = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
_ATOMS = (str, bytes, int, float, complex, type(None), type, ModuleType)
_BITSET_WORDS = 8  # 256 categories in words of 32 bits


def secure_nodes(estimator: Any) -> None:
    """Check every decision tree within a loaded estimator, and build its neighbor indexes anew."""
    for item in _reachable(estimator):
        if (secure := _SECURE.get(_type_name(item))) is not None:
            secure(item)
        elif isinstance(item, _ENSEMBLES):
            _check_widths(item, "estimators_")
        elif isinstance(item, _HISTOGRAM_ENSEMBLES):
            _check_widths(item, "_predictors")
        elif isinstance(item, (SVC, NuSVC)):
            _check_support_vectors(item)
        elif {"_fit_X", "_fit_method"} <= _attributes(item).keys():
            _check_neighbors(item)
        elif sparse.issparse(item):
            item.check_format(full_check=True)
        elif _type_name(_attributes(item).get("tree_")) == DECISION_TREE:
            _check_widths(item, "tree_")


def _reachable(root: Any) -> Iterator[Any]:
    """Yield each object that `root` holds, however deep, but no code."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        item = stack.pop()
        if id(item) in seen or isinstance(item, _ATOMS):
            continue
        if inspect.isroutine(item) and not isinstance(item, (MethodType, partial)):
            continue
        seen.add(id(item))
        yield item
        if isinstance(item, np.ndarray) and item.dtype == object:
            stack.extend(item.reshape(-1).tolist())  # unknown to the garbage collector
        stack.extend(gc.get_referents(item))


def _type_name(item: Any) -> str:
    return f"{type(item).__module__}.{type(item).__qualname__}"


def _attributes(item: Any) -> dict[str, Any]:
    return getattr(item, "__dict__", {})


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise MalformedError(message)


def _check_widths(owner: Any, attribute: str) -> None:
    """Raise unless the trees of `owner` read no more columns than `owner` lets in."""
    width = _attributes(owner).get("n_features_in_")
    for item in _reachable(_attributes(owner).get(attribute)):
        name = _type_name(item)
        if name == DECISION_TREE:
            _require(item.n_features == width, f"a tree of {type(owner).__name__} has other features")
        elif name == HISTOGRAM_TREE:
            _require(isinstance(width, int), f"{type(owner).__name__} has no number of features")
            nodes = _attributes(item)["nodes"]
            _require(
                nodes["feature_idx"].max() < width,
                f"a tree of {type(owner).__name__} reads a missing feature",
            )
            asked = nodes["feature_idx"][(nodes["is_leaf"] == 0) & (nodes["is_categorical"] != 0)]
            if len(asked):
                known = np.asarray(_attributes(owner)["_bin_mapper"].is_categorical_)
                _require(
                    known.shape == (width,) and known.astype(bool)[asked].all(),
                    f"a tree of {type(owner).__name__} reads categories of a number",
                )


def _check_decision_tree(tree: Any) -> None:
    """Raise unless the nodes of a tree are one tree, within its features and its depth."""
    n_nodes = tree.node_count
    # First: the other attributes are read through these numbers.
    _require(1 <= n_nodes <= tree.capacity, "a tree has no nodes")
    _require(tree.n_outputs >= 1 and tree.n_classes.min() >= 1, "a tree has no outputs")
    left, right = tree.children_left, tree.children_right
    inner = left != -1
    depth = _check_topology(left, right, inner)
    _require(depth <= tree.max_depth <= n_nodes, "a tree has another depth than it says")
    columns = tree.feature[inner]
    _require(((columns >= 0) & (columns < tree.n_features)).all(), "a tree reads a missing feature")


def _check_histogram_tree(tree: Any) -> None:
    """Raise unless the nodes of a tree of histogram boosting are one tree, within its bit sets."""
    attributes = _attributes(tree)
    nodes: Any = attributes.get("nodes")
    _require(isinstance(nodes, np.ndarray) and nodes.ndim == 1 and len(nodes), "a tree has no nodes")
    inner = nodes["is_leaf"] == 0
    _check_topology(nodes["left"].astype(np.int64), nodes["right"].astype(np.int64), inner)
    _require((nodes["feature_idx"] >= 0).all(), "a tree reads a missing feature")
    sets = nodes["bitset_idx"][inner & (nodes["is_categorical"] != 0)]
    for name in ("raw_left_cat_bitsets", "binned_left_cat_bitsets"):
        bits: Any = attributes.get(name)
        _require(
            isinstance(bits, np.ndarray) and bits.ndim == 2 and bits.shape[1] == _BITSET_WORDS,
            "a tree has no categories",
        )
        _require((sets < len(bits)).all(), "a tree reads missing categories")


def _check_topology(left: IntArray, right: IntArray, inner: BoolArray) -> int:
    """Return the depth of a tree whose inner nodes point only forward, and at no node twice."""
    parents = np.flatnonzero(inner)
    children = np.concatenate([left[parents], right[parents]])
    forward = (children > np.tile(parents, 2)) & (children < len(inner))
    _require(forward.all(), "a tree has a node that points outside or back")
    _require(len(np.unique(children)) == len(children), "a tree has a node with two parents")
    depth, level = 0, np.flatnonzero(inner[:1])
    while len(level):
        level = np.concatenate([left[level], right[level]])
        level = level[inner[level]]
        depth += 1
    return depth


def _rebuild(index: Any) -> None:
    """Build a k-d or ball tree anew from its rows: the same index, whatever its nodes said."""
    rows, *_, metric, weights = state = index.__getstate__()
    _require(weights is None or len(weights) == len(rows), "a neighbor index has other weights than rows")
    index.__init__(rows, leaf_size=state[4], metric=metric, sample_weight=weights)


def _rebuild_spline(spline: Any) -> None:
    """Make a spline anew from its knots, which checks that there are as many as it needs."""
    made = BSpline(spline.t, spline.c, spline.k, spline.extrapolate, spline.axis)
    vars(spline).update(vars(made))


def _check_neighbors(owner: Any) -> None:
    """Raise unless the rows, the labels and the index of a neighbor search are of each other."""
    has = _attributes(owner)
    rows, name = has["_fit_X"], type(owner).__name__
    if rows is None:
        return
    n = rows.shape[0]
    _require(rows.ndim == 2 and has.get("n_samples_fit_") == n, f"{name} has other rows than it says")
    precomputed = has.get("metric") == "precomputed" or has.get("effective_metric_") == "precomputed"
    _require(
        precomputed or has.get("n_features_in_") == rows.shape[1], f"{name} has other features than it says"
    )
    _require(not sparse.issparse(rows) or rows.format == "csr", f"{name} has rows of another kind")
    _require(sparse.issparse(rows) or rows.dtype.kind in "fiub", f"{name} has rows that are not numbers")
    if has.get("_tree") is not None:
        _require(has["_tree"].data.shape == rows.shape, f"{name} has an index of other rows")
    if "_y" in has:
        labels = np.asarray(has["_y"])
        _require(len(labels) == n, f"{name} has other labels than rows")
        if "classes_" in has:
            classes = has["classes_"] if has.get("outputs_2d_") else [has["classes_"]]
            columns = labels.reshape(n, -1).T
            _require(
                labels.dtype.kind in "iu" and len(classes) == len(columns), f"{name} has labels of no class"
            )
            for known, column in zip(classes, columns, strict=True):
                _require(((column >= 0) & (column < len(known))).all(), f"{name} has labels of no class")


def _check_support_vectors(owner: Any) -> None:
    """Raise unless a support vector machine has the vectors, weights and offsets that its classes need."""
    has = _attributes(owner)
    if "support_vectors_" not in has:
        return  # not fitted
    vectors, counts = has["support_vectors_"], np.asarray(has["_n_support"])
    n_classes = len(has["classes_"])
    n_pairs = n_classes * (n_classes - 1) // 2
    _require(counts.shape == (n_classes,) and (counts >= 0).all(), "an SVC has other classes than it says")
    n = int(counts.sum())
    _require(np.shape(has["support_"]) == (n,), "an SVC has other support vectors than it says")
    dual = has["_dual_coef_"]
    _require(dual.shape == (n_classes - 1, n), "an SVC has other weights than support vectors")
    _require(np.shape(has["_intercept_"]) == (n_pairs,), "an SVC has other offsets than pairs of classes")
    for name in ("_probA", "_probB"):
        _require(np.shape(has[name]) in ((0,), (n_pairs,)), "an SVC has other offsets than pairs of classes")
    if has["kernel"] != "precomputed":
        width = has["n_features_in_"]
        _require(vectors.shape == (n, width), "an SVC has other support vectors than it says")
        _require(tuple(has["shape_fit_"])[1:] == (width,), "an SVC has other features than it says")


_SECURE: dict[str, Callable[[Any], None]] = {
    DECISION_TREE: _check_decision_tree,
    HISTOGRAM_TREE: _check_histogram_tree,
    KD_TREE: _rebuild,
    BALL_TREE: _rebuild,
    SPLINE: _rebuild_spline,
}
