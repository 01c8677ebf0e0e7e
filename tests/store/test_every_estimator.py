"""Every classifier and transformer of scikit-learn comes back with the same answers, without a word from the caller."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, SelectPercentile, chi2, mutual_info_classif
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, WhiteKernel
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
)
from sklearn.naive_bayes import ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC
from sklearn.utils import all_estimators

import neighboragg
from neighboragg import NeighborAgg, TrustedClassifier
from neighboragg._store.estimators import dump_estimator, load_estimator

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = (X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)
NEW = RNG.normal(size=(20, 4))
TEXTS = [f"{word} number {i % 7}" for i in range(20) for word in ("red dog", "blue cat", "green leaf")]
PARAMETERS = {
    "ClassifierChain": lambda cls: cls(LogisticRegression()),
    "ColumnTransformer": lambda cls: cls([("a", StandardScaler(), [0, 1]), ("b", "passthrough", [3])]),
    "FeatureUnion": lambda cls: cls([("a", StandardScaler()), ("b", PolynomialFeatures())]),
    "CCA": lambda cls: cls(1),
    "PLSCanonical": lambda cls: cls(1),
    "PLSSVD": lambda cls: cls(1),
    "PatchExtractor": lambda cls: cls(patch_size=(2, 2), max_patches=3),
    "SelfTrainingClassifier": lambda cls: cls(LogisticRegression()),
    "SparseCoder": lambda cls: cls(np.eye(4)),
    "StackingClassifier": lambda cls: cls([("a", GaussianNB()), ("b", LogisticRegression())], cv=2),
    "StackingRegressor": lambda cls: cls([("a", LinearRegression())], cv=2),
    "VotingClassifier": lambda cls: cls([("a", GaussianNB()), ("b", LogisticRegression())], voting="soft"),
    "VotingRegressor": lambda cls: cls([("a", LinearRegression())]),
}
ROWS = {
    "CountVectorizer": TEXTS,
    "TfidfVectorizer": TEXTS,
    "HashingVectorizer": TEXTS,
    "DictVectorizer": [{"a": 1.0, "b": "x"}, {"b": "y"}] * 30,
    "FeatureHasher": [{"a": 1.0}, {"b": 2.0}] * 30,
    "PatchExtractor": RNG.normal(size=(60, 5, 5)),
    "IsotonicRegression": X[:, 0],
    "KernelCenterer": X @ X.T,
}
LABELS = {
    "ClassifierChain": np.column_stack([Y, 1 - Y]),
    "MultiOutputClassifier": np.column_stack([Y, 1 - Y]),
    "MultiTaskElasticNet": np.column_stack([Y, 1 - Y]),
}
EXCLUDED = {
    "Birch": "skops cannot save it: its nodes refer to each other",
    "TSNE": "has nothing to say of new rows",
}
# Their arrays come back in another order of memory, in which sums are rounded differently.
REORDERED = ("LabelPropagation", "LabelSpreading")
ESTIMATORS = dict(all_estimators(type_filter=["classifier", "transformer"]))


def made(name):
    cls = ESTIMATORS[name]
    if name in PARAMETERS:
        return PARAMETERS[name](cls)
    try:
        return cls()
    except TypeError:  # around another one
        return cls(LogisticRegression())


def fitted(name):
    """A fitted estimator, and rows to ask it about."""
    estimator = made(name)
    for parameter, value in (
        ("max_iter", 20),
        ("n_estimators", 3),
        ("cv", 2),
        ("random_state", 0),
        ("n_neighbors", 5),
    ):
        if parameter in estimator.get_params():
            estimator.set_params(**{parameter: value})
    if "n_components" in estimator.get_params() and name in (
        "SparseRandomProjection",
        "GaussianRandomProjection",
    ):
        estimator.set_params(n_components=2)
    rows = ROWS.get(name, np.abs(X) if name in ("AdditiveChi2Sampler", "SkewedChi2Sampler") else X)
    if name in ("LabelBinarizer", "LabelEncoder"):
        return estimator.fit(Y), Y
    if name == "MultiLabelBinarizer":
        labels = [{1, 2}, {2, 3}, {1}]
        return estimator.fit(labels), labels
    try:
        return estimator.fit(rows, LABELS.get(name, Y)), rows
    except ValueError:  # of counts, such as MultinomialNB
        return estimator.fit(np.abs(rows), LABELS.get(name, Y)), np.abs(rows)


def answers(estimator, rows):
    """What it says of rows, by each method that it has."""
    found = {}
    for method in ("predict_proba", "decision_function", "predict", "transform"):
        if hasattr(estimator, method):
            said = getattr(estimator, method)(rows)
            found[method] = said.toarray() if sparse.issparse(said) else np.asarray(said)
    return found


def assert_same_answers(loaded, estimator, rows):
    assert type(loaded) is type(estimator)
    expected = answers(estimator, rows)
    assert expected
    for method, said in answers(loaded, rows).items():
        if type(estimator).__name__ in REORDERED:
            np.testing.assert_allclose(said, expected[method], rtol=1e-12)
        else:
            np.testing.assert_array_equal(said, expected[method], err_msg=method)


@pytest.mark.full(keep=20)
@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - set(EXCLUDED)))
def test_every_classifier_and_transformer(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows and few steps
        estimator, rows = fitted(name)
        assert_same_answers(load_estimator(dump_estimator(estimator)), estimator, rows)


FRAME = pd.DataFrame(X, columns=list("abcd")).assign(
    e=pd.Categorical(np.where(X[:, 0] > 0, "u", "v")), f=np.where(X[:, 1] > 0, "x", "z")
)
HOLES = np.where(np.abs(X) > 1.5, np.nan, X)
COLUMNS = ColumnTransformer(
    [
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), list("abcd")),
        ("categories", OneHotEncoder(handle_unknown="ignore"), ["e", "f"]),
    ]
)
BY_TYPE = make_column_transformer(
    (StandardScaler(), make_column_selector(dtype_include=np.number)),
    (OrdinalEncoder(), make_column_selector(dtype_exclude=np.number)),
)
C = {"C": [1.0, 2.0]}
MODELS = {
    "grid": (GridSearchCV(LogisticRegression(), C, cv=2), X),
    "grid of a pipeline": (
        GridSearchCV(
            make_pipeline(COLUMNS, LogisticRegression()),
            {"logisticregression__C": [1, 2]},
            cv=StratifiedKFold(2),
            scoring="roc_auc",
        ),
        FRAME,
    ),
    "grid with a scorer": (GridSearchCV(LogisticRegression(), C, cv=2, scoring=make_scorer(f1_score)), X),
    "grid with two scorers": (
        GridSearchCV(LogisticRegression(), C, cv=2, scoring=["accuracy", "neg_log_loss"], refit="accuracy"),
        X,
    ),
    "random search": (RandomizedSearchCV(LogisticRegression(), C, n_iter=2, cv=2, random_state=0), X),
    "halving search": (HalvingGridSearchCV(LogisticRegression(), C, cv=2, random_state=0), X),
    "columns": (make_pipeline(COLUMNS, LogisticRegression()), FRAME),
    "columns by type": (make_pipeline(BY_TYPE, LogisticRegression()), FRAME),
    "boosting with categories": (HistGradientBoostingClassifier(max_iter=3), FRAME[["a", "e"]]),
    "boosting with numbered categories": (
        HistGradientBoostingClassifier(max_iter=3, categorical_features=[4]),
        np.column_stack([X, X[:, 0] > 0]),
    ),
    "boosting with constraints": (
        HistGradientBoostingClassifier(max_iter=3, monotonic_cst=[1, 0, 0, 0], interaction_cst="pairwise"),
        X,
    ),
    "bins": (
        make_pipeline(KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), LogisticRegression()),
        X,
    ),
    "imputed": (make_pipeline(SimpleImputer(add_indicator=True), LogisticRegression()), HOLES),
    "imputed by neighbors": (make_pipeline(KNNImputer(), LogisticRegression()), HOLES),
    "stacking": (StackingClassifier([("a", GaussianNB()), ("b", RandomForestClassifier(3))], cv=2), X),
    "texts": (
        make_pipeline(TfidfVectorizer(ngram_range=(1, 2), stop_words="english"), LogisticRegression()),
        TEXTS,
    ),
    "texts by letters": (
        make_pipeline(TfidfVectorizer(analyzer="char_wb", dtype=np.float32), MultinomialNB()),
        TEXTS,
    ),
    "texts hashed": (
        make_pipeline(HashingVectorizer(n_features=64), TfidfTransformer(), LogisticRegression()),
        TEXTS,
    ),
    "texts by two": (
        make_pipeline(FeatureUnion([("a", TfidfVectorizer()), ("b", CountVectorizer())]), ComplementNB()),
        TEXTS,
    ),
    "sparse neighbors": (KNeighborsClassifier(), sparse.csr_matrix(X)),
    "sparse support vectors": (SVC(kernel="linear"), sparse.csr_array(X)),
    "neighbors by another distance": (KNeighborsClassifier(metric="manhattan"), X),
    "neighbors by any power": (KNeighborsClassifier(metric="minkowski", p=3, algorithm="ball_tree"), X),
    "neighbors by angle": (KNeighborsClassifier(metric="cosine"), X),
    "neighbors in a radius": (RadiusNeighborsClassifier(9.0, algorithm="kd_tree", metric="chebyshev"), X),
    "Gaussian process": (GaussianProcessClassifier(1.0 * Matern() + WhiteKernel() + RBF() * DotProduct()), X),
    "selected by information": (make_pipeline(SelectKBest(mutual_info_classif, k=2), GaussianNB()), X),
    "selected by counts": (make_pipeline(SelectPercentile(chi2, percentile=50), GaussianNB()), np.abs(X)),
    "ufunc": (make_pipeline(FunctionTransformer(np.log1p), GaussianNB()), np.abs(X)),
    "curves": (
        make_pipeline(
            PowerTransformer(), QuantileTransformer(n_quantiles=5), SplineTransformer(), GaussianNB()
        ),
        X,
    ),
    "target encoder": (
        make_pipeline(TargetEncoder(random_state=0, cv=2), LogisticRegression()),
        FRAME[["f"]],
    ),
    "calibrated": (
        CalibratedClassifierCV(RandomForestClassifier(3), cv=StratifiedKFold(2), method="temperature"),
        X,
    ),
    "tuned threshold": (TunedThresholdClassifierCV(LogisticRegression(), cv=2), X),
}


@pytest.mark.full(keep=15)
@pytest.mark.filterwarnings("ignore")  # few rows and few steps
@pytest.mark.parametrize("name", MODELS)
def test_models_that_people_have(name):
    estimator, rows = MODELS[name]
    estimator.fit(rows, Y)
    assert_same_answers(load_estimator(dump_estimator(estimator)), estimator, rows)


@pytest.mark.full(keep=4)
@pytest.mark.filterwarnings("ignore")  # few rows and few steps
@pytest.mark.parametrize(
    "name",
    ["grid of a pipeline", "columns", "boosting with categories", "bins", "imputed", "stacking", "texts"],
)
def test_through_a_trusted_classifier(name, tmp_path):
    estimator, rows = MODELS[name]
    model = TrustedClassifier(estimator, NeighborAgg(n_neighbors=3), random_state=0).fit(rows, Y)
    model.save(tmp_path / "model.nagg")
    again = neighboragg.load(tmp_path / "model.nagg")
    np.testing.assert_array_equal(again.score_samples(rows), model.score_samples(rows))
