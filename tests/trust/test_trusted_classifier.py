"""How TrustedClassifier learns trust, what it promises, and what it refuses."""

import pickle  # noqa: TID251

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from neighboragg import NeighborAgg, TrustedClassifier
from neighboragg._core.inputs import holdout_mask
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.methods import MaxConfidence, TrustScore


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900], y[:900], X[900:], y[900:]


@pytest.fixture(scope="module")
def rows():
    return make_classification(300, 5, n_informative=4, n_redundant=0, flip_y=0.1, random_state=1)


def weak_classifier():
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=20, tol=0.1))


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda stack: stack,
        lambda stack: make_pipeline(StandardScaler(), stack),
        lambda stack: GridSearchCV(stack, {"stack_method": ["auto"]}, cv=2),
    ],
)
def test_stacking_that_hides_its_probabilities_before_fit(rows, wrapped):
    stack = wrapped(StackingClassifier([("lr", LogisticRegression())], cv=2))
    assert not hasattr(stack, "predict_proba")
    model = TrustedClassifier(stack, NeighborAgg(effort="fast", learned_metric=False)).fit(*rows)
    assert model.score_samples(rows[0][:5]).shape == (5,)


class TestWaysToValidate:
    @pytest.mark.full(keep=1)
    @pytest.mark.parametrize("settings", [{}, {"cv": 3}], ids=["hold-out", "cross-validation"])
    def test_beats_max_softmax_on_digits(self, digits, settings):
        X, y, X_test, y_test = digits
        ours = TrustedClassifier(weak_classifier(), random_state=0, **settings).fit(X, y)
        plain = TrustedClassifier(weak_classifier(), MaxConfidence(), random_state=0, **settings).fit(X, y)
        correct = ours.predict(X_test) == y_test
        assert roc_auc_score(correct, ours.score_samples(X_test)) > 0.02 + roc_auc_score(
            correct, plain.score_samples(X_test)
        )

    def test_frozen_classifier_is_not_refitted(self, rows):
        X, y = rows
        classifier = LogisticRegression().fit(X[:100], y[:100])
        before = classifier.coef_.copy()
        model = TrustedClassifier(FrozenEstimator(classifier))
        model.fit(X[:100], y[:100], X_val=X[100:200], y_val=y[100:200])
        np.testing.assert_array_equal(classifier.coef_, before)
        np.testing.assert_array_equal(model.predict(X), classifier.predict(X))

    def test_held_out_rows_are_not_shown_to_the_classifier(self, rows):
        X, y = rows
        model = TrustedClassifier(LogisticRegression(), random_state=0, validation_fraction=0.3).fit(X, y)
        held_out = model.validation_indices_
        assert len(held_out) == pytest.approx(90, abs=2)
        train = np.setdiff1d(np.arange(len(X)), held_out)
        np.testing.assert_array_equal(
            model.estimator_.coef_, LogisticRegression().fit(X[train], y[train]).coef_
        )

    def test_cross_validation_refits_on_all_rows(self, rows):
        X, y = rows
        model = TrustedClassifier(LogisticRegression(), cv=KFold(3)).fit(X, y)
        np.testing.assert_array_equal(model.estimator_.coef_, LogisticRegression().fit(X, y).coef_)
        assert model.validation_indices_ is None

    def test_same_seed_same_bits(self, rows):
        X, y = rows
        first, second = (
            TrustedClassifier(RandomForestClassifier(10, random_state=0), random_state=3).fit(X, y)
            for _ in range(2)
        )
        np.testing.assert_array_equal(first.score_samples(X), second.score_samples(X))

    def test_every_class_keeps_a_training_row(self):
        codes = np.repeat([0, 1, 2, 3], [1, 2, 50, 7])
        for seed in range(50):
            held_out = holdout_mask(codes, 0.9, np.random.RandomState(seed))
            assert set(codes[~held_out]) == {0, 1, 2, 3}
            assert held_out.any()

    def test_one_row_is_held_out_at_least(self):
        held_out = holdout_mask(np.array([0, 0, 1]), 1e-9, np.random.RandomState(0))
        assert held_out.sum() == 1

    def test_sample_weight_reaches_the_classifier(self, rows):
        X, y = rows
        weight = np.where(y == 1, 10.0, 0.1)
        for classifier in (LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())):
            for settings in ({}, {"cv": 2}):
                plain = TrustedClassifier(classifier, random_state=0, **settings).fit(X, y)
                tilted = TrustedClassifier(classifier, random_state=0, **settings).fit(X, y, weight)
                assert tilted.predict(X).mean() > plain.predict(X).mean() + 0.1


