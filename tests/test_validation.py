"""Rows and probabilities get the same checks as plain arrays and as other types."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.exceptions import NotFittedError

from neighboragg._core.checks import check_fitted, check_proba, check_rows
from neighboragg.features._quantiles import QuantileScores

ANY_VALUE = st.one_of(st.floats(-1e3, 1e3), st.sampled_from([np.nan, np.inf, -np.inf, 1e200, -1e151]))


class Subclass(np.ndarray):
    """An array of another type, which takes the long way."""


def outcome(check, values):
    try:
        with np.errstate(invalid="ignore"):  # scikit-learn adds infinities up
            found = check(values)
    except ValueError as error:
        return str(error)
    return found.dtype, found.shape, found.tobytes()


@given(st.data(), st.sampled_from([np.float64, np.float32]))
def test_plain_arrays_and_others_are_rows_alike(data, dtype):
    shape = data.draw(array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=4))
    with np.errstate(over="ignore"):
        X = data.draw(arrays(np.float64, shape, elements=ANY_VALUE)).astype(dtype)
    n_features = data.draw(st.sampled_from([None, 2]))

    def check(values):
        return check_rows(values, "X", "Owner", n_features=n_features)

    assert outcome(check, X) == outcome(check, X.view(Subclass)) == outcome(check, np.asfortranarray(X))


@given(
    arrays(np.float64, (3, 2), elements=st.sampled_from([0.0, 1.0, 0.5, 0.4999, -1e-4, -1.0, np.nan, np.inf]))
)
def test_plain_arrays_and_others_are_probabilities_alike(P):
    def check(values):
        return check_proba(values, "proba", "Owner", n_classes=2, n_rows=3)

    assert outcome(check, P) == outcome(check, P.view(Subclass)) == outcome(check, P.tolist())


def test_plain_rows_are_not_copied():
    X = np.ones((3, 2))
    assert check_rows(X, "X", "Owner") is X


def test_an_estimator_that_is_not_fitted_says_so():
    scorer = QuantileScores()
    with pytest.raises(NotFittedError, match="This QuantileScores instance is not fitted yet"):
        check_fitted(scorer, "quantiles_")
    check_fitted(scorer.fit(np.ones((3, 2))), "quantiles_")
