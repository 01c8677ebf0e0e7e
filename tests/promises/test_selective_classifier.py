"""SelectiveClassifier: what it keeps, what it says of the rest, and how plainly it refuses."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from neighboragg import SelectiveClassifier, TrustedClassifier
from neighboragg.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    NotCalibratedError,
    TrustWarning,
)
from neighboragg.methods import MaxConfidence
from neighboragg.promises import coverage_threshold, risk_threshold

NAMES = ("ant", "bee", "centipede")


@pytest.fixture(scope="module")
def digits():
    """A weak model of digits, rows to calibrate with, and rows to judge by."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    model = TrustedClassifier(GaussianNB(), MaxConfidence(), random_state=0).fit(X[:400], y[:400])
    return model, (X[400:1000], y[400:1000]), (X[1000:], y[1000:])


def test_threshold_is_that_of_the_calibration_rows(digits):
    model, (X, y), (X_new, _) = digits
    safe = SelectiveClassifier(model, target_risk=0.12, confidence_level=0.9).calibrate(X, y)
    correct, trust = model.predict(X) == y, model.score_samples(X)
    found = risk_threshold(correct, trust, target_risk=0.12, confidence_level=0.9)
    assert safe.results_ == [found]
    assert safe.threshold_ == found.threshold
    assert (safe.thresholds_ == found.threshold).all()
    assert safe.thresholds_.shape == (10,)
    assert safe.promised_
    assert safe.coverage_ == (trust >= found.threshold).mean()
    np.testing.assert_array_equal(safe.accept(X_new), model.score_samples(X_new) >= found.threshold)


def test_target_coverage(digits):
    model, (X, y), (X_new, _) = digits
    safe = SelectiveClassifier(model, target_coverage=0.5).fit(X, y)
    found = coverage_threshold(model.predict(X) == y, model.score_samples(X), target_coverage=0.5)
    assert safe.results_ == [found]
    assert safe.coverage_ == found.coverage >= 0.5
    assert safe.accept(X_new).mean() >= 0.5


def test_predict_rejects_exactly_what_is_not_accepted(digits):
    model, (X, y), (X_new, _) = digits
    for per_class in (False, True):
        safe = SelectiveClassifier(model, target_coverage=0.6, per_class=per_class).calibrate(X, y)
        kept, answer = safe.accept(X_new), safe.predict(X_new)
        assert 0 < kept.sum() < len(kept)
        np.testing.assert_array_equal(answer[kept], model.predict(X_new)[kept])
        assert (answer[~kept] == -1).all()


def test_thresholds_per_class(given_model, three_hundred):
    X, y = three_hundred()
    safe = SelectiveClassifier(given_model((0, 1, 2)), target_coverage=0.5, per_class=True).calibrate(X, y)
    level = 1 - 0.05 / 3
    expected = [
        coverage_threshold(
            y[X[:, 0] == code] == code, X[X[:, 0] == code, 1], target_coverage=0.5, confidence_level=level
        )
        for code in range(3)
    ]
    assert safe.results_ == expected
    np.testing.assert_array_equal(safe.thresholds_, [result.threshold for result in expected])
    assert safe.threshold_ == safe.thresholds_.max() > safe.thresholds_.min()
    np.testing.assert_array_equal(safe.accept(X), X[:, 1] >= safe.thresholds_[X[:, 0].astype(int)])
    assert safe.coverage_ == safe.accept(X).mean()


