"""scikit-learn estimators inside a file, loaded from a list of allowed types."""

import gc
import inspect
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from io import BytesIO
from types import MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
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

from neighboragg._core.packages import import_extra
from neighboragg._core.types import BoolArray, IntArray
from neighboragg._store.file import (
    MalformedError,
)
from neighboragg.exceptions import (
    FileFormatError,
    InvalidParameterError,
    UntrustedTypeError,
)

# Sparse matrices are compressed by SciPy and may hold few distinct numbers; more than this is not believed.
LARGEST_RATIO = 200


def check_archive(content: bytes) -> None:
    """Raise if an archive of skops, which compresses nothing itself, would unpack to more than it can need."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise MalformedError("its archive is compressed, which no saving does")
        if sum(entry.file_size for entry in entries) > len(content):
            raise MalformedError("the parts of its archive are larger than the whole")
        sizes = {entry.filename: entry.file_size * _ratio(archive, entry) for entry in entries}
        if _referred_to(json.loads(archive.read("schema.json")), sizes) > LARGEST_RATIO * len(content):
            raise MalformedError("it refers to the same part of its archive again and again")


def _ratio(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> int:
    """How much larger an entry may become: 1, unless it is an archive itself, as a sparse matrix is."""
    with archive.open(entry) as part:
        if part.read(2) != b"PK":
            return 1
        part.seek(0)
        with zipfile.ZipFile(part) as inner:
            unpacked = sum(item.file_size for item in inner.infolist())
    if unpacked > LARGEST_RATIO * entry.file_size:
        raise MalformedError("a sparse matrix in it would unpack to more than 200 times its size")
    return -(-unpacked // max(1, entry.file_size))


def functions_in_partials(content: bytes) -> set[str]:
    """Names of what the partial calls within an archive call, whatever it is."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        schema = json.loads(archive.read("schema.json"))
    found = set()
    for node in _nodes(schema):
        if node.get("__loader__") == "PartialNode":
            inner = node["content"]["func"]
            plain = inner["__loader__"] == "FunctionNode"
            found.add(
                f"{inner['__module__']}.{inner['__class__']}" if plain else "something that is no function"
            )
    return found


