"""Whole messages of the errors of class-wise search."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.search import Approximate, ClasswiseNeighbors, Exact, Streamed

X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
y = np.array(["a", "b", "b"])
NAN, INF = np.where(X == 3.0, np.nan, X), np.where(X == 3.0, np.inf, X)
SPARSE = (
    "X passed to ClasswiseNeighbors is a sparse matrix, but distances need dense rows.\n"
    "Hint: reduce it first, e.g. TruncatedSVD(100).fit_transform(X), or use TrustedClassifier, "
    "which reduces sparse input itself."
)
TOO_LARGE = (
    "X passed to ClasswiseNeighbors contains the value 1e+200, which is too large for a distance (at most 1e+150).\n"
    "Hint: scale the features, e.g. with StandardScaler."
)
ONE_DIMENSION = (
    "Expected 2D array, got 1D array instead:\narray=[0. 2. 4.].\nReshape your data either using "
    "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) "
    "if it contains a single sample."
)


def fitted():
    return ClasswiseNeighbors(1).fit(X, y)


def parameter_message(name, value, rule):
    return f"The {name!r} parameter of ClasswiseNeighbors must be {rule}. Got {value!r} instead."


PARAMETERS = [
    *[({"n_neighbors": value}, "an int >= 1") for value in (0, -1, 2.5, True, "5", None)],
    *[
        ({"search": value}, "None or one of Exact(), Approximate() from neighboragg.search")
        for value in ("exact", Exact, Streamed())
    ],
]


@pytest.mark.parametrize(("params", "rule"), PARAMETERS)
def test_parameters_at_fit(params, rule):
    ((name, value),) = params.items()
    with pytest.raises(InvalidParameterError) as caught:
        ClasswiseNeighbors(**params).fit(X, y)
    assert str(caught.value) == parameter_message(name, value, rule)


@pytest.mark.parametrize("value", [0, -1, 2.5, True])
def test_neighbors_asked_for(value):
    with pytest.raises(InvalidParameterError) as caught:
        fitted().kneighbors(X, value)
    assert str(caught.value) == parameter_message("n_neighbors", value, "an int >= 1")


@pytest.mark.parametrize("value", ["manhattan", "Cosine", None, 2])
@pytest.mark.parametrize("kind", [Exact, Approximate])
def test_metric(kind, value):
    with pytest.raises(InvalidParameterError) as caught:
        ClasswiseNeighbors(search=kind(metric=value)).fit(X, y)
    assert str(caught.value) == (
        f"The 'metric' parameter of {kind.__name__} must be one of 'cosine', 'euclidean'. Got {value!r} instead."
    )


@pytest.mark.parametrize(
    ("rows", "labels", "error", "message"),
    [
        (
            X[:2],
            y,
            InvalidInputError,
            "X and y passed to ClasswiseNeighbors must have the same number of rows. Got 2 and 3.",
        ),
        (
            X[:0],
            y[:0],
            InvalidInputError,
            "X passed to ClasswiseNeighbors has no rows; at least one is needed to search.",
        ),
        (X * 1e200 / 5, y, InvalidInputError, TOO_LARGE),
        (-X * 1e200 / 5, y, InvalidInputError, TOO_LARGE),
        (sparse.csr_matrix(X), y, InvalidInputError, SPARSE),
        (sparse.coo_array(X), y, InvalidInputError, SPARSE),
        (X[:, 0], y, ValueError, ONE_DIMENSION),
        (
            np.array([["a", "b"]] * 3, dtype=object),
            y,
            InvalidInputError,
            "X passed to ClasswiseNeighbors contains 'a', which is not a number, in row 0 of column 0 (could not "
            "convert string to float: 'a').\nHint: distances need numbers; "
            "convert any table with neighboragg.features.TabularFeatures().fit_transform(X).",
        ),
        (
            X[:, :0],
            y,
            ValueError,
            "Found array with 0 feature(s) (shape=(3, 0)) while a minimum of 1 is required by "
            "ClasswiseNeighbors.",
        ),
        (
            X,
            [0.0, 1.0, np.nan],
            InvalidInputError,
            "y passed to ClasswiseNeighbors contains NaN or infinity.\nHint: drop the rows without a label.",
        ),
        (X, [[0, 1]] * 3, ValueError, "y should be a 1d array, got an array of shape (3, 2) instead."),
    ],
)
def test_rows_and_labels_at_fit(rows, labels, error, message):
    with pytest.raises(error) as caught:
        ClasswiseNeighbors().fit(rows, labels)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("rows", "start"),
    [
        (
            NAN,
            "Input X contains NaN.\n"
            "ClasswiseNeighbors does not accept missing values encoded as NaN natively.",
        ),
        (INF, "Input X contains infinity or a value too large for dtype('float64')."),
    ],
    ids=["nan", "infinity"],
)
def test_missing_and_infinite_values(rows, start):
    for call in (lambda: ClasswiseNeighbors().fit(rows, y), lambda: fitted().kneighbors(rows)):
        with pytest.raises(ValueError) as caught:
            call()
        # scikit-learn goes on with advice that changes with its version.
        assert str(caught.value).startswith(start)


@pytest.mark.parametrize(
    ("queries", "error", "message"),
    [
        (
            X[:, :1],
            InvalidInputError,
            "X passed to ClasswiseNeighbors has 1 features, but 2 were seen in fit.",
        ),
        (X * 1e200 / 5, InvalidInputError, TOO_LARGE),
        (sparse.csr_matrix(X), InvalidInputError, SPARSE),
        (X[:, 0], ValueError, ONE_DIMENSION),
    ],
)
def test_queries(queries, error, message):
    with pytest.raises(error) as caught:
        fitted().kneighbors(queries)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("exclude", "got"),
    [
        ([0, 1], "shape (2,)"),
        (1, "shape ()"),
        ([[0], [1], [2]], "shape (3, 1)"),
        ([], "shape (0,)"),
        ([0, 1, 3], "the id 3"),
        ([0, -2, 1], "the id -2"),
        ([0.0, 0.5, 1.0], "dtype float64"),
        ([True, False, True], "dtype bool"),
        (["a", "b", "c"], "dtype <U1"),
    ],
)
def test_exclude(exclude, got):
    with pytest.raises(InvalidInputError) as caught:
        fitted().kneighbors(X, exclude=exclude)
    assert str(caught.value) == (
        "exclude passed to ClasswiseNeighbors must contain one row id below 3, or -1, for each of the 3 "
        f"queries. Got {got}."
    )


def test_exclude_of_no_queries():
    assert fitted().kneighbors(X[:0], exclude=[])[0].shape == (0, 2, 1)


@pytest.mark.parametrize(
    ("labels", "unseen", "classes", "known"),
    [
        (["c"], "'c'", ["a", "b"], "the 2 known classes: {}.\nHint: known classes are 'a', 'b'."),
        ([1], "1", ["a", "b"], "the 2 known classes: {}.\nHint: known classes are 'a', 'b'."),
        (["x"], "'x'", range(7), "the 7 known classes: {}.\nHint: known classes are 0, 1, 2, 3, 4, …."),
        (
            [9, 8, 7, 6, 5, 4, 5],
            "4, 5, 6, 7, 8, …",
            [0],
            "the 1 known classes: {}.\nHint: known classes are 0.",
        ),
    ],
)
def test_unseen_labels(labels, unseen, classes, known):
    with pytest.raises(InvalidInputError) as caught:
        ClasswiseNeighbors().fit(np.zeros((len(labels), 2)), labels, classes=list(classes))
    assert str(caught.value) == (
        "y passed to ClasswiseNeighbors contains labels that are not among " + known.format(unseen)
    )


@pytest.mark.parametrize("call", [ClasswiseNeighbors.kneighbors, lambda index: index.save("never.nagg")])
def test_not_fitted(call):
    with pytest.raises(NotFittedError) as caught:
        call(ClasswiseNeighbors())
    assert str(caught.value) == (
        "This ClasswiseNeighbors instance is not fitted yet. Call 'fit' with appropriate arguments before "
        "using this estimator."
    )


def test_no_threads_are_refused():
    with pytest.raises(InvalidParameterError, match=r"^The 'n_jobs' parameter must not be 0\.\nHint: "):
        ClasswiseNeighbors(n_jobs=0).fit([[0.0], [1.0]], [0, 1])
