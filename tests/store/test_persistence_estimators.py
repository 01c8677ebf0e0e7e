"""Estimators of other libraries: all of them come back, and nothing untrusted runs."""

import os
import sys
import warnings
from functools import partial
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import Birch
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RandomizedSearchCV
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_array
from xgboost import XGBClassifier

import neighboragg
from neighboragg import TrustedClassifier
from neighboragg._store.estimators import TRUSTED_TYPES, dump_estimator, load_estimator
from neighboragg._store.file import read_file, write_file
from neighboragg.exceptions import (
    FileFormatError,
    InvalidParameterError,
    MissingExtraError,
    TrustWarning,
    UntrustedTypeError,
)
from neighboragg.methods import MaxConfidence

X, CODES = make_classification(120, 6, n_informative=4, n_classes=3, random_state=0)
Y = np.array(["ant", "bee", "cat"])[CODES]
FRAME = pd.DataFrame(X[:, :3], columns=["a", "b", "c"]).assign(d=np.where(X[:, 3] > 0, "up", "down"))

CLASSIFIERS = {
    "logistic": LogisticRegression(),
    "forest": RandomForestClassifier(5, random_state=0),
    "extra trees": ExtraTreesClassifier(5, random_state=0),
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "best-first tree": DecisionTreeClassifier(max_leaf_nodes=9, random_state=0),
    "stump": DecisionTreeClassifier(max_depth=1),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=3),
    "boosting": GradientBoostingClassifier(n_estimators=3, random_state=0),
    "early boosting": GradientBoostingClassifier(n_estimators=3, n_iter_no_change=2, random_state=0),
    "network": MLPClassifier((4,), max_iter=3, n_iter_no_change=1, tol=10.0, random_state=0),
    "network by SGD": MLPClassifier(
        (4,), solver="sgd", max_iter=9, n_iter_no_change=1, tol=10.0, random_state=0
    ),
    "naive Bayes": GaussianNB(),
    "neighbors": KNeighborsClassifier(leaf_size=7),
    "neighbors by ball tree": KNeighborsClassifier(algorithm="ball_tree", weights="distance"),
    "neighbors by brute force": KNeighborsClassifier(algorithm="brute"),
    "SVC": SVC(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "ufunc": make_pipeline(FunctionTransformer(np.abs), GaussianNB()),
    "calibrated": CalibratedClassifierCV(GaussianNB(), cv=2),
    "calibrated isotonic": CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=2),
    "AdaBoost": AdaBoostClassifier(n_estimators=3, random_state=0),
    "bagging": BaggingClassifier(n_estimators=3, max_features=3, random_state=0),
    "bagged forest": BaggingClassifier(
        RandomForestClassifier(2), n_estimators=2, max_features=4, random_state=0
    ),
    "voting": VotingClassifier(
        [("a", GaussianNB()), ("b", DecisionTreeClassifier(max_depth=2))], voting="soft"
    ),
    "stacking": StackingClassifier(
        [("a", GaussianNB())], RandomForestClassifier(3, random_state=0), passthrough=True, cv=2
    ),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_scikit_learn_classifiers_need_no_trust(name):
    classifier = CLASSIFIERS[name].fit(X, Y)
    data = dump_estimator(classifier)
    assert data.dtype == np.uint8
    assert data.ndim == 1
    loaded = load_estimator(data)
    assert type(loaded) is type(classifier)
    assert loaded.classes_.tolist() == ["ant", "bee", "cat"]
    method = "predict_proba" if hasattr(classifier, "predict_proba") else "decision_function"
    rows = X + 0.1
    assert np.array_equal(getattr(loaded, method)(rows), getattr(classifier, method)(rows))


@pytest.mark.parametrize("by_type", [False, True])
def test_column_transformer(by_type):
    numbers, strings = (
        make_column_selector(dtype_include="number"),
        make_column_selector(dtype_exclude="number"),
    )
    columns = ColumnTransformer(
        [
            ("scale", StandardScaler(), numbers if by_type else ["a", "b", "c"]),
            ("encode", OneHotEncoder(handle_unknown="ignore"), strings if by_type else ["d"]),
        ]
    )
    classifier = make_pipeline(columns, LogisticRegression()).fit(FRAME, Y.astype(object))
    loaded = load_estimator(dump_estimator(classifier))
    assert np.array_equal(loaded.predict_proba(FRAME), classifier.predict_proba(FRAME))


