"""TrustedClassifier behaves as scikit-learn's users expect."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lightgbm import LGBMClassifier
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from xgboost import XGBClassifier

from neighboragg import NeighborAgg, TrustedClassifier
from neighboragg.methods import MaxConfidence, TrustScore


@pytest.mark.full(keep=5)
@parametrize_with_checks([TrustedClassifier(LogisticRegression())])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def rows():
    return make_classification(400, 6, n_informative=4, n_classes=3, flip_y=0.1, random_state=0)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 300
    data = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "color": rng.choice(["red", "green", "blue"], n),
            "size": pd.Categorical(rng.choice(["s", "m"], n)),
            "count": rng.integers(0, 5, n),
        }
    )
    noise = rng.normal(size=n)
    return data, np.where(data["age"] / 10 + (data["color"] == "red") + noise > 4.4, "yes", "no")


def preprocessed():
    return make_pipeline(
        make_column_transformer((StandardScaler(), ["age", "count"]), (OneHotEncoder(), ["color", "size"])),
        LogisticRegression(),
    )


class TestWrapping:
    def test_labels_and_probabilities_are_the_classifiers_own(self, rows):
        X, y = rows
        model = TrustedClassifier(LogisticRegression(), random_state=0).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), model.estimator_.predict(X))
        np.testing.assert_array_equal(model.predict_proba(X), model.estimator_.predict_proba(X))
        assert model.score(X, y) == model.estimator_.score(X, y)

    def test_clone_forgets_the_fit_and_keeps_parameters(self, rows):
        X, y = rows
        model = TrustedClassifier(LogisticRegression(C=0.5), TrustScore(alpha=0.1, filtering="density"), cv=3)
        copy = clone(model.fit(X, y))
        assert not hasattr(copy, "method_")
        assert copy.estimator.C == 0.5
        assert copy.method.alpha == 0.1

    def test_inside_a_pipeline(self, rows):
        X, y = rows
        pipeline = make_pipeline(StandardScaler(), TrustedClassifier(LogisticRegression(), random_state=0))
        pipeline.fit(X, y)
        assert pipeline.score_samples(X).shape == (len(X),)

    def test_grid_search_reaches_nested_parameters(self, rows):
        X, y = rows
        search = GridSearchCV(
            TrustedClassifier(LogisticRegression(), NeighborAgg(learned_metric=False), random_state=0),
            {"estimator__C": [0.01, 1.0], "method__n_neighbors": [3, 10]},
            cv=2,
        ).fit(X, y)
        assert set(search.best_params_) == {"estimator__C", "method__n_neighbors"}
        assert search.best_estimator_.score_samples(X).shape == (len(X),)

    def test_a_threshold_classifier_is_judged_on_what_it_predicts(self, rows):
        X, y = rows
        y = (y == 1).astype(int)
        model = TrustedClassifier(
            FixedThresholdClassifier(LogisticRegression(), threshold=0.9), MaxConfidence(), random_state=0
        ).fit(X, y)
        proba, predicted = model.predict_proba(X), model.predict(X)
        assert (predicted != proba.argmax(axis=1)).any()
        np.testing.assert_allclose(model.score_samples(X), proba[np.arange(len(X)), predicted])

    @pytest.mark.full(keep=3)
    @pytest.mark.parametrize(
        "classifier",
        [
            LGBMClassifier(n_estimators=5, verbose=-1),
            XGBClassifier(n_estimators=5),
            RandomForestClassifier(10, random_state=0),
            HistGradientBoostingClassifier(max_iter=5),
        ],
        ids=lambda classifier: type(classifier).__name__,
    )
    def test_any_classifier_with_probabilities(self, rows, classifier):
        X, y = rows
        model = TrustedClassifier(classifier, random_state=0).fit(X, y)
        trust, correct = model.score_samples(X), model.predict(X) == y
        assert trust[correct].mean() > trust[~correct].mean()

    def test_an_object_with_only_the_two_attributes(self, rows):
        X, y = rows
        inner = LogisticRegression().fit(X[:200], y[:200])

        class Bare:
            classes_ = inner.classes_

            def fit(self, X, y):
                return self

            def predict(self, X):
                return inner.predict(X)

            def predict_proba(self, X):
                return inner.predict_proba(X)

        frozen = FrozenEstimator(Bare())
        model = TrustedClassifier(frozen).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
        assert model.score_samples(X).shape == (len(X),)


class TestKindsOfRows:
    def test_pandas_frame_with_categories_through_a_pipeline(self, frame):
        X, y = frame
        model = TrustedClassifier(preprocessed(), random_state=0).fit(X, y)
        assert list(model.feature_names_in_) == list(X.columns)
        assert list(model.classes_) == ["no", "yes"]
        assert model.predict_trust(X).shape == (len(X), 2)

    def test_pandas_frame_with_categories_without_a_pipeline(self, frame):
        X, y = frame
        X = X.astype({"color": "category"})
        classifier = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
        trust = TrustedClassifier(classifier, random_state=0).fit(X, y).score_samples(X)
        assert np.isfinite(trust).all()

    def test_polars_equals_pandas(self, frame):
        X, y = frame
        numbers = X[["age", "count"]]
        pandas_model = TrustedClassifier(LogisticRegression(), random_state=0).fit(numbers, y)
        polars_numbers = pl.from_pandas(numbers)
        polars_model = TrustedClassifier(LogisticRegression(), random_state=0).fit(polars_numbers, y)
        np.testing.assert_array_equal(
            pandas_model.score_samples(numbers), polars_model.score_samples(polars_numbers)
        )

    def test_sparse_rows(self, rows):
        X, y = rows
        model = TrustedClassifier(LogisticRegression(), random_state=0).fit(sparse.csr_matrix(X), y)
        dense = TrustedClassifier(LogisticRegression(), random_state=0).fit(X, y)
        np.testing.assert_allclose(
            model.score_samples(sparse.csr_matrix(X)), dense.score_samples(X), atol=0.02
        )

    def test_texts_through_a_pipeline(self):
        rng = np.random.default_rng(0)
        words = np.array([[f"w{i}" for i in range(300)], [f"v{i}" for i in range(300)]])
        y = rng.integers(0, 2, 120)
        texts = [" ".join(rng.choice(words[label], 8)) + " shared" for label in y]
        clf = make_pipeline(TfidfVectorizer(), LogisticRegression())
        model = TrustedClassifier(clf, random_state=0).fit(texts, y)
        assert model.score_samples(texts).shape == (120,)

    def test_missing_values_if_the_classifier_takes_them(self, rows):
        X, y = rows
        X = X.copy()
        X[::7, 0] = np.nan
        model = TrustedClassifier(HistGradientBoostingClassifier(max_iter=5), random_state=0).fit(X, y)
        assert np.isfinite(model.score_samples(X)).all()

    def test_string_labels_equal_integer_labels(self, rows):
        X, y = rows
        names = np.array(["ape", "bee", "cat"])
        by_number = TrustedClassifier(LogisticRegression(), random_state=0).fit(X, y)
        by_name = TrustedClassifier(LogisticRegression(), random_state=0).fit(X, names[y])
        np.testing.assert_array_equal(by_number.score_samples(X), by_name.score_samples(X))
        np.testing.assert_array_equal(by_number.score_labels(X, y), by_name.score_labels(X, names[y]))

    def test_iris_as_frame_and_series(self):
        X, y = load_iris(return_X_y=True, as_frame=True)
        model = TrustedClassifier(LogisticRegression(max_iter=500), random_state=0).fit(X, y)
        assert model.kneighbors(X, 3)[0].shape == (150, 3, 3)
