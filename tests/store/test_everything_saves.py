"""Whatever is fitted is saved whole: the same parameters, the same answers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

import neighboragg
from neighboragg import MislabelDetector, NeighborAgg, SelectiveClassifier, TrustedClassifier
from neighboragg.exceptions import InvalidParameterError
from neighboragg.labels import FDR, Budget
from neighboragg.labels._rules import FlagRule

X, CODES = make_classification(150, 4, n_informative=3, n_redundant=0, flip_y=0.1, random_state=1)
Y = np.array(["no", "yes"])[CODES]
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(e=np.where(X[:, 0] > 0, "up", "down"))


def saved_and_loaded(item, tmp_path, **kwargs):
    item.save(tmp_path / "item.nagg")
    return neighboragg.load(tmp_path / "item.nagg", **kwargs)


@pytest.mark.parametrize("per_class", [False, True])
def test_a_selective_classifier(tmp_path, per_class):
    model = TrustedClassifier(LogisticRegression(), random_state=0).fit(X, Y)
    safe = SelectiveClassifier(model, target_coverage=0.3, per_class=per_class, reject_label="?").calibrate(
        X + 0.01, Y
    )
    again = saved_and_loaded(safe, tmp_path)
    np.testing.assert_array_equal(again.predict(X + 0.02), safe.predict(X + 0.02))
    assert again.results_ == safe.results_
    assert again.get_params(deep=False).keys() == safe.get_params(deep=False).keys()
    assert (again.target_coverage, again.per_class, again.reject_label) == (0.3, per_class, "?")


def test_a_selective_classifier_around_a_callable(tmp_path):
    model = TrustedClassifier(LogisticRegression(), features=np.tanh, random_state=0).fit(X, Y)
    safe = SelectiveClassifier(model, target_coverage=0.3).calibrate(X + 0.01, Y)
    again = saved_and_loaded(safe, tmp_path, features=np.tanh)
    np.testing.assert_array_equal(again.predict(X + 0.02), safe.predict(X + 0.02))


@pytest.mark.full(keep=1)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.filterwarnings("ignore:Most rows of X passed")
@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("flag", [None, Budget(7), FDR(0.3)], ids=str)
@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_a_detector_of_wrong_labels(tmp_path, table, flag, estimator):
    rows = FRAME if table and estimator is None else X
    detector = MislabelDetector(estimator, **({} if flag is None else {"flag": flag}))
    detector.fit(rows, Y, verified=np.arange(60) if isinstance(flag, FDR) else None)
    again = saved_and_loaded(detector, tmp_path)
    assert repr(again) == repr(detector)
    assert again.result_.summary() == detector.result_.summary()
    np.testing.assert_array_equal(again.predict(rows, Y), detector.predict(rows, Y))
    np.testing.assert_array_equal(again.score_reliability(rows, Y), detector.score_reliability(rows, Y))


class Mine(FlagRule):
    name = "mine"

    def flag(self, labels):
        return Budget(1).flag(labels)


def test_a_rule_of_the_users_own_is_refused(tmp_path):
    detector = MislabelDetector(flag=Mine(), effort="fast").fit(X, Y)
    with pytest.raises(InvalidParameterError) as caught:
        detector.save(tmp_path / "item.nagg")
    assert str(caught.value) == (
        f"This MislabelDetector cannot be saved: its 'flag' is of the type {__name__}.Mine, which neighboragg does not "
        "know, so it could not be loaded again."
    )


def test_every_parameter_of_a_model_survives(tmp_path):
    folds = list(StratifiedKFold(3).split(X, Y))
    model = TrustedClassifier(
        LogisticRegression(C=3.0),
        NeighborAgg("network", n_neighbors=4, second_opinions=[GaussianNB(var_smoothing=1e-8)]),
        validation_fraction=0.3,
        cv=folds,
        random_state=5,
    ).fit(X, Y)
    again = saved_and_loaded(model, tmp_path)
    assert repr(again) == repr(model)
    assert again.estimator.C == 3.0
    assert not hasattr(again.estimator, "coef_")
    assert again.method.second_opinions[0].var_smoothing == 1e-8
    np.testing.assert_array_equal(again.cv[1][0], folds[1][0])
    np.testing.assert_array_equal(again.fit(X, Y).score_samples(X), model.score_samples(X))


def test_folds_that_are_used_up_are_not_saved(tmp_path):
    model = TrustedClassifier(LogisticRegression(), cv=StratifiedKFold(3).split(X, Y)).fit(X, Y)
    again = saved_and_loaded(model, tmp_path)
    assert again.cv is None
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


@pytest.mark.parametrize(
    ("item", "given"),
    [
        (TrustedClassifier(LogisticRegression(), random_state=0), {"features": np.tanh}),
        (MislabelDetector(effort="fast"), {"estimator": LogisticRegression()}),
    ],
)
def test_what_is_given_and_not_needed_is_named(tmp_path, item, given):
    path = tmp_path / "item.nagg"
    item.fit(X, Y).save(path)
    with pytest.raises(InvalidParameterError) as caught:
        neighboragg.load(path, **given)
    assert str(caught.value) == (
        f"The {next(iter(given))!r} parameter of load was given, but the {type(item).__name__} in {str(path)!r} does "
        "not need it.\nHint: leave it out."
    )