def test_classifier_chain_whose_trees_see_more_features():
    labels = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    chain = ClassifierChain(DecisionTreeClassifier(max_depth=2, random_state=0)).fit(X, labels)
    loaded = load_estimator(dump_estimator(chain))
    assert np.array_equal(loaded.predict(X), chain.predict(X))


def test_frozen_estimator():
    frozen = FrozenEstimator(RandomForestClassifier(3, random_state=0).fit(X, Y))
    loaded = load_estimator(dump_estimator(frozen))
    assert isinstance(loaded, FrozenEstimator)
    assert np.array_equal(loaded.predict_proba(X), frozen.predict_proba(X))


def test_short_list_names_each_once_and_no_library_of_its_own_code():
    known = ("sklearn", "numpy", "scipy", "builtins", "collections")
    assert {name.split(".")[0] for name in TRUSTED_TYPES} == set(known)
    assert len(set(TRUSTED_TYPES)) == len(TRUSTED_TYPES)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (partial(os.system, "true"), "functools.partial, posix.system"),
        (partial(np.linalg.norm), "functools.partial, numpy.linalg.norm"),
        (partial(np.mean), "functools.partial"),
        (partial(np.exp), "functools.partial"),
        (partial(list), "functools.partial"),
        (partial(partial(check_array)), None),
    ],
)
def test_a_partial_is_trusted_only_around_functions_of_scikit_learn(function, name):
    data = dump_estimator(FunctionTransformer(function))
    if name is None:
        assert load_estimator(data).func.func is check_array
        return
    with pytest.raises(UntrustedTypeError, match=f"safe: {name}\\.\n"):
        load_estimator(data)


def test_distributions_of_scipy_run_what_their_state_says_and_are_not_trusted():
    search = RandomizedSearchCV(
        LogisticRegression(), {"C": loguniform(0.1, 10)}, n_iter=1, cv=2, random_state=0
    )
    data = dump_estimator(search.fit(X, Y))
    with pytest.raises(
        UntrustedTypeError, match=r"safe: scipy\.stats\._continuous_distns\.reciprocal_gen, scipy"
    ):
        load_estimator(data)
    loaded = load_estimator(dump_estimator(search.best_estimator_))
    np.testing.assert_array_equal(loaded.predict_proba(X), search.predict_proba(X))


RAN: list[str] = []


class Armed(ClassifierMixin, BaseEstimator):
    """Notes when any of its code runs."""

    def __new__(cls):
        RAN.append("new")
        return super().__new__(cls)

    def __setstate__(self, state):
        RAN.append("setstate")
        super().__setstate__(state)


class ArmedByReduce:
    """Is restored by a call of its class."""

    def __init__(self, value):
        RAN.append("init")
        self.value = value

    def __reduce__(self):
        return type(self), (self.value,)


def armed_function(X):
    RAN.append("function")
    return X


@pytest.mark.parametrize("module", ["own", "__main__"])
@pytest.mark.parametrize("kind", [Armed, ArmedByReduce])
def test_untrusted_classes_do_not_run(kind, module, monkeypatch):
    if module == "__main__":
        monkeypatch.setattr(kind, "__module__", "__main__")
        monkeypatch.setattr(sys.modules["__main__"], kind.__name__, kind, raising=False)
    item = kind() if kind is Armed else kind(3)
    data = dump_estimator(make_pipeline(StandardScaler(), item))
    name = f"{kind.__module__}.{kind.__name__}"
    RAN.clear()
    with pytest.raises(UntrustedTypeError, match=f"safe: {name}\\.\n"):
        load_estimator(data)
    assert RAN == []
    load_estimator(data, trusted=[name])
    assert RAN  # with trust it does run: the check above could fail


def test_untrusted_functions_are_listed():
    data = dump_estimator(make_pipeline(FunctionTransformer(armed_function), GaussianNB()))
    with pytest.raises(UntrustedTypeError, match=f"safe: {__name__}\\.armed_function\\.\n"):
        load_estimator(data)
    assert "function" not in RAN


@pytest.mark.parametrize("trusted", ["xgboost.core.Booster", [XGBClassifier]])
def test_trusted_is_a_list_of_names(trusted):
    with pytest.raises(InvalidParameterError) as caught:
        neighboragg.load("no file", trusted=trusted)
    assert str(caught.value) == (
        f"The 'trusted' parameter of load must be a list of names, each a str. Got {trusted!r} instead."
    )


