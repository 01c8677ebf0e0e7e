"""Each public call runs every step of the classifier once, and its labels stay exactly the classifier's own."""

from collections import Counter
from functools import wraps

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from neighboragg import SelectiveClassifier, TrustedClassifier
from neighboragg.exceptions import InvalidInputError
from neighboragg.methods import MaxConfidence

COUNTS = Counter()


class CountedScaler(TransformerMixin, BaseEstimator):
    """Counts the batches it transforms."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def fit_transform(self, X, y=None):
        return self.fit(X, y).shifted(X)

    def transform(self, X):
        COUNTS["transform"] += 1
        return self.shifted(X)

    def shifted(self, X):
        return np.asarray(X) - 1.0


class Counted(ClassifierMixin, BaseEstimator):
    """A classifier of unknown kind that counts how often it is asked; `predict` need not be the argmax."""

    def fit(self, X, y):
        self.inner_ = GaussianNB().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        COUNTS["predict"] += 1
        return self.classes_[self.inner_.predict_proba(X).argmin(axis=1)]

    def predict_proba(self, X):
        COUNTS["predict_proba"] += 1
        return self.inner_.predict_proba(X)


CALLS = {
    "assess": ({}, {"predict", "predict_proba"}),
    "predict": ({}, {"predict"}),
    "predict_proba": ({}, {"predict_proba"}),
    "predict_trust": ({}, {"predict_proba"}),
    "score_samples": ({}, {"predict", "predict_proba"}),
    "score_labels": ({"y": None}, {"predict_proba"}),
    "familiarity": ({}, {"predict_proba"}),
    "kneighbors": ({}, set()),
    "explain": ({}, {"predict", "predict_proba"}),
}
SELECTIVE_CALLS = ["accept", "assess", "predict", "calibrate", "score"]


@pytest.fixture(scope="module")
def rows():
    return make_classification(240, 4, n_informative=3, n_redundant=0, flip_y=0.2, random_state=2)


def nested(kind, X, y):
    pipeline = make_pipeline(CountedScaler(), Counted())
    if kind == "column transformer":
        pipeline = make_pipeline(make_column_transformer((CountedScaler(), [0, 1, 2, 3])), Counted())
    if kind == "pipeline in a pipeline":
        pipeline = make_pipeline(CountedScaler(), make_pipeline("passthrough", Counted()))
    if kind == "frozen":
        frozen = FrozenEstimator(pipeline.fit(X[:120], y[:120]))
        return TrustedClassifier(frozen).fit(X[:120], y[:120], X_val=X[120:], y_val=y[120:])
    return TrustedClassifier(pipeline, random_state=0).fit(X, y)


@pytest.fixture(scope="module", params=["pipeline", "column transformer", "pipeline in a pipeline", "frozen"])
def model(request, rows):
    return nested(request.param, *rows)


@pytest.mark.parametrize("name", CALLS)
def test_each_call_transforms_once_and_predicts_once(model, rows, name):
    X, y = rows
    arguments, asked = CALLS[name]
    COUNTS.clear()
    getattr(model, name)(X, **({"y": y} if "y" in arguments else {}))
    assert {"transform": 1, **dict.fromkeys(asked, 1)} == COUNTS


@pytest.mark.parametrize("name", SELECTIVE_CALLS)
def test_each_selective_call_transforms_once_and_predicts_once(model, rows, name):
    X, y = rows[0] + 0.01, rows[1]
    safe = SelectiveClassifier(model, target_coverage=0.5).calibrate(X, y)
    COUNTS.clear()
    getattr(safe, name)(X, *([y] if name in ("calibrate", "score") else []))
    assert COUNTS == {"transform": 1, "predict": 1, "predict_proba": 1}


def test_fit_asks_of_validation_rows_once(rows):
    X, y = rows
    COUNTS.clear()
    model = TrustedClassifier(make_pipeline(CountedScaler(), Counted())).fit(
        X[:120], y[:120], X_val=X[120:], y_val=y[120:]
    )
    # Training rows are transformed once more, for their vectors.
    assert COUNTS == {"transform": 2, "predict_proba": 1}
    assert (model.predict(X) != model.predict_proba(X).argmax(axis=1)).all()


def counting(monkeypatch, owner, names):
    """Count calls of methods that stay what they are."""
    counts = Counter()
    for name in names:
        original = owner.__dict__[name]

        def counted(self, *args, _original=original, _name=name, **kwargs):
            counts[_name] += 1
            return _original(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, wraps(original)(counted))
    return counts


def test_a_forest_votes_once(rows, monkeypatch):
    X, y = rows
    model = TrustedClassifier(RandomForestClassifier(5, random_state=0), random_state=0).fit(X, y)
    counts = counting(monkeypatch, RandomForestClassifier.__mro__[1], ["predict", "predict_proba"])
    model.score_samples(X)
    assert counts == {"predict_proba": 1}


def test_logistic_regression_is_not_asked_for_labels_that_its_probabilities_tell(rows, monkeypatch):
    X, y = rows
    model = TrustedClassifier(LogisticRegression(), random_state=0).fit(X, y)
    counts = counting(monkeypatch, LinearClassifierMixin, ["predict"])
    labels = model.assess(X).predicted
    assert not counts
    np.testing.assert_array_equal(labels, model.estimator_.predict(X))


def test_a_search_over_pipelines_transforms_once(rows):
    X, y = rows
    search = GridSearchCV(Pipeline([("scale", CountedScaler()), ("classify", Counted())]), {}, cv=2)
    model = TrustedClassifier(search, random_state=0).fit(X, y)
    COUNTS.clear()
    model.assess(X)
    assert COUNTS == {"transform": 1, "predict": 1, "predict_proba": 1}


CLASSIFIERS = {
    "forest": RandomForestClassifier(4, max_depth=2, random_state=0),
    "extra trees": ExtraTreesClassifier(2, max_depth=1, random_state=0),
    "bagging": BaggingClassifier(n_estimators=4, random_state=0),
    "tree": DecisionTreeClassifier(max_depth=2, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=2, max_depth=1, random_state=0),
    "exponential loss": GradientBoostingClassifier(loss="exponential", n_estimators=2, random_state=0),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=2, random_state=0),
    "logistic regression": LogisticRegression(),
    "perceptrons": MLPClassifier((3,), max_iter=3, random_state=0),
    "calibrated": CalibratedClassifierCV(GaussianNB(), cv=2),
    "xgboost": XGBClassifier(n_estimators=2, max_depth=1),
    "xgboost, raw scores": XGBClassifier(n_estimators=2, max_depth=1, objective="binary:logitraw"),
    "lightgbm": LGBMClassifier(n_estimators=2, num_leaves=2, verbose=-1),
    "threshold": FixedThresholdClassifier(LogisticRegression(), threshold=0.8),
    "neighbors": KNeighborsClassifier(2, weights="distance"),
    "naive Bayes": GaussianNB(),
    "search": GridSearchCV(make_pipeline(CountedScaler(), GaussianNB()), {}, cv=2),
    "support vectors": SVC(probability=True, random_state=0),
}

ONLY_TWO_CLASSES = {"exponential loss", "threshold", "xgboost, raw scores"}


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer", "ignore:.*probability.*:FutureWarning")
@pytest.mark.parametrize(
    ("name", "n_classes"),
    [
        *((name, 2) for name in CLASSIFIERS),
        *((name, 4) for name in CLASSIFIERS if name not in ONLY_TWO_CLASSES),
    ],
)
def test_labels_are_the_classifiers_own_ties_included(name, n_classes):
    rng = np.random.default_rng(3)
    # Few distinct rows with labels at random: probabilities tie often.
    X = rng.integers(-1, 2, size=(120, 2)).astype(float)
    y = rng.permutation(np.arange(120) % n_classes)
    model = TrustedClassifier(CLASSIFIERS[name], MaxConfidence(), random_state=0).fit(X, y)
    predicted = model.estimator_.predict(X)
    assessed = model.assess(X)
    np.testing.assert_array_equal(assessed.predicted, predicted)
    assert assessed.predicted.dtype == predicted.dtype
    np.testing.assert_array_equal(assessed.proba, model.estimator_.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), predicted)


@pytest.mark.parametrize(
    "classifier",
    [
        GradientBoostingClassifier(n_estimators=1, learning_rate=1e-12, random_state=0),
        HistGradientBoostingClassifier(max_iter=1, learning_rate=1e-12),
        LogisticRegression(C=1e-12, fit_intercept=False),
    ],
    ids=["boosting", "histogram boosting", "logistic regression"],
)
def test_near_ties_are_asked_for(classifier):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.arange(400) % 2
    model = TrustedClassifier(clone(classifier), MaxConfidence(), random_state=0).fit(X, y)
    assessed = model.assess(X)
    assert np.ptp(assessed.proba) < 1e-9
    assert len(set(assessed.predicted)) == 2
    np.testing.assert_array_equal(assessed.predicted, model.estimator_.predict(X))


class OneColumnMore(Counted):
    """Once it is fitted, it changes its mind about how many classes there are."""

    surprise = False

    def predict_proba(self, X):
        proba = super().predict_proba(X)
        return np.column_stack([0 * proba, np.ones(len(proba))]) if self.surprise else proba


def test_probabilities_of_other_classes_are_refused_by_their_number(rows, monkeypatch):
    X, y = rows
    model = TrustedClassifier(OneColumnMore(), random_state=0).fit(X, y)
    monkeypatch.setattr(OneColumnMore, "surprise", True)
    with pytest.raises(InvalidInputError, match="has 3 columns, but there are 2 classes"):
        model.assess(X + 0.01)


def test_a_subclass_with_its_own_predict_is_asked(rows):
    X, y = rows

    class Contrary(RandomForestClassifier):
        def predict(self, X):
            return 1 - super().predict(X)

    model = TrustedClassifier(Contrary(5, random_state=0), random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.assess(X).predicted, 1 - model.predict_proba(X).argmax(axis=1))


def test_an_object_with_its_own_predict_is_asked(rows):
    X, y = rows
    forest = RandomForestClassifier(5, random_state=0).fit(X[:120], y[:120])
    forest.predict = lambda X: np.ones(len(X), dtype=int)
    model = TrustedClassifier(FrozenEstimator(forest)).fit(X[:120], y[:120], X_val=X[120:], y_val=y[120:])
    assert (model.assess(X).predicted == 1).all()