class TestFeatures:
    @pytest.mark.parametrize(
        "features", ["auto", "passthrough", MinMaxScaler(), lambda X: np.asarray(X)[:, :2]]
    )
    def test_kinds_of_features(self, rows, features):
        X, y = rows
        model = TrustedClassifier(LogisticRegression(), features=features, random_state=0).fit(X, y)
        assert np.isfinite(model.score_samples(X)).all()

    def test_passthrough_searches_the_rows_themselves(self, rows):
        X, y = rows
        model = TrustedClassifier(LogisticRegression(), features="passthrough", random_state=0).fit(X, y)
        distances, indices = model.kneighbors(X[:5], 1)
        c = y[:5]
        np.testing.assert_array_equal(indices[np.arange(5), c, 0], np.arange(5))
        np.testing.assert_array_equal(distances[np.arange(5), c, 0], 0)

    def test_a_transformer_is_cloned(self, rows):
        X, y = rows
        scaler = MinMaxScaler()
        TrustedClassifier(LogisticRegression(), features=scaler, random_state=0).fit(X, y)
        assert not hasattr(scaler, "scale_")


class TestExplanation:
    def test_neighbors_are_positions_in_the_rows_given(self, rows):
        X, y = rows
        model = TrustedClassifier(LogisticRegression(), random_state=0).fit(X, y)
        explanation = model.explain(X[:4] + 0.01)
        for c in range(2):
            np.testing.assert_array_equal(y[explanation.indices[:, c]], np.full((4, 20), c))
        np.testing.assert_array_equal(explanation.indices, model.kneighbors(X[:4] + 0.01)[1])
        assert str(explanation).count("Predicted") == 4

    @pytest.mark.parametrize("given", [False, True], ids=["held out", "given"])
    def test_neighbors_are_called_by_the_index_of_the_frame(self, rows, given):
        X, y = rows
        frame = pd.DataFrame(X, columns=list("abcde"), index=[f"customer {i}" for i in range(300)])
        model = TrustedClassifier(LogisticRegression(), random_state=0)
        if given:
            model.fit(frame[:150], y[:150], X_val=frame[150:250], y_val=y[150:250])
        else:
            model.fit(frame[:250], y[:250])
        explanation = model.explain(frame[250:252])
        c, nearest = explanation.predicted[1], explanation.indices[1, explanation.predicted[1], 0]
        words = str(explanation)
        assert "customer 251: predicted" in words
        assert f"nearest {model.classes_[c]}: customer {nearest} at " in words
        assert y[nearest] == c
        assert f", here {X[251, 0]:.4g}" in words
        again = pickle.loads(pickle.dumps(model))
        assert f"nearest {model.classes_[c]}: customer {nearest} at " in str(again.explain(frame[250:252]))
        assert "here" not in str(again.explain(frame[250:252]))

    def test_neighbors_in_a_frame_with_a_column_of_vectors(self, rows):
        X, y = rows
        frame = pd.DataFrame({"age": X[:, 0], "embedding": list(X[:, 1:])})
        pick = FunctionTransformer(
            lambda frame: np.column_stack([frame["age"], np.stack(frame["embedding"])])
        )
        for classifier in (LogisticRegression(), make_pipeline(pick, LogisticRegression())):
            model = TrustedClassifier(classifier, random_state=0).fit(frame[:250], y[:250])
            assert f"age {X[int(model.explain(frame[250:251]).indices[0, 0, 0]), 0]:.4g}, here" in str(
                model.explain(frame[250:251])
            )

    def test_given_validation_rows_follow_the_training_rows(self, rows):
        X, y = rows
        model = TrustedClassifier(LogisticRegression()).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
        _, indices = model.kneighbors(X[200:210], 1)
        np.testing.assert_array_equal(indices[np.arange(10), y[200:210], 0], np.arange(200, 210))

    def test_other_methods_have_no_neighbors(self, rows):
        X, y = rows
        model = TrustedClassifier(LogisticRegression(), TrustScore(), random_state=0).fit(X, y)
        for name in ("explain", "familiarity", "kneighbors"):
            assert hasattr(TrustedClassifier(LogisticRegression()), name)
            assert not hasattr(TrustedClassifier(LogisticRegression(), TrustScore()), name)
            with pytest.raises(AttributeError) as error:
                getattr(model, name)
            assert str(error.value) == f"This 'TrustedClassifier' has no attribute {name!r}"
            assert str(error.value.__cause__) == (
                f"{name} needs a method with neighbors; TrustScore has none.\nHint: method=NeighborAgg()."
            )