def test_an_archive_of_other_bytes(tmp_path):
    path = tmp_path / "model.nagg"
    TrustedClassifier(GaussianNB(), MaxConfidence(), random_state=0).fit(X, Y).save(path)
    document, arrays = read_file(path)
    write_file(path, document, arrays | {"estimator_": np.arange(50, dtype=np.uint8)})
    with pytest.raises(FileFormatError, match=r"cannot be read \(BadZipFile"):
        neighboragg.load(path)


@pytest.fixture
def older(tmp_path, monkeypatch):
    """The file of a model saved with another version of scikit-learn, and the model."""
    path = tmp_path / "model.nagg"
    model = TrustedClassifier(make_pipeline(StandardScaler(), GaussianNB()), MaxConfidence(), random_state=0)
    model.fit(X, Y)
    with monkeypatch.context() as patch:
        patch.setattr("sklearn.base.__version__", "1.2.3")  # each estimator carries it
        model.save(path)
    document, arrays = read_file(path)
    write_file(path, document | {"versions": document["versions"] | {"scikit-learn": "1.2.3"}}, arrays)
    return path, model


def test_another_version_of_scikit_learn_is_one_warning(older):
    path, model = older
    with pytest.warns() as caught:
        again = neighboragg.load(path)
    assert [str(warning.message) for warning in caught] == [
        f"{str(path)!r} was saved with scikit-learn 1.2.3, and {sklearn.__version__} is installed, whose estimators "
        "may give other answers.\nHint: pip install scikit-learn==1.2.3, or fit and save the model again."
    ]
    assert caught[0].category is TrustWarning
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


def test_another_version_of_scikit_learn_that_cannot_be_read_is_one_error(older, monkeypatch):
    path, _ = older

    def gone(self, state):
        raise AttributeError("sigma_")

    monkeypatch.setattr(GaussianNB, "__setstate__", gone, raising=False)
    with warnings.catch_warnings(), pytest.raises(FileFormatError) as caught:
        warnings.simplefilter("error")
        neighboragg.load(path)
    assert str(caught.value) == (
        "The saved estimator cannot be restored (AttributeError: sigma_): it was saved with scikit-learn 1.2.3, and "
        f"{sklearn.__version__} is installed.\n"
        "Hint: pip install scikit-learn==1.2.3, or fit and save the model again."
    )


def test_without_estimators_the_version_of_scikit_learn_does_not_matter(tmp_path):
    path = tmp_path / "method.nagg"
    MaxConfidence().fit(X, Y, proba_val=np.full((120, 3), 1 / 3)).save(path)
    document, arrays = read_file(path)
    write_file(path, document | {"versions": document["versions"] | {"scikit-learn": "1.2.3"}}, arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        neighboragg.load(path)


def test_type_that_is_gone(monkeypatch):
    module = ModuleType("shop")
    module.Gone = type("Gone", (BaseEstimator,), {"__module__": "shop"})
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "shop", module)
        data = dump_estimator(module.Gone())
    with pytest.raises(FileFormatError) as caught:
        load_estimator(data, trusted=["shop.Gone"])
    assert str(caught.value) == (
        "The saved estimator cannot be restored (ModuleNotFoundError: No module named 'shop'): it was saved with other "
        "libraries than are installed.\nHint: install these, or fit and save the model again."
    )


class Holder(BaseEstimator):
    """Holds what cannot be saved."""


@pytest.mark.parametrize(
    ("thing", "reason"),
    [
        (Birch(), "UnsupportedTypeException: Objects of type Birch are not supported yet."),
        (lambda X: X, f"AttributeError: module {__name__!r} has no attribute '<lambda>'"),
    ],
)
def test_estimator_that_cannot_be_saved(thing, reason):
    holder = Holder()
    holder.thing = thing
    with pytest.raises(InvalidParameterError) as caught:
        dump_estimator(holder)
    assert str(caught.value) == (
        f"The estimator of type {__name__}.Holder cannot be saved by skops ({reason}).\n"
        "Hint: replace the part that the reason names, such as a lambda by a function of a module."
    )


def test_without_skops(monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    for call, purpose in (
        (lambda: dump_estimator(GaussianNB()), "Saving an estimator"),
        (lambda: load_estimator(np.zeros(1, dtype=np.uint8)), "Loading a saved estimator"),
    ):
        with pytest.raises(MissingExtraError) as caught:
            call()
        assert str(caught.value) == (
            f"{purpose} needs the package 'skops', which is not installed.\n"
            'Hint: pip install "neighboragg[skops]"'
        )
