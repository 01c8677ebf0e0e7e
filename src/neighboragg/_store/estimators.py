"""scikit-learn estimators inside a file, loaded from a list of allowed types."""

import json
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.exceptions import InconsistentVersionWarning

from neighboragg._core.packages import import_extra
from neighboragg.exceptions import FileFormatError, InvalidParameterError, UntrustedTypeError

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
    # Compiled search structures, and splines.
    *_names("scipy.interpolate._bsplines", "BSpline"),
    *_names("sklearn.ensemble._hist_gradient_boosting.predictor", "TreePredictor"),
    *_names("sklearn.neighbors._ball_tree", "BallTree"),
    *_names("sklearn.neighbors._kd_tree", "KDTree"),
    *_names("sklearn.tree._tree", "Tree"),
    # Distances without a matrix.
    *_names(
        "sklearn.metrics._dist_metrics",
        "BrayCurtisDistance64 CanberraDistance64 ChebyshevDistance64 EuclideanDistance64 HammingDistance64 "
        "HaversineDistance64 JaccardDistance64 ManhattanDistance64 MinkowskiDistance64 SEuclideanDistance64",
    ),
    # Sparse matrices, which are read without pickle.
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


def dump_estimator(estimator: Any) -> NDArray[np.uint8]:
    """Return an estimator as bytes, after a trial of whether they can be loaded."""
    io = _skops("Saving an estimator")
    try:
        data = io.dumps(estimator)
        # Lambdas, locks and the like are written without complaint and fail on loading, when the
        # original is gone. All code that runs here is the caller's own.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            io.loads(data, trusted=io.get_untrusted_types(data=data))
    except Exception as error:
        name = f"{type(estimator).__module__}.{type(estimator).__qualname__}"
        raise InvalidParameterError(
            f"The estimator of type {name} cannot be saved by skops ({type(error).__name__}: {error}).\n"
            "Hint: replace the part that the reason names, such as a lambda by a function of a module."
        ) from error
    return np.frombuffer(data, dtype=np.uint8)


def load_estimator(
    data: NDArray[np.uint8], *, trusted: Sequence[str] = (), saved_with: str = sklearn.__version__
) -> Any:
    """Return the estimator that :func:`dump_estimator` saved with a version of scikit-learn."""
    io = _skops("Loading a saved estimator")
    content = data.tobytes()
    reported = io.get_untrusted_types(data=content)
    if unknown := _unknown(content, reported, spelled_out(trusted)):
        raise UntrustedTypeError(
            f"The saved estimator contains types that are not known to be safe: {', '.join(unknown)}.\n"
            f"Hint: if each of these is what you expect, pass trusted={short_names(unknown)!r}; or pass the estimator "
            "again instead of loading it."
        )
    try:
        with warnings.catch_warnings():
            # `load` gives one warning in place of one for every part.
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            return io.loads(content, trusted=reported)
    except Exception as error:
        what, remedy = "was saved with other libraries than are installed", "install these"
        if saved_with != sklearn.__version__:
            what = f"was saved with scikit-learn {saved_with}, and {sklearn.__version__} is installed"
            remedy = f"pip install scikit-learn=={saved_with}"
        raise FileFormatError(
            f"The saved estimator cannot be restored ({type(error).__name__}: {error}): it {what}.\n"
            f"Hint: {remedy}, or fit and save the model again."
        ) from error


def untrusted_types(data: NDArray[np.uint8]) -> list[str]:
    """Return the types within a saved estimator that must be allowed when it is loaded."""
    content = data.tobytes()
    return _unknown(content, _skops("Saving an estimator").get_untrusted_types(data=content), set())


def _unknown(content: bytes, reported: Sequence[str], trusted: set[str]) -> list[str]:
    known = {*TRUSTED_TYPES, *trusted}
    # A partial can hold any function: it is as harmless as that function, and by itself not at all.
    if _functions_in_partials(content) <= {*SCIKIT_FUNCTIONS, *trusted}:
        known.add(PARTIAL)
    return [name for name in reported if name not in known]


def _functions_in_partials(content: bytes) -> set[str]:
    """Names of the functions that partial calls within an archive of skops call."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        schema = json.loads(archive.read("schema.json"))
    found = set()
    for node in _nodes(schema):
        if node.get("__loader__") == "PartialNode":
            inner = node["content"]["func"]
            plain = inner["__loader__"] == "FunctionNode"
            found.add(f"{inner['__module__']}.{inner['__class__']}" if plain else "not a function")
    return found


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


def _skops(purpose: str) -> Any:
    return import_extra("skops.io", extra="skops", purpose=purpose)