class NoProbabilities(Perceptron):
    """A classifier without predict_proba."""


LR = LogisticRegression()
REFUSALS = [
    (
        lambda X, y: TrustedClassifier(FrozenEstimator(LogisticRegression().fit(X, y))).fit(X, y),
        InvalidInputError,
        "TrustedClassifier got a frozen classifier but no X_val and y_val. Probabilities on the rows it was "
        "trained on are over-confident, so trust cannot be learned from them.\n"
        "Hint: fit(X_train, y_train, X_val=X_val, y_val=y_val) with rows the classifier has not seen.",
    ),
    (
        lambda X, y: TrustedClassifier(LR).fit(X, y, X_val=X),
        InvalidInputError,
        "TrustedClassifier.fit got X_val without y_val.\nHint: pass both, or neither.",
    ),
    (
        lambda X, y: TrustedClassifier(LR).fit(X, y, y_val=y),
        InvalidInputError,
        "TrustedClassifier.fit got y_val without X_val.\nHint: pass both, or neither.",
    ),
    (
        lambda X, y: TrustedClassifier(LR).fit(X, None),
        InvalidInputError,
        "TrustedClassifier requires y to be passed, but the target y is None.",
    ),
    (
        lambda X, y: TrustedClassifier(LR).fit(X, y[:-1]),
        InvalidInputError,
        "X and y passed to TrustedClassifier must have the same number of rows. Got 300 and 299.",
    ),
    (
        lambda X, y: TrustedClassifier(LR).fit(X, y, np.ones(3)),
        InvalidInputError,
        "X and sample_weight passed to TrustedClassifier must have the same number of rows. Got 300 and 3.",
    ),
    (
        lambda X, y: TrustedClassifier(LR).fit(X[:, 0], y),
        InvalidInputError,
        "X passed to TrustedClassifier must have two dimensions. Got a 1-D array of shape (300,).\n"
        "Hint: Reshape your data: X.reshape(1, -1) for a single row, X.reshape(-1, 1) for a single feature.",
    ),
    (
        lambda X, y: TrustedClassifier(LR, validation_fraction=1.5).fit(X, y),
        InvalidParameterError,
        "The 'validation_fraction' parameter of TrustedClassifier must be a number in (0, 1). Got 1.5 instead.",
    ),
    (
        lambda X, y: TrustedClassifier(LR).fit(X[:2], [0, 1]),
        InvalidInputError,
        "TrustedClassifier cannot hold out validation rows: n_samples=2 and no class has two.\n"
        "Hint: pass more rows, or X_val and y_val.",
    ),
    (
        lambda X, y: TrustedClassifier(LR, cv=PredefinedSplit([-1] * 299 + [0])).fit(X, y),
        InvalidInputError,
        "cv passed to TrustedClassifier leaves 299 rows without an out-of-fold prediction, the first is row 0.\n"
        "Hint: use a partition of the rows, such as cv=5; for rows in the order of time, leave out cv and pass time= "
        "to fit.",
    ),
    (
        lambda X, y: TrustedClassifier("forest").fit(X, y),
        InvalidParameterError,
        "The 'estimator' parameter of TrustedClassifier must be a classifier with predict_proba. "
        "Got 'forest' instead.",
    ),
    (
        lambda X, y: TrustedClassifier(LinearRegression()).fit(X, y),
        InvalidParameterError,
        "The 'estimator' parameter of TrustedClassifier must be a classifier with predict_proba. "
        "Got LinearRegression() instead.",
    ),
    (
        lambda X, y: TrustedClassifier(NoProbabilities()).fit(X, y),
        InvalidParameterError,
        "The 'estimator' parameter of TrustedClassifier must be a classifier with predict_proba. "
        "Got NoProbabilities() instead.\nHint: wrap it, e.g. CalibratedClassifierCV(estimator).",
    ),
    (
        lambda X, y: TrustedClassifier(LR, method="pool").fit(X, y),
        InvalidParameterError,
        "The 'method' parameter of TrustedClassifier must be a trust method of neighboragg.methods. "
        "Got 'pool' instead.",
    ),
    (
        lambda X, y: TrustedClassifier(LR, features="raw").fit(X, y),
        InvalidParameterError,
        "The 'features' parameter must be 'auto', 'passthrough', a transformer, a callable, or a mapping of names to "
        "these. Got 'raw' instead.",
    ),
    (
        lambda X, y: TrustedClassifier(LR, NeighborAgg(n_neighbors=0)).fit(X, y),
        InvalidParameterError,
        "The 'n_neighbors' parameter of NeighborAgg must be an int >= 1. Got 0 instead.",
    ),
    (
        lambda X, y: TrustedClassifier(LR, NeighborAgg("mean")).fit(X, y),
        InvalidParameterError,
        "The 'aggregator' parameter of NeighborAgg must be one of 'network', 'pool' or an Aggregator. "
        "Got 'mean' instead.",
    ),
    (
        lambda X, y: TrustedClassifier(LR, random_state=0).fit(X, y).score_labels(X[:2], [0, 7]),
        InvalidInputError,
        "y passed to TrustedClassifier contains labels that are not among the 2 known classes: 7.\n"
        "Hint: known classes are 0, 1.",
    ),
    (
        lambda X, y: TrustedClassifier(make_pipeline(StandardScaler(), NoWeights()), random_state=0).fit(
            X, y, np.ones(len(y))
        ),
        InvalidParameterError,
        "TrustedClassifier got sample_weight, but Pipeline.fit does not accept it.\n"
        "Hint: leave out sample_weight, or use a classifier that supports it.",
    ),
]


