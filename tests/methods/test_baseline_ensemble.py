"""Ensembles: seeds, bootstrap samples, rare classes, and saving."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from neighboragg.exceptions import InvalidParameterError, UntrustedTypeError
from neighboragg.methods import EnsembleConfidence
from neighboragg.methods._ensemble import resampled

X, Y = load_iris(return_X_y=True)
EQUAL = np.full((150, 3), 1 / 3)


class HomeMade(GaussianNB):
    """A classifier that no list of trusted types knows."""


def fitted(*args, **kwargs):
    return EnsembleConfidence(*args, **kwargs).fit(X, Y, proba_val=EQUAL)


def test_trust_is_the_mean_probability_of_members_that_differ():
    method = fitted(RandomForestClassifier(3), n_members=4)
    each = [member.predict_proba(X) for member in method.members_]
    assert len(each) == 4
    np.testing.assert_allclose(method.predict_trust(X, EQUAL), np.mean(each, axis=0))
    assert not method.bootstrap_
    assert len({member.random_state for member in method.members_}) == 4
    assert not any(np.array_equal(each[0], other) for other in each[1:])


def test_seeds_reach_the_steps_of_a_pipeline():
    method = fitted(make_pipeline(StandardScaler(), RandomForestClassifier(2)), n_members=2)
    assert len({member[-1].random_state for member in method.members_}) == 2


@pytest.mark.parametrize("estimator", [LogisticRegression(max_iter=500), GaussianNB()])
def test_where_seeds_make_no_difference_samples_do(estimator):
    method = fitted(estimator, n_members=3)
    assert method.bootstrap_
    assert len(method.members_) == 3
    first, second, third = (member.predict_proba(X) for member in method.members_)
    assert not np.array_equal(first, second)
    assert not np.array_equal(second, third)


def test_bootstrap_can_be_forced_and_forbidden():
    assert fitted(RandomForestClassifier(2), n_members=2, bootstrap=True).bootstrap_
    method = fitted(GaussianNB(), n_members=2, bootstrap=False)
    first, second = (member.predict_proba(X) for member in method.members_)
    np.testing.assert_array_equal(first, second)


def test_the_seed_decides():
    trust = [
        fitted(RandomForestClassifier(2), n_members=2, random_state=np.random.RandomState(s)).predict_trust(
            X, EQUAL
        )
        for s in (3, 3, 4)
    ]
    np.testing.assert_array_equal(trust[0], trust[1])
    assert not np.array_equal(trust[0], trust[2])


def test_the_default_is_a_small_network_that_stops_without_complaint():
    method = fitted(n_members=2)
    assert [step[0] for step in method.members_[0].steps] == ["standardscaler", "mlpclassifier"]
    assert (method.predict_trust(X, EQUAL).argmax(axis=1) == Y).mean() > 0.9


def test_a_bootstrap_sample_keeps_the_size_of_every_class():
    codes = np.array([2, 0, 0, 2, 4, 0, 2, 0])
    rows = resampled(codes, np.random.default_rng(0))
    np.testing.assert_array_equal(np.bincount(codes[rows]), np.bincount(codes))
    drawn = np.array([resampled(codes, np.random.default_rng(seed)) for seed in range(2000)])
    # Every row of class 0 is one of four draws from four: it appears once on average.
    np.testing.assert_allclose(np.bincount(drawn.ravel()) / 2000, 1.0, atol=0.1)


def test_classes_without_rows_get_nothing_and_a_single_class_gets_all():
    method = EnsembleConfidence(GaussianNB(), n_members=2).fit(
        [[0.0], [1.0], [5.0], [6.0]],
        ["a", "a", "c", "c"],
        proba_val=[[0.4, 0.2, 0.4]] * 4,
        classes=["a", "b", "c"],
    )
    trust = method.predict_trust([[0.0], [6.0]], [[0.4, 0.2, 0.4]] * 2)
    np.testing.assert_array_equal(trust[:, 1], 0.0)
    assert trust[0, 0] > 0.9 < trust[1, 2]
    single = EnsembleConfidence().fit(
        [[0.0], [1.0]], ["b", "b"], proba_val=[[0.5, 0.5]] * 2, classes=["a", "b"]
    )
    np.testing.assert_array_equal(single.predict_trust([[7.0]], [[0.9, 0.1]]), [[0.0, 1.0]])


def test_no_rows_in_no_rows_out():
    assert fitted(GaussianNB(), n_members=2).predict_trust(np.empty((0, 4)), np.empty((0, 3))).shape == (0, 3)


def test_recipe_and_members_are_saved_and_only_trusted_types_loaded():
    method = fitted(HomeMade(var_smoothing=1e-8), n_members=2, random_state=np.random.RandomState(0))
    record = method.to_record()
    assert record["params"]["estimator"] is None
    assert record["params"]["random_state"] is None
    with pytest.raises(UntrustedTypeError):
        EnsembleConfidence.from_record(record)
    name = f"{HomeMade.__module__}.{HomeMade.__qualname__}"
    loaded = EnsembleConfidence.from_record(record, trusted=(name,))
    assert loaded.estimator.var_smoothing == 1e-8
    assert loaded.bootstrap_
    np.testing.assert_array_equal(loaded.predict_trust(X, EQUAL), method.predict_trust(X, EQUAL))


def test_parameters_are_checked():
    with pytest.raises(InvalidParameterError) as error:
        fitted(n_members=1)
    assert (
        str(error.value)
        == "The 'n_members' parameter of EnsembleConfidence must be an int >= 2. Got 1 instead."
    )
    with pytest.raises(InvalidParameterError) as error:
        fitted(LinearSVC())
    assert str(error.value) == (
        "The 'estimator' parameter of EnsembleConfidence must be a classifier with predict_proba. "
        "Got LinearSVC() instead."
    )
