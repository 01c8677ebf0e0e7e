"""What has seen the labels of rows cannot teach trust in them: it is refused, however deeply it is nested."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler, TargetEncoder
from sklearn.random_projection import GaussianRandomProjection

from neighboragg import MislabelDetector, TrustedClassifier
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, TrustWarning

ALL = list(range(30))


@pytest.fixture(scope="module")
def noise():
    return np.random.default_rng(0).normal(size=(240, 30)), np.arange(240) % 2


SUPERVISED = {
    "select k best": (SelectKBest(k=4), "SelectKBest"),
    "select from model": (SelectFromModel(LogisticRegression(), max_features=4), "SelectFromModel"),
    "recursive elimination": (RFE(LogisticRegression(), n_features_to_select=4), "RFE"),
    "discriminants": (LinearDiscriminantAnalysis(), "LinearDiscriminantAnalysis"),
    "column transformer": (make_column_transformer((SelectKBest(k=4), ALL)), "SelectKBest"),
    "target encoder": (make_column_transformer((TargetEncoder(), [0])), "TargetEncoder"),
    "union": (make_union(PCA(2), SelectFromModel(RandomForestClassifier(3))), "SelectFromModel"),
    "nested pipeline": (make_pipeline(PCA(9), make_pipeline(SelectKBest(k=4))), "SelectKBest"),
}


@pytest.mark.parametrize("name", SUPERVISED)
@pytest.mark.parametrize("place", ["pipeline", "features"])
def test_cross_validation_refuses_vectors_learned_from_labels(noise, name, place):
    transformer, culprit = SUPERVISED[name]
    if place == "pipeline":
        settings = {"estimator": make_pipeline(transformer, LogisticRegression())}
    else:
        settings = {"estimator": LogisticRegression(), "features": transformer}
    with pytest.raises(InvalidParameterError) as error:
        TrustedClassifier(cv=3, **settings).fit(*noise)
    assert str(error.value) == (
        f"TrustedClassifier with cv cannot use vectors of {culprit}, which learns from labels: rows would look "
        "closer to their own class than new rows do.\nHint: leave out cv to hold out validation rows, or pass "
        "features='passthrough' or a transformer that needs no labels."
    )


@pytest.mark.parametrize(
    "transformer",
    [
        StandardScaler(),
        make_union(PCA(3), VarianceThreshold()),
        make_column_transformer((GaussianRandomProjection(3), ALL)),
    ],
    ids=["scaler", "union", "random projection"],
)
def test_vectors_learned_without_labels_are_fine(noise, transformer):
    TrustedClassifier(LogisticRegression(), features=transformer, cv=2).fit(*noise)


@pytest.mark.parametrize("name", ["select k best", "select from model"])
def test_held_out_rows_show_that_noise_cannot_be_trusted(noise, name):
    X, y = noise
    model = TrustedClassifier(make_pipeline(SUPERVISED[name][0], LogisticRegression()), random_state=0)
    new = np.random.default_rng(1).normal(size=(400, 30))
    assert model.fit(X, y).score_samples(new).mean() < 0.56


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize(
    ("wrap", "outer"),
    [
        (lambda frozen: make_pipeline(StandardScaler(), frozen), "Pipeline"),
        (lambda frozen: CalibratedClassifierCV(frozen), "CalibratedClassifierCV"),
        (lambda frozen: GridSearchCV(make_pipeline(StandardScaler(), frozen), {}, cv=2), "GridSearchCV"),
    ],
    ids=["pipeline", "calibrated", "search"],
)
def test_a_frozen_part_needs_validation_rows(noise, wrap, outer, cv):
    X, y = noise
    classifier = wrap(FrozenEstimator(LogisticRegression().fit(X[:120], y[:120])))
    with pytest.raises(InvalidInputError) as error:
        TrustedClassifier(classifier, cv=cv).fit(X[:120], y[:120])
    assert str(error.value) == (
        f"TrustedClassifier got a frozen LogisticRegression inside {outer} but no X_val and y_val. Its predictions "
        "for the rows it was trained on are over-confident, so trust cannot be learned from them.\n"
        "Hint: fit(X_train, y_train, X_val=X_val, y_val=y_val) with rows it has not seen."
    )
    with pytest.warns(TrustWarning, match="and unrelated probabilities would"):
        model = TrustedClassifier(classifier, cv=cv).fit(X[:120], y[:120], X_val=X[120:], y_val=y[120:])
    assert model.score_samples(np.random.default_rng(1).normal(size=(400, 30))).mean() < 0.56


def test_frozen_features_that_saw_labels_need_validation_rows(noise):
    X, y = noise
    with pytest.raises(InvalidInputError) as error:
        TrustedClassifier(LogisticRegression(), features=FrozenEstimator(SelectKBest(k=4).fit(X, y))).fit(
            X, y
        )
    assert str(error.value).startswith("TrustedClassifier got a frozen SelectKBest as features but no X_val")


def test_a_frozen_scaler_is_fine(noise):
    X, y = noise
    scaler = FrozenEstimator(StandardScaler().fit(X))
    TrustedClassifier(make_pipeline(scaler, LogisticRegression()), cv=2).fit(X, y)


def test_labels_are_not_judged_by_a_classifier_with_a_frozen_part(noise):
    X, y = noise
    frozen = make_pipeline(StandardScaler(), FrozenEstimator(LogisticRegression().fit(X, y)))
    with pytest.raises(InvalidParameterError) as error:
        MislabelDetector(frozen).fit(X, y)
    assert str(error.value) == (
        "The 'estimator' parameter of MislabelDetector is a Pipeline with a frozen part, so it cannot be "
        "cross-validated. Its probabilities for its own training rows would repeat wrong labels.\n"
        "Hint: pass the unfrozen classifier, or pass its out-of-fold probabilities as proba."
    )