@pytest.mark.parametrize(
    ("classes", "label", "rejected", "kind"),
    [
        ((0, 1, 2), None, -1, "i"),
        ((0, 1, 2), 99, 99, "i"),
        ((0, 1, 2), 0.5, 0.5, "f"),
        ((0, 1, 2), "unsure", "unsure", "O"),
        (NAMES, None, "reject", "U"),
        (NAMES, "a human must look at this", "a human must look at this", "U"),
        (NAMES, -1, -1, "O"),
        (np.array(NAMES, dtype=object), None, "reject", "O"),
        (np.array(NAMES, dtype=object), -1, -1, "O"),
        (np.array([1.0, 2.0, 3.0]), None, -1.0, "f"),
    ],
)
def test_reject_labels(given_model, three_hundred, classes, label, rejected, kind):
    X, y = three_hundred(classes)
    model = given_model(classes)
    safe = SelectiveClassifier(model, target_coverage=0.5, reject_label=label).calibrate(X, y)
    kept, answer = safe.accept(X), safe.predict(X)
    assert answer.dtype.kind == kind
    assert 0 < kept.sum() < 300
    assert answer[~kept].tolist() == [rejected] * int((~kept).sum())
    assert answer[kept].tolist() == model.predict(X)[kept].tolist()


def test_string_labels_of_a_trained_model():
    rng = np.random.default_rng(1)
    y = rng.choice(NAMES, 400)
    X = rng.normal(size=(400, 2)) + 1.5 * (y == "bee")[:, None] - 1.5 * (y == "ant")[:, None]
    for labels in (y, y.astype(object)):
        model = TrustedClassifier(LogisticRegression(), MaxConfidence(), random_state=0)
        model.fit(X[:200], labels[:200])
        safe = SelectiveClassifier(model, target_risk=0.25).calibrate(X[200:], labels[200:])
        assert set(safe.predict(X).tolist()) == {*NAMES, "reject"}


@pytest.mark.parametrize(
    ("classes", "label"), [((-1, 0, 1), None), ((0, 1, 2), 2), (NAMES, "bee"), (("a", "b", "reject"), None)]
)
def test_reject_label_must_be_no_class(given_model, three_hundred, classes, label):
    X, y = three_hundred(classes)
    safe = SelectiveClassifier(given_model(classes), target_coverage=0.5, reject_label=label)
    clash = {(-1, 0, 1): "-1", (0, 1, 2): "2", NAMES: "'bee'", ("a", "b", "reject"): "'reject'"}[classes]
    with pytest.raises(InvalidParameterError) as error:
        safe.calibrate(X, y)
    assert str(error.value) == (
        f"The 'reject_label' parameter of SelectiveClassifier is one of the classes: {clash}.\n"
        "Hint: pass a reject_label that is not a class."
    )


def test_a_risk_that_cannot_be_promised_rejects_all_and_says_so(given_model, three_hundred):
    X, y = three_hundred()
    safe = SelectiveClassifier(given_model((0, 1, 2)), target_risk=0.001)
    with pytest.warns(TrustWarning) as caught:
        safe.calibrate(X, y)
    assert [str(warning.message) for warning in caught] == [
        "No threshold was found that promises target_risk=0.001 with confidence_level=0.95 for all rows; "
        "these are rejected.\n"
        "Hint: a larger target_risk, more calibration rows, or a lower confidence_level."
    ]
    assert caught[0].filename == __file__
    assert not safe.promised_
    assert safe.threshold_ == np.inf
    assert safe.coverage_ == 0.0
    assert not safe.accept(X).any()
    assert (safe.predict(X) == -1).all()


def test_a_risk_that_cannot_be_promised_in_some_classes(given_model):
    """Class 0 is always right, class 1 often wrong, class 2 rare and class 3 never predicted."""
    i = np.arange(400)
    predicted = np.where(i < 200, 0, np.where(i < 390, 1, 2))
    X = np.column_stack([predicted, np.linspace(0.1, 0.9, 400)])
    y = np.where((predicted == 1) & (i % 2 == 0), 0, predicted)
    safe = SelectiveClassifier(given_model((0, 1, 2, 3)), target_risk=0.1, per_class=True)
    with pytest.warns(TrustWarning) as caught:
        safe.calibrate(X, y)
    assert [str(warning.message) for warning in caught] == [
        "No threshold was found that promises target_risk=0.1 with confidence_level=0.95 for predicted class 1 (190 "
        "calibration rows), predicted class 2 (10 calibration rows), predicted class 3 (0 calibration rows); "
        "these are rejected.\n"
        "Hint: a larger target_risk, more calibration rows, or a lower confidence_level."
    ]
    assert [result.promised for result in safe.results_] == [True, False, False, False]
    assert np.isfinite(safe.thresholds_).tolist() == [True, False, False, False]
    assert set(safe.predict(X).tolist()) == {0, -1}
    assert safe.threshold_ == np.inf