def _referred_to(schema: Any, sizes: dict[str, int]) -> int:
    """Bytes of all parts that the nodes of a schema read; nodes with one id are read once."""
    total, seen = 0, set()
    for node in _nodes(schema):
        key = (node.get("__id__"), node.get("file"))
        if isinstance(key[1], str) and (key[0] is None or str(key) not in seen):
            seen.add(str(key))
            total += sizes.get(key[1], 0)
    return total


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every dict within a schema, however deep."""
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, dict):
            stack.extend(node.values())
            yield node


DECISION_TREE = "sklearn.tree._tree.Tree"
HISTOGRAM_TREE = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
KD_TREE = "sklearn.neighbors._kd_tree.KDTree"
BALL_TREE = "sklearn.neighbors._ball_tree.BallTree"
SPLINE = "scipy.interpolate._bsplines.BSpline"
#: A call with some arguments given: trusted only around a function of scikit-learn that is.
PARTIAL = "functools.partial"


def _names(module: str, names: str) -> tuple[str, ...]:
    return tuple(f"{module}.{name}" for name in names.split())


#: Functions of scikit-learn that fitted estimators hold; they compute from arrays and do nothing else.
SCIKIT_FUNCTIONS = (
    *_names("sklearn.cluster._kmeans", "_kmeans_single_elkan _kmeans_single_lloyd"),
    *_names("sklearn.feature_selection._mutual_info", "mutual_info_classif mutual_info_regression"),
    *_names(
        "sklearn.feature_selection._univariate_selection", "chi2 f_classif f_oneway f_regression r_regression"
    ),
    *_names(
        "sklearn.metrics._classification",
        "accuracy_score balanced_accuracy_score brier_score_loss cohen_kappa_score d2_brier_score d2_log_loss_score "
        "f1_score fbeta_score hamming_loss jaccard_score log_loss matthews_corrcoef negative_likelihood_ratio "
        "positive_likelihood_ratio precision_score recall_score zero_one_loss",
    ),
    *_names(
        "sklearn.metrics._ranking",
        "average_precision_score dcg_score ndcg_score roc_auc_score top_k_accuracy_score",
    ),
    *_names(
        "sklearn.metrics._regression",
        "d2_absolute_error_score explained_variance_score max_error mean_absolute_error "
        "mean_absolute_percentage_error mean_squared_error mean_squared_log_error median_absolute_error r2_score "
        "root_mean_squared_error root_mean_squared_log_error",
    ),
    *_names(
        "sklearn.metrics.pairwise",
        "cosine_distances cosine_similarity euclidean_distances laplacian_kernel linear_kernel manhattan_distances "
        "polynomial_kernel rbf_kernel sigmoid_kernel",
    ),
    *_names("sklearn.utils.validation", "check_array"),
)

TRUSTED_TYPES: tuple[str, ...] = (
    # Compiled search structures: their content is checked or rebuilt after loading.
    DECISION_TREE,
    HISTOGRAM_TREE,
    KD_TREE,
    BALL_TREE,
    SPLINE,
    # Distances without a matrix; the trees that use them are rebuilt with them.
    *_names(
        "sklearn.metrics._dist_metrics",
        "BrayCurtisDistance64 CanberraDistance64 ChebyshevDistance64 EuclideanDistance64 HammingDistance64 "
        "HaversineDistance64 JaccardDistance64 ManhattanDistance64 MinkowskiDistance64 SEuclideanDistance64",
    ),
    # Sparse matrices: read without pickle, their positions checked after loading.
    *_names("scipy.sparse._csc", "csc_array csc_matrix"),
    *_names("scipy.sparse._csr", "csr_array csr_matrix"),
    # Types of numbers, and a plain container.
    *_names("numpy", "dtype floating generic inexact integer number object_ signedinteger unsignedinteger"),
    *_names("builtins", "object"),
    *_names("collections", "OrderedDict"),
    # Plain Python objects of scikit-learn.
    *_names("sklearn.calibration", "_CalibratedClassifier _SigmoidCalibration _TemperatureScaling"),
    *_names("sklearn.cluster._bisect_k_means", "_BisectingTree"),
    *_names("sklearn.compose._column_transformer", "make_column_selector"),
    *_names("sklearn.gaussian_process._gpc", "_BinaryGaussianProcessClassifierLaplace"),
    *_names(
        "sklearn.gaussian_process.kernels",
        "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Hyperparameter Matern PairwiseKernel "
        "Product RBF RationalQuadratic Sum WhiteKernel",
    ),
    *_names("sklearn.impute._iterative", "IterativeImputer _ImputerTriplet"),
    *_names("sklearn.metrics._scorer", "_CurveScorer _MultimetricScorer _PassthroughScorer _Scorer"),
    *_names("sklearn.model_selection._search", "ParameterGrid"),
    *_names(
        "sklearn.model_selection._search_successive_halving", "HalvingGridSearchCV HalvingRandomSearchCV"
    ),
    *_names(
        "sklearn.model_selection._split",
        "GroupKFold GroupShuffleSplit KFold LeaveOneGroupOut LeaveOneOut LeavePGroupsOut LeavePOut PredefinedSplit "
        "RepeatedKFold RepeatedStratifiedKFold ShuffleSplit StratifiedGroupKFold StratifiedKFold "
        "StratifiedShuffleSplit TimeSeriesSplit _CVIterableWrapper",
    ),
    *_names("sklearn.multiclass", "_ConstantPredictor"),
    *_names("sklearn.neural_network._stochastic_optimizers", "AdamOptimizer SGDOptimizer"),
    *_names("sklearn.utils._bunch", "Bunch"),
    *_names("sklearn.utils._metadata_requests", "MetadataRequest MethodMetadataRequest"),
    # Functions that only compute.
    *_names("numpy", "max mean median min"),
    *_names("scipy._lib.array_api_compat.numpy._aliases", "asarray"),
    *SCIKIT_FUNCTIONS,
)
"""Names, beside those skops trusts itself, that :func:`load_estimator` always loads."""

#: What the name of a library stands for in `trusted`: exactly these of its types. Their own code reads the model.
BOOSTERS = {
    "catboost": _names("catboost.core", "CatBoost CatBoostClassifier CatBoostRanker CatBoostRegressor"),
    "lightgbm": (
        "lightgbm.basic.Booster",
        *_names("lightgbm.sklearn", "LGBMClassifier LGBMRanker LGBMRegressor"),
    ),
    "xgboost": (
        "xgboost.core.Booster",
        *_names("xgboost.sklearn", "XGBClassifier XGBRFClassifier XGBRFRegressor XGBRanker XGBRegressor"),
    ),
}


def spelled_out(trusted: Sequence[str]) -> set[str]:
    """The types that a caller's `trusted` stands for."""
    return {name for given in trusted for name in BOOSTERS.get(given, (given,))}


