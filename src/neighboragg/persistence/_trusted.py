"""Types and functions that a saved estimator may name without the caller's word, each looked at for what it can do.

Types that skops trusts itself, the public estimators of scikit-learn among them, are not repeated. What is listed
here runs no code from a file: plain Python objects that hold numbers and other trusted things; functions that only
compute; and compiled types whose content is checked or rebuilt after loading. Not listed, for example: distributions of
scipy.stats, which run a template from their state when they are restored.
"""

from collections.abc import Iterable, Sequence

__all__ = ["BOOSTERS", "PARTIAL", "SCIKIT_FUNCTIONS", "TRUSTED_TYPES", "short_names", "spelled_out"]

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
