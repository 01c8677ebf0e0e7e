"""Rows unlike all others are rejected as well: what is kept, and that both promises hold."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

import neighboragg
from neighboragg import Assessment, SelectiveClassifier, TrustedClassifier
from neighboragg.exceptions import InvalidParameterError, TrustWarning
from neighboragg.methods import MaxConfidence
from neighboragg.promises import risk_threshold
from sizes import draws

MIN_FAMILIARITY = 0.05


@pytest.fixture(scope="module")
def digits():
    """A model that has never seen an 8 or a 9, rows to calibrate with, new rows of known and of unknown digits."""
    X, y = load_digits(return_X_y=True)
    known = np.flatnonzero(y < 8)
    fit, cal, new = np.split(np.random.default_rng(0).permutation(known), [600, 1100])
    model = TrustedClassifier(GaussianNB(), random_state=0).fit(X[fit], y[fit])
    return model, (X[cal], y[cal]), (X[new], y[new]), X[y >= 8]


def test_unfamiliar_rows_are_rejected_whatever_their_trust(digits):
    model, calibration, (X, y), unknown = digits
    safe = SelectiveClassifier(model, target_risk=0.05, min_familiarity=MIN_FAMILIARITY).calibrate(
        *calibration
    )
    for rows in (X, unknown):
        assessed = safe.assess(rows)
        expected = (assessed.trust >= safe.threshold_) & (assessed.familiarity > MIN_FAMILIARITY)
        np.testing.assert_array_equal(assessed.accepted, expected)
        np.testing.assert_array_equal(safe.predict(rows) == -1, ~expected)
        assert ((assessed.trust >= safe.threshold_) & ~expected).any()
    without = SelectiveClassifier(model, target_risk=0.05).calibrate(*calibration)
    assert safe.accept(unknown).mean() < 0.75 * without.accept(unknown).mean()
    assert safe.accept(X).mean() > without.accept(X).mean() - 2 * MIN_FAMILIARITY
    assert (safe.predict(X)[safe.accept(X)] == y[safe.accept(X)]).mean() > 0.95


def test_the_threshold_is_that_of_the_familiar_calibration_rows(digits):
    model, (X, y), _, _ = digits
    safe = SelectiveClassifier(model, target_risk=0.05, min_familiarity=MIN_FAMILIARITY).calibrate(X, y)
    assessed = model.assess(X)
    familiar = assessed.familiarity > MIN_FAMILIARITY
    correct = assessed.predicted == y
    assert safe.results_ == [risk_threshold(correct[familiar], assessed.trust[familiar], target_risk=0.05)]
    assert safe.unfamiliar_ == (~familiar).mean() > 0
    assert safe.coverage_ == (familiar & (assessed.trust >= safe.threshold_)).mean()


def test_without_min_familiarity_nothing_is_unfamiliar(digits):
    model, calibration, _, _ = digits
    safe = SelectiveClassifier(model, target_risk=0.05).calibrate(*calibration)
    assert safe.unfamiliar_ == 0


def test_a_coverage_counts_unfamiliar_rows_as_rejected(digits):
    model, calibration, (X, _), _ = digits
    safe = SelectiveClassifier(model, target_coverage=0.8, min_familiarity=MIN_FAMILIARITY).calibrate(
        *calibration
    )
    without = SelectiveClassifier(model, target_coverage=0.8).calibrate(*calibration)
    assert safe.promised_
    assert safe.coverage_ >= 0.8
    assert safe.threshold_ < without.threshold_  # trust must make up for what min_familiarity takes
    assert safe.accept(X).mean() >= 0.78


def test_a_coverage_that_min_familiarity_does_not_leave_is_not_promised(digits):
    model, calibration, _, _ = digits
    safe = SelectiveClassifier(model, target_coverage=0.97, min_familiarity=0.2)
    with pytest.warns(TrustWarning) as caught:
        safe.calibrate(*calibration)
    assert str(caught[0].message) == (
        "No threshold was found that promises target_coverage=0.97 with confidence_level=0.95 for all rows; these are "
        "accepted where they are familiar.\n"
        "Hint: a smaller target_coverage, more calibration rows, or a lower confidence_level."
    )
    assert not safe.promised_
    assert safe.coverage_ == 1 - safe.unfamiliar_ == safe.results_[0].coverage
    assert (safe.accept(calibration[0]) == (model.familiarity(calibration[0]) > 0.2)).all()


def test_a_model_without_neighbors_is_refused(digits):
    _, (X, y), _, _ = digits
    model = TrustedClassifier(GaussianNB(), MaxConfidence(), random_state=0).fit(X[:300], y[:300])
    with pytest.raises(InvalidParameterError) as caught:
        SelectiveClassifier(model, target_risk=0.1, min_familiarity=0.01).calibrate(X[300:], y[300:])
    assert str(caught.value) == (
        "The 'min_familiarity' parameter of SelectiveClassifier needs a model with neighbors; MaxConfidence does "
        "not use neighbors.\n"
        "Hint: TrustedClassifier(estimator, method=NeighborAgg())."
    )


def test_a_level_that_no_row_can_reach_is_refused(digits):
    model, calibration, _, _ = digits
    with pytest.raises(InvalidParameterError) as caught:
        SelectiveClassifier(model, target_risk=0.1, min_familiarity=0.001).calibrate(*calibration)
    assert str(caught.value) == (
        "SelectiveClassifier got min_familiarity=0.001, but no familiarity of its model is below 0.00826, so no "
        "row could be rejected as unfamiliar.\n"
        "Hint: a larger min_familiarity, or a model with more validation rows; 999 can be enough."
    )


@pytest.mark.parametrize("min_familiarity", [0, 1, -0.1, "0.1"])
def test_a_level_must_be_a_share(digits, min_familiarity):
    model, calibration, _, _ = digits
    with pytest.raises(
        InvalidParameterError, match="The 'min_familiarity' parameter of SelectiveClassifier must be"
    ):
        SelectiveClassifier(model, target_risk=0.1, min_familiarity=min_familiarity).calibrate(*calibration)


def test_it_is_cloned_and_saved(digits, tmp_path):
    model, calibration, (X, _), unknown = digits
    safe = SelectiveClassifier(model, target_risk=0.05, min_familiarity=MIN_FAMILIARITY)
    assert clone(safe).min_familiarity == MIN_FAMILIARITY
    safe.calibrate(*calibration).save(tmp_path / "safe.nagg")
    again = neighboragg.load(tmp_path / "safe.nagg")
    for rows in (X, unknown):
        np.testing.assert_array_equal(again.predict(rows), safe.predict(rows))
    assert again.unfamiliar_ == safe.unfamiliar_


def test_calibration_rows_unlike_those_of_fit_are_reported(digits):
    model, (X, y), _, unknown = digits
    mixed, labels = np.vstack([X[:200], unknown[:200]]), np.concatenate([y[:200], np.zeros(200, dtype=int)])
    safe = SelectiveClassifier(model, target_risk=0.5, min_familiarity=MIN_FAMILIARITY)
    with pytest.warns(TrustWarning, match=r"^2\d% of these rows are unlike the training data") as caught:
        safe.calibrate(mixed, labels)
    assert caught[0].filename == __file__


class Given:
    """Rows are (trust, familiarity); class 0 is predicted for all, with groups that allow the given levels."""

    classes_ = np.array([0, 1])

    def __init__(self, least=(0.001, 0.001)):
        self.method_ = SimpleNamespace(familiarity_=SimpleNamespace(least=lambda: np.array(least)))

    def assess(self, X):
        n = len(X)
        return Assessment(
            predicted=np.zeros(n, dtype=int),
            probability=np.ones(n),
            trust=X[:, 0],
            proba=np.eye(2)[np.zeros(n, dtype=int)],
            class_trust=np.column_stack([X[:, 0], 1 - X[:, 0]]),
            index=np.arange(n),
            classes=self.classes_,
            familiarity=X[:, 1],
        )


def test_classes_whose_rows_cannot_be_unfamiliar_are_named():
    X = np.random.default_rng(0).random((500, 2))
    with pytest.warns(TrustWarning) as caught:
        SelectiveClassifier(Given((0.002, 0.01)), target_risk=0.1, min_familiarity=0.005).calibrate(
            X, np.zeros(500, int)
        )
    assert str(caught[0].message) == (
        "With min_familiarity=0.005 no row can be rejected as unfamiliar whose predicted class is 1.\n"
        "Hint: a larger min_familiarity, or a model with more validation rows; 199 can be enough."
    )


@pytest.mark.filterwarnings("ignore:No threshold was found")
@pytest.mark.parametrize("unfamiliar_risk", [0.0, 0.5])
def test_the_risk_among_kept_rows_holds(unfamiliar_risk):
    """Unfamiliar rows are wrong less or more often than others: what is promised is about those that are kept."""
    rng = np.random.default_rng(3)
    target, repetitions, broken = 0.1, draws(200), 0
    for _ in range(repetitions):
        X = rng.random((400, 2))
        risk = np.where(X[:, 1] <= 0.2, unfamiliar_risk, 0.3 * (1 - X[:, 0]))
        safe = SelectiveClassifier(Given(), target_risk=target, min_familiarity=0.2)
        safe.calibrate(X, (rng.random(400) < risk).astype(int))
        # Trust is uniform, and so the risk of what is kept is 0.3 times the mean of 1 - t above the threshold.
        broken += safe.promised_ and 0.15 * (1 - safe.threshold_) > target
    assert broken <= binom.ppf(1 - 1e-4, repetitions, 0.05)