def test_a_coverage_that_cannot_be_promised_accepts_all_with_a_warning(given_model):
    X = np.column_stack([np.zeros(10), np.arange(10)])
    safe = SelectiveClassifier(given_model((0, 1)), target_coverage=0.9, per_class=True)
    with pytest.warns(TrustWarning) as caught:
        safe.calibrate(X, np.zeros(10, dtype=int))
    assert [str(warning.message) for warning in caught] == [
        "No threshold was found that promises target_coverage=0.9 with confidence_level=0.95 for predicted class 0 (10 "
        "calibration rows), predicted class 1 (0 calibration rows); these are all accepted.\n"
        "Hint: a smaller target_coverage, more calibration rows, or a lower confidence_level."
    ]
    assert not safe.promised_
    assert safe.accept(np.array([[0, -5.0], [1, -5.0]])).all()


@pytest.mark.parametrize("method", ["accept", "predict"])
def test_calibration_comes_first(given_model, method):
    safe = SelectiveClassifier(given_model(), target_risk=0.1)
    with pytest.raises(NotCalibratedError) as error:
        getattr(safe, method)([[0, 0.5]])
    assert str(error.value) == (
        "This SelectiveClassifier is not calibrated yet.\n"
        "Hint: calibrate(X_cal, y_cal) with rows that were not used in fitting."
    )
    assert isinstance(error.value, NotFittedError)


@pytest.mark.parametrize(("risk", "coverage"), [(None, None), (0.1, 0.5)])
def test_exactly_one_target(given_model, three_hundred, risk, coverage):
    safe = SelectiveClassifier(given_model((0, 1, 2)), target_risk=risk, target_coverage=coverage)
    with pytest.raises(InvalidParameterError) as error:
        safe.calibrate(*three_hundred())
    assert str(error.value) == (
        "SelectiveClassifier needs exactly one of target_risk and target_coverage. "
        f"Got {risk!r} and {coverage!r}."
    )


def test_wrong_values_are_told(given_model, three_hundred):
    X, y = three_hundred()
    model = given_model((0, 1, 2))
    safe = SelectiveClassifier(model, target_coverage=0.5).calibrate(X, y)
    for call, kind, message in (
        (
            lambda: SelectiveClassifier(GaussianNB(), target_risk=0.1).calibrate(X, y),
            InvalidParameterError,
            "The 'model' parameter of SelectiveClassifier must be a fitted TrustedClassifier. "
            "Got GaussianNB() instead.\nHint: TrustedClassifier(classifier).fit(X, y) is one.",
        ),
        (
            lambda: SelectiveClassifier(model, target_risk=0.1, confidence_level=1).calibrate(X, y),
            InvalidParameterError,
            "The 'confidence_level' parameter of SelectiveClassifier must be a number in (0, 1). Got 1 instead.",
        ),
        (
            lambda: SelectiveClassifier(model, target_risk=2).calibrate(X, y),
            InvalidParameterError,
            "The 'target_risk' parameter of risk_threshold must be a number in (0, 1). Got 2 instead.",
        ),
        (
            lambda: safe.calibrate(X, y[:-1]),
            InvalidInputError,
            "X and y passed to SelectiveClassifier must have the same number of rows. Got 300 and 299.",
        ),
    ):
        with pytest.raises(kind) as error:
            call()
        assert str(error.value) == message


def test_calibration_labels_unknown_to_the_model_are_named(given_model, three_hundred):
    X, y = three_hundred()
    safe = SelectiveClassifier(given_model((0, 1, 2)), target_coverage=0.5)
    with pytest.raises(InvalidInputError) as caught:
        safe.calibrate(X, np.where(y == 2, 7, y))
    assert str(caught.value) == (
        "y passed to SelectiveClassifier contains labels that are not among the 3 known classes: 7.\n"
        "Hint: known classes are 0, 1, 2."
    )


