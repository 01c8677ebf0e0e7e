"""The answer for a batch: its arrays, its table, its frame."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from neighboragg import Assessment, TrustedClassifier
from neighboragg.methods import MaxConfidence


@pytest.fixture(scope="module")
def assessed():
    X, y = make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    X = pd.DataFrame(X, columns=list("abcde"), index=[f"row {i}" for i in range(200)])
    model = TrustedClassifier(LogisticRegression(), MaxConfidence(), random_state=0).fit(X, y)
    return model, X, model.assess(X)


def made(**changes):
    values = {
        "predicted": np.array(["cat", "<b>"]),
        "probability": np.array([0.5, 1.0]),
        "trust": np.array([0.25, 0.9999]),
        "proba": np.eye(2),
        "class_trust": np.eye(2),
        "index": np.array([7, 1234]),
        "classes": np.array(["<b>", "cat"]),
    }
    return Assessment(**{**values, **changes})


def test_arrays_are_those_of_the_single_methods(assessed):
    model, X, found = assessed
    np.testing.assert_array_equal(found.predicted, model.predict(X))
    np.testing.assert_array_equal(found.proba, model.predict_proba(X))
    np.testing.assert_array_equal(found.trust, model.score_samples(X))
    np.testing.assert_array_equal(found.class_trust, model.predict_trust(X))
    np.testing.assert_array_equal(found.classes, model.classes_)
    np.testing.assert_array_equal(found.probability, found.proba[np.arange(200), found.predicted])
    assert found.accepted is None
    assert found.seen_in_fit.all()
    assert not found.copies_by_chance


def test_a_frame_keeps_the_index_of_the_rows(assessed):
    _, X, found = assessed
    frame = found.to_frame()
    assert list(frame) == ["predicted", "probability", "trust", "seen_in_fit"]
    pd.testing.assert_index_equal(frame.index, X.index)
    np.testing.assert_array_equal(frame["trust"], found.trust)


def test_rows_of_an_array_are_numbered(assessed):
    model, X, _ = assessed
    found = TrustedClassifier(LogisticRegression(), MaxConfidence(), random_state=0)
    found = found.fit(X.to_numpy(), model.predict(X)).assess(X.to_numpy()[:4])
    assert found.to_frame().index.tolist() == [0, 1, 2, 3]
    assert found[[False, True, False, True]].index.tolist() == [1, 3]


@pytest.mark.parametrize("rows", [3, -1, slice(2, 9, 3), [5, 1], np.arange(200) % 7 == 0])
def test_some_rows_are_an_assessment_again(assessed, rows):
    _, _, found = assessed
    some = found[rows]
    positions = np.atleast_1d(np.arange(200)[rows])
    assert len(some) == len(positions)
    for name in ("predicted", "seen_in_fit", "probability", "trust", "proba", "class_trust", "index"):
        np.testing.assert_array_equal(getattr(some, name), getattr(found, name)[positions])
    np.testing.assert_array_equal(some.classes, found.classes)


def test_a_row_that_is_not_there(assessed):
    with pytest.raises(IndexError):
        assessed[2][200]
    assert len(list(assessed[2])) == 200


def test_it_prints_as_an_aligned_table():
    assert repr(made(accepted=np.array([False, True]))) == (
        "      predicted  probability  trust  accepted\n"
        "   7  cat              0.500  0.250  no\n"
        "1234  <b>              1.000  1.000  yes"
    )


def test_a_long_table_shows_both_ends(assessed):
    lines = repr(assessed[2]).splitlines()
    assert len(lines) == 22
    assert lines[1].startswith("row 0 ")
    assert lines[11].split() == ["…"] * 5
    assert lines[-1].startswith("row 199")


def test_html_is_escaped():
    html = made()._repr_html_()
    assert "<td>&lt;b&gt;</td>" in html
    assert "<th>trust</th>" in html
    assert "<b>" not in html
