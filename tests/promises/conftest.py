"""A model whose predictions and trust are given, so that every outcome is known."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from neighboragg import Assessment


class GivenModel(ClassifierMixin, BaseEstimator):
    """Rows are (position of the predicted class, trust in it)."""

    def __init__(self, classes=(0, 1)):
        self.classes = classes

    @property
    def classes_(self):
        return np.asarray(self.classes)

    def predict(self, X):
        return self.assess(X).predicted

    def score_samples(self, X):
        return self.assess(X).trust

    def assess(self, X):
        X = np.asarray(X)
        codes, trust = X[:, 0].astype(int), X[:, 1].astype(float)
        proba = np.eye(len(self.classes_))[codes]
        return Assessment(
            predicted=self.classes_[codes],
            probability=np.ones(len(X)),
            trust=trust,
            proba=proba,
            class_trust=trust[:, None] * proba,
            index=np.arange(len(X)),
            classes=self.classes_,
        )


@pytest.fixture
def given_model():
    return GivenModel


@pytest.fixture
def three_hundred():
    """300 rows of classes 0, 1 and 2: half are trusted, of which one in fifty is wrong, as is every fourth other."""

    def make(classes=(0, 1, 2)):
        i = np.arange(300)
        predicted = i % 3
        trust = np.where(i % 2 == 0, 0.5 + i / 1000, i / 1000)
        wrong = np.where(i % 2 == 0, i % 100 == 0, i % 8 == 1)
        truth = np.where(wrong, (predicted + 1) % 3, predicted)
        return np.column_stack([predicted, trust]), np.asarray(classes)[truth]

    return make