def short_names(types: Iterable[str]) -> list[str]:
    """What to pass as `trusted` for these types: a library's name where that covers them."""
    library = {name: short for short, names in BOOSTERS.items() for name in names}
    return sorted({library.get(name, name) for name in types})


_REMEDY = "pass the estimator again instead of loading it"


def dump_estimator(estimator: Any) -> NDArray[np.uint8]:
    """Return an estimator as bytes, ready to be part of a record."""
    io = _skops("Saving an estimator")
    name = f"{type(estimator).__module__}.{type(estimator).__qualname__}"
    try:
        data = io.dumps(estimator)
        # Lambdas, locks and the like are written without complaint and fail on loading, when the
        # original is gone. All code that runs here is the caller's own.
        check_archive(data)
        io.loads(data, trusted=io.get_untrusted_types(data=data))
    except Exception as error:
        raise InvalidParameterError(
            f"The estimator of type {name} cannot be saved by skops ({type(error).__name__}: {error}).\n"
            "Hint: save without the estimator, and pass it again when loading."
        ) from error
    return np.frombuffer(data, dtype=np.uint8)


def load_estimator(data: NDArray[np.uint8], *, trusted: Sequence[str] = ()) -> Any:
    """Return the estimator that :func:`dump_estimator` saved."""
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 1:
        raise InvalidParameterError(
            "The 'data' parameter of load_estimator must be a 1-D uint8 array, as dump_estimator returns it."
        )
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise InvalidParameterError(
            "The 'trusted' parameter of load_estimator must be a list of names, each a str. "
            f"Got {trusted!r} instead."
        )
    io = _skops("Loading a saved estimator")
    content = data.tobytes()
    try:
        check_archive(content)
        reported = io.get_untrusted_types(data=content)
        unknown = _unknown(content, reported, spelled_out(trusted))
    except Exception as error:
        raise _cannot_load(error) from error
    if unknown:
        raise UntrustedTypeError(
            f"The saved estimator contains types that are not known to be safe: {', '.join(unknown)}.\n"
            f"Hint: if each of these is what you expect, pass trusted={short_names(unknown)!r}; or {_REMEDY}."
        )
    try:
        estimator = io.loads(content, trusted=reported)
        secure_nodes(estimator)
    except Exception as error:
        raise _cannot_load(error) from error
    return estimator


def untrusted_types(data: NDArray[np.uint8]) -> list[str]:
    """Return the types within a saved estimator that loading will want the caller's word for."""
    content = data.tobytes()
    return _unknown(content, _skops("Saving an estimator").get_untrusted_types(data=content), set())


def _unknown(content: bytes, reported: Sequence[str], trusted: set[str]) -> list[str]:
    known = {*TRUSTED_TYPES, *trusted}
    # A partial can hold any function: it is as harmless as that is, and by itself not at all.
    if functions_in_partials(content) <= {*SCIKIT_FUNCTIONS, *trusted}:
        known.add(PARTIAL)
    return [name for name in reported if name not in known]


def _skops(purpose: str) -> Any:
    """Return the module that saves and loads."""
    return import_extra("skops.io", extra="skops", purpose=purpose)


def _cannot_load(error: Exception) -> FileFormatError:
    """Return the error of bytes that are no estimator here."""
    if isinstance(error, MalformedError):
        return FileFormatError(f"The saved estimator is malformed: {error}.\nHint: {_REMEDY}.")
    return FileFormatError(
        f"The saved estimator cannot be restored ({type(error).__name__}: {error}): it is damaged, or was "
        f"written with other versions of its libraries.\nHint: {_REMEDY}."
    )


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
