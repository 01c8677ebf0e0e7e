"""The contract that every trust method keeps: NeighborAgg in its configurations, and all baselines."""

import inspect
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

import neighboragg
from neighboragg import NeighborAgg, methods
from neighboragg._pool.network import NetworkAggregator
from neighboragg.exceptions import InvalidInputError
from neighboragg.methods import Mahalanobis, TopLabelCalibration, TrustMethod, TrustScore
from neighboragg.search import Exact

# Found by looking, so that a method added later must keep the contract too. Vectors that begin with logits are in
# test_baseline_logits.py.
KINDS = {
    name: kind
    for name in ["NeighborAgg", *methods.__all__]
    if inspect.isclass(kind := getattr(methods, name))
    and issubclass(kind, TrustMethod)
    and not inspect.isabstract(kind)
}
CONFIGURATIONS = {
    **{name: kind() for name, kind in KINDS.items()},
    "Mahalanobis: no shrinkage": Mahalanobis(shrinkage=0.0),
    "TopLabelCalibration: ties broken": TopLabelCalibration(points_per_bin=10, break_ties=True),
    "TrustScore: tenth neighbor, filtered": TrustScore(n_neighbors=10, filtering="density", alpha=0.1),
    "NeighborAgg: network": NeighborAgg("network"),
    "NeighborAgg: network, T = 1": NeighborAgg(NetworkAggregator(bandwidth=1.0)),
    "NeighborAgg: no learned metric": NeighborAgg(learned_metric=False),
    "NeighborAgg: fast": NeighborAgg(effort="fast"),
    "NeighborAgg: second opinions": NeighborAgg(
        learned_metric=False,
        # Fewer trees could leave a row without any that has not seen it.
        second_opinions=[
            RandomForestClassifier(40, random_state=0),
            HistGradientBoostingClassifier(max_iter=8),
        ],
    ),
    "NeighborAgg: cosine": NeighborAgg(search=Exact("cosine"), n_neighbors=3),
}
# Fitted once only.
SLOW = {"NeighborAgg: best effort": NeighborAgg(effort="best")}
LABELS = np.array(["bird", "cat", "dog"])