class NoWeights(LogisticRegression):
    """A classifier whose fit takes no weights."""

    def fit(self, X, y):
        return super().fit(X, y)


@pytest.mark.parametrize(("call", "kind", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_refusals_say_what_and_how_to_fix_it(rows, call, kind, message):
    with pytest.raises(kind) as error:
        call(*rows)
    assert str(error.value) == message


@pytest.mark.parametrize("name", ["predict", "predict_proba", "predict_trust", "score_samples", "explain"])
def test_not_fitted(rows, name):
    with pytest.raises(NotFittedError):
        getattr(TrustedClassifier(LR), name)(rows[0])


class TestHardData:
    def fit(self, X, y, classifier=None):
        classifier = RandomForestClassifier(10, random_state=0) if classifier is None else classifier
        return TrustedClassifier(classifier, random_state=0).fit(X, y)

    def test_a_class_with_one_row(self, rows):
        X, y = rows
        y = y.copy()
        y[7] = 5
        trust = self.fit(X, y).predict_trust(X)
        assert trust.shape == (len(X), 3)
        np.testing.assert_allclose(trust.sum(axis=1), 1)

    def test_a_single_class(self, rows):
        X, y = rows
        model = self.fit(X, np.zeros_like(y))
        np.testing.assert_array_equal(model.score_samples(X), 1)

    def test_duplicated_rows(self, rows):
        X, y = rows
        X = np.tile(X[:20], (15, 1))
        assert np.isfinite(self.fit(X, y).score_samples(X)).all()

    def test_constant_features(self, rows):
        X, y = rows
        assert np.isfinite(self.fit(np.ones_like(X), y).score_samples(X)).all()

    @pytest.mark.parametrize("scale", [1e-30, 1e30])
    def test_extreme_scales(self, rows, scale):
        X, y = rows
        classifier = make_pipeline(StandardScaler(), LogisticRegression())
        plain, scaled = self.fit(X, y, classifier), self.fit(X * scale, y, classifier)
        np.testing.assert_allclose(scaled.score_samples(X * scale), plain.score_samples(X), atol=1e-6)

    def test_large_integers(self, rows):
        X, y = rows
        X = (X * 1e17).astype(np.int64)
        assert np.isfinite(self.fit(X, y).score_samples(X)).all()

    def test_float32_is_close_to_float64(self, rows):
        X, y = rows
        classifier = LogisticRegression()
        single = self.fit(X.astype(np.float32), y, classifier).score_samples(X.astype(np.float32))
        np.testing.assert_allclose(single, self.fit(X, y, classifier).score_samples(X), atol=1e-2)

    def test_numbers_as_objects(self, rows):
        X, y = rows
        objects, plain = self.fit(X.astype(object), y), self.fit(X, y)
        np.testing.assert_array_equal(objects.score_samples(X.astype(object)), plain.score_samples(X))

    def test_no_rows_to_score(self, rows):
        model = TrustedClassifier(LR, features="passthrough", random_state=0).fit(*rows)
        with pytest.raises(ValueError, match="minimum of 1 is required"):
            model.score_samples(np.empty((0, 5)))
