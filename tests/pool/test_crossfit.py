"""Out-of-fold and out-of-bag probabilities: never from a model that has seen the row."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from neighboragg._pool.crossfit import cross_fit, deal_folds, fit_out_of_bag, fold_splits

X = np.array([[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]])
Y = np.array(["a", "a", "a", "b", "b", "b"])
CLASSES = np.array(["a", "b"])


class Memory(ClassifierMixin, BaseEstimator):
    """Certain of its last class for rows it has seen, of its first for others; remembers its weights."""

    def fit(self, X, y, weights=None):
        self.classes_, self.seen_, self.weights_ = np.unique(y), {tuple(row) for row in X}, weights
        return self

    def predict_proba(self, X):
        proba = np.zeros((len(X), len(self.classes_)))
        for i, row in enumerate(X):
            proba[i, -1 if tuple(row) in self.seen_ else 0] = 1.0
        return proba


def test_no_row_is_judged_by_a_model_that_has_seen_it():
    folds = np.array([0, 1, 2, 0, 1, 2])
    fitted = cross_fit(lambda n: Memory(), X.__getitem__, Y, CLASSES, fold_splits(folds))
    np.testing.assert_array_equal(fitted.proba, [[1.0, 0.0]] * 6)
    assert len(fitted.models) == 3
    # New rows are judged by the mean of all copies, two of which have seen the first row.
    np.testing.assert_allclose(fitted.predict_proba(X[:1]), [[1 / 3, 2 / 3]])


def test_weights_go_by_the_name_that_fit_gives_them():
    weight = np.arange(6.0)
    fitted = cross_fit(
        lambda n: Memory(),
        X.__getitem__,
        Y,
        CLASSES,
        [(np.array([0, 3, 5]), np.array([1]))],
        weight=weight,
        weight_name="weights",
    )
    np.testing.assert_array_equal(fitted.models[0][0].weights_, [0.0, 3.0, 5.0])


def test_a_model_of_one_class_has_no_opinion():
    folds = np.array([0, 0, 0, 1, 1, 1])
    fitted = cross_fit(lambda n: GaussianNB(), X.__getitem__, Y, CLASSES, fold_splits(folds))
    np.testing.assert_array_equal(fitted.proba, 0.5)
    np.testing.assert_array_equal(fitted.predict_proba(X[:2]), 0.5)
    np.testing.assert_array_equal(
        fitted.predict_proba(["a list", "of texts", "has no shape"]), np.full((3, 2), 0.5)
    )


def test_classes_unknown_to_a_copy_get_no_probability():
    y = np.array(["a", "b", "a", "b", "a", "c"])
    folds = np.array([0, 0, 1, 1, 1, 1])
    fitted = cross_fit(
        lambda n: GaussianNB(), X.__getitem__, y, np.array(["a", "b", "c"]), fold_splits(folds)
    )
    np.testing.assert_array_equal(fitted.proba[2:, 2], 0.0)
    np.testing.assert_allclose(fitted.proba.sum(axis=1), 1.0)
    assert fitted.without_models().models == ()


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_rows_that_every_tree_has_seen_get_a_uniform_vote():
    codes = np.array([0, 0, 0, 2, 2, 2])
    fitted = fit_out_of_bag(RandomForestClassifier(2, random_state=0), X, codes, 3)
    in_every_bag = np.flatnonzero((fitted.proba[:, [0, 2]] == 0.5).all(axis=1))
    assert in_every_bag.tolist() == [0, 3, 4]
    np.testing.assert_array_equal(fitted.proba[:, 1], 0.0)
    np.testing.assert_allclose(fitted.proba.sum(axis=1), 1.0)


def test_folds_keep_groups_whole_and_classes_spread():
    rng = np.random.RandomState(0)
    codes, groups = np.repeat([0, 1], 20), np.repeat(np.arange(20), 2)
    folds = deal_folds(codes, groups, 5, rng)
    assert all(len(np.unique(folds[groups == group])) == 1 for group in range(20))
    np.testing.assert_array_equal(np.bincount(folds), 8)
    np.testing.assert_array_equal(np.bincount(folds[codes == 0]), 4)
    assert deal_folds(codes, np.repeat([0, 1], 20), 5, rng).max() == 1
