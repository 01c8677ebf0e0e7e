"""Second opinions that several classifiers share."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from neighboragg import NeighborAgg
from neighboragg._pool import opinions
from neighboragg._pool.opinions import RememberedOpinions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(260, 4))
Y = (X[:, 0] + RNG.normal(0, 0.7, 260) > 0).astype(int)
TRAIN, VAL, NEW = slice(0, 120), slice(120, 200), slice(200, None)


def said_by(classifier):
    """Probabilities of one of two made-up classifiers."""
    first = 1 / (1 + np.exp(2 * X[:, classifier]))
    return np.c_[first, 1 - first]


def fitted(classifier, method=None, *, X=X, y=Y, y_val=None):
    return (method or NeighborAgg(second_opinions=["kernel", "forest", GaussianNB()])).fit(
        X[TRAIN],
        y[TRAIN],
        X_val=X[VAL],
        y_val=Y[VAL] if y_val is None else y_val,
        proba_val=said_by(classifier)[VAL],
    )


def seconds_of(remembered):
    """What each of the remembered fits took."""
    return [entry.seconds for entry in remembered._entries.values()]


@pytest.fixture
def fits(monkeypatch):
    """Names of the second opinions that are really fitted."""
    names = []

    def fit(name, *args, original=opinions._fit):
        names.append(name)
        return original(name, *args)

    monkeypatch.setattr(opinions, "_fit", fit)
    return names


def test_each_is_fitted_once_and_the_bits_are_the_same(fits):
    apart = [fitted(c).predict_trust(X[NEW], said_by(c)[NEW]) for c in (0, 1)]
    assert fits == ["kernel", "forest", "GaussianNB #3"] * 2
    with RememberedOpinions() as remembered:
        together = [fitted(c).predict_trust(X[NEW], said_by(c)[NEW]) for c in (0, 1)]
    assert fits[6:] == ["kernel", "forest", "GaussianNB #3"]
    np.testing.assert_array_equal(together, apart)
    assert remembered.saved_seconds == pytest.approx(sum(seconds_of(remembered)))


def other_rows(X, y):
    X = X.copy()
    X[7, 2] += 1e-9
    return {"X": X}


def other_labels(X, y):
    y = y.copy()
    y[7] = 1 - y[7]
    return {"y": y}


def other_validation_labels(X, y):
    y_val = y[VAL].copy()
    y_val[0] = 1 - y_val[0]
    return {"y_val": y_val}


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("change", [other_rows, other_labels, other_validation_labels])
def test_whatever_an_opinion_learns_from_makes_it_another(fits, change):
    with RememberedOpinions():
        fitted(0)
        changed = fitted(0, **change(X, Y)).predict_trust(X[NEW], said_by(0)[NEW])
    assert len(fits) == 6
    np.testing.assert_array_equal(changed, fitted(0, **change(X, Y)).predict_trust(X[NEW], said_by(0)[NEW]))


@pytest.mark.parametrize(
    "other",
    [
        NeighborAgg(second_opinions=["kernel"], effort="best"),
        NeighborAgg(second_opinions=["kernel"], random_state=1),
        NeighborAgg(second_opinions=[GaussianNB(var_smoothing=0.1)]),
    ],
    ids=["landmarks", "seed", "another setting"],
)
def test_other_settings_make_another(fits, other):
    with RememberedOpinions():
        for usual in ("kernel", GaussianNB()):
            fitted(0, NeighborAgg(second_opinions=[usual]))
        fitted(1, other)
    assert len(fits) == 3


def test_training_rows_that_vouch_for_themselves(fits):
    with RememberedOpinions():
        for c in (0, 1):
            NeighborAgg().fit(X[TRAIN], Y[TRAIN], proba_val=said_by(c)[TRAIN])
        assert fits == ["kernel"]
        fitted(0, NeighborAgg())
    assert fits == ["kernel", "kernel"]


class Constant(ClassifierMixin, BaseEstimator):
    """Says the same of every row."""

    share = 0.3

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.tile([self.share, 1 - self.share], (len(X), 1))


def test_a_class_defined_anew_is_another(fits):
    anew = type("Constant", (Constant,), {"share": 0.6, "__module__": Constant.__module__})
    with RememberedOpinions(), pytest.MonkeyPatch.context() as patch:
        fitted(0, NeighborAgg(second_opinions=[Constant()]))
        patch.setitem(globals(), "Constant", anew)
        method = fitted(0, NeighborAgg(second_opinions=[anew()]))
    assert len(fits) == 2
    np.testing.assert_allclose(method.opinions_[0].predict_proba(X[:2]), [[0.6, 0.4]] * 2)


def test_what_cannot_be_pickled_is_fitted_every_time(fits):
    def doubling():
        return make_pipeline(FunctionTransformer(lambda Z: 2 * Z), GaussianNB())

    with RememberedOpinions():
        for c in (0, 1):
            fitted(c, NeighborAgg(second_opinions=[doubling()]))
    assert fits == ["Pipeline #1"] * 2


def test_blocks_of_several_threads(fits):
    remembered, inside, done = RememberedOpinions(), Event(), Event()

    def outlast():
        with remembered:
            inside.set()
            assert done.wait(60)
        return RememberedOpinions.saved()

    with ThreadPoolExecutor(1) as pool, remembered:
        last = pool.submit(outlast)
        assert inside.wait(60)
        fitted(0, NeighborAgg())
        with RememberedOpinions():
            fitted(0, NeighborAgg())
        fitted(0, NeighborAgg())
        done.set()
        assert last.result() == 0.0
    assert fits == ["kernel", "kernel"]


def test_an_error_ends_the_block():
    with pytest.raises(ZeroDivisionError), RememberedOpinions() as remembered:
        remembered.saved_seconds = 7.0
        assert RememberedOpinions.saved() / 0
    assert RememberedOpinions.saved() == 0


def test_nothing_is_remembered_after_the_block_but_by_the_object(fits):
    remembered = RememberedOpinions()
    with remembered:
        fitted(0, NeighborAgg())
    fitted(0, NeighborAgg())
    assert RememberedOpinions.saved() == 0
    with remembered:
        fitted(0, NeighborAgg())
        assert [RememberedOpinions.saved()] == [remembered.saved_seconds] == seconds_of(remembered)
    assert fits == ["kernel", "kernel"]