def make_rows(n, seed):
    """Three clouds; the classifier will see only half of the features that tell them apart."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % 3)
    return rng.normal(size=(n, 4)) + 2.2 * np.eye(3, 4)[codes] + 1.2 * np.eye(3, 4, 1)[codes], codes


class Problem:
    """Training, validation and test rows, with probabilities of a classifier that is often wrong."""

    def __init__(self, n_train=90, n_val=150, n_test=150):
        self.X, self.y = make_rows(n_train, 0)
        self.X_val, self.y_val = make_rows(n_val, 1)
        self.X_test, self.y_test = make_rows(n_test, 2)
        model = LogisticRegression()
        self.P_oof = cross_val_predict(model, self.X[:, :2], self.y, cv=3, method="predict_proba")
        model.fit(self.X[:, :2], self.y)
        self.P_val = model.predict_proba(self.X_val[:, :2])
        self.P_test = model.predict_proba(self.X_test[:, :2])

    def fit(self, method, labels=LABELS):
        return clone(method).fit(
            self.X, labels[self.y], X_val=self.X_val, y_val=labels[self.y_val], proba_val=self.P_val
        )


PROBLEM = Problem()


def fit_with(method, **changes):
    arguments = {
        "X": PROBLEM.X,
        "y": LABELS[PROBLEM.y],
        "X_val": PROBLEM.X_val,
        "y_val": LABELS[PROBLEM.y_val],
        "proba_val": PROBLEM.P_val,
    }
    arguments.update(changes)
    return method.fit(arguments.pop("X"), arguments.pop("y"), **arguments)


def assert_close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def assert_sane(method, n_classes=3, X=PROBLEM.X_test, P=PROBLEM.P_test):
    """Finite trust of the right shape for every class."""
    trust = method.predict_trust(X, P)
    assert trust.shape == (len(X), n_classes)
    assert trust.dtype == np.float64
    assert np.isfinite(trust).all()
    return trust


@cache
def fitted_once(name):
    return PROBLEM.fit({**CONFIGURATIONS, **SLOW}[name])


@pytest.fixture(params=[*CONFIGURATIONS, *(pytest.param(name, marks=pytest.mark.full) for name in SLOW)])
def fitted(request):
    return fitted_once(request.param)


@pytest.fixture(params=CONFIGURATIONS)
def name(request):
    return request.param


@pytest.fixture
def method(name):
    return clone(CONFIGURATIONS[name])


# What all methods inherit is asked of the default and of one without neighbors in the quick run.
INHERITED = [
    name if name in ("NeighborAgg", "MaxConfidence") else pytest.param(name, marks=pytest.mark.full)
    for name in CONFIGURATIONS
]


def test_the_contract_covers_the_known_methods():
    assert {"MaxConfidence", "NeighborAgg", "TrustScore"} <= set(KINDS)
    assert methods.__all__ == sorted(methods.__all__, key=lambda name: (not name.isupper(), name))


class TestAnswers:
    def test_shapes(self, fitted):
        assert_sane(fitted)
        scores = fitted.score_samples(PROBLEM.X_test, PROBLEM.P_test)
        assert scores.shape == (150,)
        assert scores.dtype == np.float64
        np.testing.assert_array_equal(fitted.classes_, LABELS)
        assert fitted.n_features_in_ == 4

    @pytest.mark.parametrize(
        "name",
        [
            pytest.param(name, marks=pytest.mark.full) if name in SLOW else name
            for name in [*CONFIGURATIONS, *SLOW]
        ],
    )
    def test_correct_predictions_are_trusted_more(self, name):
        fitted = fitted_once(name)
        correct = PROBLEM.P_test.argmax(axis=1) == PROBLEM.y_test
        assert 30 < correct.sum() < 130
        assert roc_auc_score(correct, fitted.score_samples(PROBLEM.X_test, PROBLEM.P_test)) > 0.6

    def test_score_is_the_trust_in_the_predicted_class(self, fitted):
        trust = fitted.predict_trust(PROBLEM.X_test, PROBLEM.P_test)
        rows = np.arange(150)
        np.testing.assert_array_equal(
            fitted.score_samples(PROBLEM.X_test, PROBLEM.P_test), trust[rows, PROBLEM.P_test.argmax(axis=1)]
        )
        predicted = np.random.default_rng(0).integers(0, 3, 150)
        for given in (LABELS[predicted], LABELS[predicted].tolist(), LABELS[predicted].astype(object)):
            np.testing.assert_array_equal(
                fitted.score_samples(PROBLEM.X_test, PROBLEM.P_test, y_pred=given), trust[rows, predicted]
            )

    def test_score_of_labels(self, fitted):
        trust = fitted.predict_trust(PROBLEM.X_test, PROBLEM.P_test)
        np.testing.assert_array_equal(
            fitted.score_labels(PROBLEM.X_test, LABELS[PROBLEM.y_test], PROBLEM.P_test),
            trust[np.arange(150), PROBLEM.y_test],
        )

    def test_order_of_rows_does_not_matter(self, fitted):
        trust = fitted.predict_trust(PROBLEM.X_test, PROBLEM.P_test)
        order = np.random.default_rng(0).permutation(150)
        assert_close(fitted.predict_trust(PROBLEM.X_test[order], PROBLEM.P_test[order]), trust[order])

    def test_rows_are_judged_one_by_one(self, fitted):
        trust = fitted.predict_trust(PROBLEM.X_test[:8], PROBLEM.P_test[:8])
        for i in range(8):
            alone = fitted.predict_trust(PROBLEM.X_test[i : i + 1], PROBLEM.P_test[i : i + 1])
            assert_close(alone, trust[i : i + 1])

    def test_no_rows(self, fitted):
        assert fitted.predict_trust(np.empty((0, 4)), np.empty((0, 3))).shape == (0, 3)
        assert fitted.score_samples(np.empty((0, 4)), np.empty((0, 3))).shape == (0,)

    def test_arguments_stay_as_they_were(self, fitted):
        X, P = PROBLEM.X_test.copy(), PROBLEM.P_test.copy()
        trust = fitted.predict_trust(X, P)
        trust[:] = 0.0
        np.testing.assert_array_equal(X, PROBLEM.X_test)
        np.testing.assert_array_equal(P, PROBLEM.P_test)
        assert fitted.predict_trust(X, P).any()

    def test_probabilities_of_zero_and_one(self, fitted):
        assert_sane(fitted, P=np.eye(3)[PROBLEM.P_test.argmax(axis=1)])
        assert_sane(fitted, P=np.full((150, 3), 1 / 3))

    @pytest.mark.parametrize("away", [0.0, 1e3, 1e100, -1e140])
    def test_rows_far_away(self, fitted, away):
        assert_sane(fitted, X=np.full((150, 4), away))

    def test_few_rows_with_many_classes(self):
        n_classes = 60
        method = methods.MaxConfidence().fit(
            np.zeros((300, 1)), np.arange(300) % n_classes, proba_val=np.full((300, n_classes), 1 / n_classes)
        )
        labels = np.minimum(np.arange(40), 30)
        assert method.score_labels(
            np.zeros((40, 1)), labels, np.full((40, n_classes), 1 / n_classes)
        ).shape == (40,)


class TestEstimator:
    def test_clone_has_equal_parameters_and_no_state(self, fitted):
        copy = clone(fitted)
        assert repr(copy) == repr(fitted)
        assert not [name for name in vars(copy) if name.endswith("_") and not name.startswith("__")]

    def test_parameters_are_only_stored(self, method):
        params = method.get_params(deep=False)
        assert set(params) == set(inspect.signature(type(method)).parameters)
        assert all(getattr(method, name) is value for name, value in params.items())
        assert method.set_params(**params) is method

    def test_saved_and_loaded_gives_equal_bits(self, name, tmp_path):
        fitted = fitted_once(name)
        fitted.save(tmp_path / "method")
        loaded = neighboragg.load(tmp_path / "method")
        assert type(loaded) is type(fitted)
        np.testing.assert_array_equal(loaded.classes_, fitted.classes_)
        expected = fitted.predict_trust(PROBLEM.X_test, PROBLEM.P_test)
        assert loaded.predict_trust(PROBLEM.X_test, PROBLEM.P_test).tobytes() == expected.tobytes()
        loaded.save(tmp_path / "method")
        again = neighboragg.load(tmp_path / "method", mmap=True)
        assert again.predict_trust(PROBLEM.X_test, PROBLEM.P_test).tobytes() == expected.tobytes()


class TestData:
    def test_names_of_the_classes_do_not_matter(self, name, method):
        """Fitted again, with integers in the place of words: the same trust in every bit."""
        before = repr(method.get_params())
        labels = np.array([-7, 3, 1000])
        returned = fit_with(method, y=labels[PROBLEM.y], y_val=labels[PROBLEM.y_val])
        assert returned is method
        assert repr(method.get_params()) == before
        np.testing.assert_array_equal(method.classes_, labels)
        np.testing.assert_array_equal(assert_sane(method), assert_sane(fitted_once(name)))

    def test_training_rows_with_out_of_fold_probabilities(self, name, method):
        shared = method.fit(PROBLEM.X, LABELS[PROBLEM.y], proba_val=PROBLEM.P_oof)
        assert_sane(shared)
        if name in [*CONFIGURATIONS, *SLOW]:
            correct = PROBLEM.P_test.argmax(axis=1) == PROBLEM.y_test
            assert roc_auc_score(correct, shared.score_samples(PROBLEM.X_test, PROBLEM.P_test)) > 0.5 - 1e-9

    def test_a_class_missing_from_validation(self, method):
        seen = PROBLEM.y_val != 1
        assert_sane(
            method.fit(
                PROBLEM.X,
                PROBLEM.y,
                X_val=PROBLEM.X_val[seen],
                y_val=PROBLEM.y_val[seen],
                proba_val=PROBLEM.P_val[seen],
            )
        )

    @pytest.mark.parametrize("shared", [False, True])
    @pytest.mark.parametrize("n_rows", [0, 1])
    def test_a_class_with_hardly_any_training_row(self, method, n_rows, shared):
        drop = np.flatnonzero(PROBLEM.y == 2)[n_rows:]
        X, y, P = (np.delete(part, drop, axis=0) for part in (PROBLEM.X, PROBLEM.y, PROBLEM.P_oof))
        if shared:
            method.fit(X, y, proba_val=P, classes=[0, 1, 2])
        else:
            method.fit(
                X,
                y,
                X_val=PROBLEM.X_val,
                y_val=PROBLEM.y_val,
                proba_val=PROBLEM.P_val,
                classes=[0, 1, 2],
            )
        assert_sane(method)

    def test_duplicated_rows(self, method):
        X, X_val = np.repeat(PROBLEM.X[:30], 3, axis=0), np.repeat(PROBLEM.X[:50], 3, axis=0)
        method.fit(X, PROBLEM.y, X_val=X_val, y_val=PROBLEM.y_val, proba_val=PROBLEM.P_val)
        trust = assert_sane(
            method, X=np.repeat(PROBLEM.X[:50], 3, axis=0), P=np.repeat(PROBLEM.P_test[:50], 3, axis=0)
        )
        assert_close(trust[::3], trust[1::3])

    @pytest.mark.parametrize("columns", [slice(0, 2), slice(0, 4)], ids=["some", "all"])
    def test_constant_features(self, method, columns):
        X, X_val = PROBLEM.X.copy(), PROBLEM.X_val.copy()
        X[:, columns] = X_val[:, columns] = 3.7
        method.fit(X, PROBLEM.y, X_val=X_val, y_val=PROBLEM.y_val, proba_val=PROBLEM.P_val)
        assert_sane(method)
        assert_sane(method, X=X_val, P=PROBLEM.P_val)

    def test_single_precision(self, method):
        X, X_val, X_test = (part.astype(np.float32) for part in (PROBLEM.X, PROBLEM.X_val, PROBLEM.X_test))
        labels = {"y_val": PROBLEM.y_val, "proba_val": PROBLEM.P_val}
        single = clone(method).fit(X, PROBLEM.y, X_val=X_val, **labels)
        double = method.fit(X.astype(np.float64), PROBLEM.y, X_val=X_val.astype(np.float64), **labels)
        found = assert_sane(single, X=X_test, P=PROBLEM.P_test.astype(np.float32))
        assert_close(found, double.predict_trust(X_test.astype(np.float64), PROBLEM.P_test), 1e-2)

    def test_hardly_any_rows(self, method):
        X, y = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 4.0]]), ["a", "a", "b"]
        for fit in (
            {"proba_val": [[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]},
            {"X_val": [[0.5, 0.5]], "y_val": ["a"], "proba_val": [[0.7, 0.3]]},
        ):
            assert_sane(clone(method).fit(X, y, **fit), 2, X=X, P=[[0.5, 0.5]] * 3)

    def test_a_single_class(self, method):
        method.fit(PROBLEM.X, np.zeros(90), proba_val=np.ones((90, 1)))
        assert_sane(method, 1, P=np.ones((150, 1)))

    @pytest.mark.parametrize("scale", [1e-100, 1e100])
    def test_features_of_any_order_of_magnitude(self, method, scale):
        method.fit(
            PROBLEM.X * scale,
            PROBLEM.y,
            X_val=PROBLEM.X_val * scale,
            y_val=PROBLEM.y_val,
            proba_val=PROBLEM.P_val,
        )
        assert_sane(method, X=PROBLEM.X_test * scale)


SIGNED = np.column_stack([PROBLEM.P_val[:, 0] + 1.0, PROBLEM.P_val[:, 1] - 1.0, PROBLEM.P_val[:, 2]])
NEEDS_BOTH = (
    "Hint: pass both for separate validation rows, or neither if proba_val contains out-of-fold probabilities of the "
    "training rows."
)
COLUMNS = "Hint: columns must follow classes_, one per class, as predict_proba returns them."
KNOWN = "Hint: known classes are 'bird', 'cat', 'dog'."
FIT_ERRORS = [
    ({"y_val": None}, "{0}.fit got X_val without y_val.\n" + NEEDS_BOTH),
    ({"X_val": None}, "{0}.fit got y_val without X_val.\n" + NEEDS_BOTH),
    ({"X": PROBLEM.X[:0], "y": LABELS[:0]}, "X passed to {0} has no rows."),
    (
        {"y": LABELS[PROBLEM.y[:-1]]},
        "X and y passed to {0} must have the same number of rows. Got 90 and 89.",
    ),
    (
        {"y_val": LABELS[PROBLEM.y_val[:-1]]},
        "X_val and y_val passed to {0} must have the same number of rows. Got 150 and 149.",
    ),
    ({"X_val": PROBLEM.X_val[:, :3]}, "X_val passed to {0} has 3 features, but 4 were seen in fit."),
    (
        {"X_val": PROBLEM.X_val[:0], "y_val": LABELS[:0], "proba_val": PROBLEM.P_val[:0]},
        "X_val passed to {0} has no rows.\nHint: hold out some rows that the classifier was not trained on.",
    ),
    (
        {"proba_val": PROBLEM.P_val[:, :2]},
        "proba_val passed to {0} has 2 columns, but there are 3 classes.\n" + COLUMNS,
    ),
    ({"proba_val": PROBLEM.P_val[:-1]}, "proba_val passed to {0} has 149 rows, but X has 150."),
    (
        {"proba_val": np.where(np.arange(150)[:, None] == 4, 2, 1) * PROBLEM.P_val},
        "Rows of proba_val passed to {0} must sum to 1. Row 4 sums to 2.\n"
        "Hint: pass probabilities, not logits or votes.",
    ),
    (
        {"proba_val": SIGNED},
        f"proba_val passed to {{0}} contains the negative value {SIGNED.min():.6g}.\n"
        "Hint: pass probabilities, not logits: scipy.special.softmax(logits, axis=1).",
    ),
    (
        {"y_val": np.full(150, "cow")},
        "y_val passed to {0} contains labels that are not among the 3 known classes: 'cow'.\n" + KNOWN,
    ),
    (
        {"classes": ["dog", "cat", "bird"]},
        "classes passed to {0} must be sorted and without repetition. Got ['dog', 'cat', 'bird'].\n"
        "Hint: order the columns of proba_val in the same way.",
    ),
    (
        {"classes": ["bird", "cat"]},
        "y passed to {0} contains labels that are not among the 2 known classes: 'dog'.\n"
        "Hint: known classes are 'bird', 'cat'.",
    ),
    (
        {"X": PROBLEM.X * 1e200},
        f"X passed to {{0}} contains the value {np.abs(PROBLEM.X).max() * 1e200:.3g}, which is too large for a "
        "distance (at most 1e+150).\nHint: scale the features, e.g. with StandardScaler.",
    ),
]
X, P = PROBLEM.X_test, PROBLEM.P_test
QUERY_ERRORS = [
    ((X[:, :3], P), {}, "X passed to {0} has 3 features, but 4 were seen in fit."),
    ((X, P[:, :2]), {}, "proba passed to {0} has 2 columns, but there are 3 classes.\n" + COLUMNS),
    ((X, P[:-1]), {}, "proba passed to {0} has 149 rows, but X has 150."),
    (
        (X, np.where(np.arange(150)[:, None] == 7, 0.5, 1) * P),
        {},
        "Rows of proba passed to {0} must sum to 1. Row 7 sums to 0.5.\nHint: pass probabilities, not logits or votes.",
    ),
    (
        (X, P),
        {"y_pred": np.full(150, "cow")},
        "y_pred passed to {0} contains labels that are not among the 3 known classes: 'cow'.\n" + KNOWN,
    ),
    (
        (X, P),
        {"y_pred": ["cat"]},
        "X and y_pred passed to {0} must have the same number of rows. Got 150 and 1.",
    ),
]


class TestErrors:
    @pytest.mark.parametrize("name", INHERITED)
    @pytest.mark.parametrize(("changes", "message"), FIT_ERRORS)
    def test_fit(self, method, changes, message):
        with pytest.raises(InvalidInputError) as caught:
            fit_with(method, **changes)
        assert str(caught.value) == message.format(type(method).__name__)

    @pytest.mark.parametrize("name", INHERITED)
    @pytest.mark.parametrize(("arguments", "keywords", "message"), QUERY_ERRORS)
    def test_queries(self, name, arguments, keywords, message):
        fitted = fitted_once(name)
        with pytest.raises(InvalidInputError) as caught:
            fitted.score_samples(*arguments, **keywords)
        assert str(caught.value) == message.format(type(fitted).__name__)

    @pytest.mark.parametrize("name", INHERITED)
    def test_labels_to_judge(self, name):
        fitted = fitted_once(name)
        with pytest.raises(InvalidInputError) as caught:
            fitted.score_labels(X, np.arange(150), P)
        assert str(caught.value) == (
            f"y passed to {type(fitted).__name__} contains labels that are not among the 3 known classes: "
            f"0, 1, 2, 3, 4, ….\n{KNOWN}"
        )

    @pytest.mark.parametrize("name", INHERITED)
    @pytest.mark.parametrize(
        "call",
        [
            lambda method: method.predict_trust(X, P),
            lambda method: method.score_samples(X, P),
            lambda method: method.score_labels(X, LABELS[PROBLEM.y_test], P),
            lambda method: method.save("never.nagg"),
        ],
        ids=["predict_trust", "score_samples", "score_labels", "save"],
    )
    def test_not_fitted(self, method, call):
        with pytest.raises(NotFittedError) as caught:
            call(method)
        assert str(caught.value) == (
            f"This {type(method).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before "
            "using this estimator."
        )