def test_order_of_calibration_rows_does_not_matter_for_coverage(given_model, three_hundred):
    X, y = three_hundred()
    rows = np.random.default_rng(0).permutation(300)
    safe = SelectiveClassifier(given_model((0, 1, 2)), target_coverage=0.7)
    assert safe.calibrate(X, y).results_ == safe.calibrate(X[rows], y[rows]).results_


def test_parameters_and_clone(digits):
    model, (X, y), (X_new, _) = digits
    safe = SelectiveClassifier(
        FrozenEstimator(model), target_risk=0.12, confidence_level=0.9, per_class=False, reject_label=-7
    )
    params = safe.get_params(deep=False)
    assert {**params, "model": None} == {
        "model": None,
        "target_risk": 0.12,
        "target_coverage": None,
        "confidence_level": 0.9,
        "per_class": False,
        "min_familiarity": None,
        "reject_label": -7,
    }
    again = clone(safe.calibrate(X, y))
    assert not hasattr(again, "thresholds_")
    assert {**again.get_params(deep=False), "model": None} == {**params, "model": None}
    # A frozen model survives cloning, so that the clone can be calibrated.
    np.testing.assert_array_equal(again.calibrate(X, y).predict(X_new), safe.predict(X_new))
    safe.set_params(target_risk=None, target_coverage=0.5)
    assert safe.calibrate(X, y).coverage_ >= 0.5


def test_clone_keeps_a_fitted_model_and_forgets_the_threshold(digits):
    model, (X, y), (X_new, _) = digits
    safe = SelectiveClassifier(model, target_risk=0.12).calibrate(X, y)
    again = clone(safe)
    assert again.model is model
    assert not hasattr(again, "thresholds_")
    np.testing.assert_array_equal(again.calibrate(X, y).predict(X_new), safe.predict(X_new))


def test_clone_copies_a_model_that_is_not_fitted():
    safe = SelectiveClassifier(TrustedClassifier(GaussianNB()), target_risk=0.1)
    assert clone(safe).model is not safe.model


def test_assessment_shows_what_is_accepted(digits):
    model, (X, y), (X_new, _) = digits
    safe = SelectiveClassifier(model, target_coverage=0.6).calibrate(X, y)
    assessed = safe.assess(X_new)
    np.testing.assert_array_equal(assessed.accepted, safe.accept(X_new))
    np.testing.assert_array_equal(assessed.predicted, model.predict(X_new))
    np.testing.assert_array_equal(assessed.trust, model.score_samples(X_new))
    assert list(assessed.to_frame()) == ["predicted", "probability", "trust", "accepted", "seen_in_fit"]


def test_calibration_leaves_the_model_and_the_parameters_alone(digits):
    model, (X, y), (X_new, _) = digits
    before = model.score_samples(X_new)
    safe = SelectiveClassifier(model, target_coverage=0.5)
    params = safe.get_params()
    safe.calibrate(X, y)
    assert safe.model is model
    assert safe.get_params() == params
    np.testing.assert_array_equal(model.score_samples(X_new), before)


def test_a_model_that_is_not_fitted_is_told(digits):
    _, (X, y), _ = digits
    with pytest.raises(NotFittedError):
        SelectiveClassifier(TrustedClassifier(GaussianNB()), target_risk=0.1).calibrate(X, y)


def test_calibration_labels_of_another_type_are_refused(digits):
    model, (X, y), _ = digits
    with pytest.raises(InvalidInputError) as caught:
        SelectiveClassifier(model, target_risk=0.1).calibrate(X, y.astype(str))
    assert str(caught.value) == (
        f"y passed to SelectiveClassifier has type {y.astype(str).dtype}, but the classes have type int64, so no label "
        "can equal a prediction.\nHint: pass labels of the same type as in fit."
    )
