"""Explanations in words, as a table, and as numbers that add up."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

from neighboragg import Explanation, NeighborAgg
from neighboragg.exceptions import InvalidInputError, MissingExtraError
from neighboragg.methods._explanation import ReferenceValues, RowValues


@pytest.fixture
def explanation():
    return Explanation(
        classes=np.array(["cat", "dog", "owl"]),
        predicted=np.array([0, 2]),
        trust=np.array([[0.5, 0.375, 0.125], [0.1, 0.7, 0.2]]),
        experts=["classifier", "5 nearest (features)", "forest"],
        contributions=np.array(
            [
                [[2.0, -0.5, 0.25], [0.5, 0.0, 0.0], [-2.5, 0.5, -0.25]],
                [[0.0, 0.0, 0.0], [0.0, 1.5, 0.25], [0.0, -1.5, -0.25]],
            ]
        ),
        distances=np.array(
            [[[0.5, 1.25], [2.0, np.inf], [3.0, 4.0]], [[1.0, 1.0], [0.125, 9.0], [np.inf, np.inf]]]
        ),
        indices=np.array([[[4, 7], [2, -1], [0, 1]], [[4, 7], [2, 8], [-1, -1]]]),
        groups=["classifier", "neighbors", "second opinions"],
        spaces=["", "features", ""],
        proba=np.array([[0.6, 0.3, 0.1], [0.3, 0.3, 0.4]]),
        opinions={"forest": np.array([[0.2, 0.7, 0.1], [0.1, 0.5, 0.4]])},
    )


def test_words(explanation):
    assert str(explanation) == (
        "Predicted cat with trust 0.500; next is dog with 0.375.\n"
        "  classifier       gives cat 0.60 and dog 0.30: raises the trust in cat (+1.50)\n"
        "  neighbors        nearest cat at 0.5, nearest dog at 2; 2 nearest at 0.875 and 2 on average: "
        "lower the trust in cat (-0.50), to correct the others\n"
        "  second opinions  forest gives cat 0.20 and dog 0.70: "
        "raise the trust in cat (+0.25), to correct the others\n"
        "  nearest cat: row 4 at 0.5, row 7 at 1.25\n"
        "  nearest dog: row 2 at 2\n"
        "\n"
        "Predicted owl with trust 0.200; next is dog with 0.700.\n"
        "  classifier       gives owl 0.40 and dog 0.30: makes no difference\n"
        "  neighbors        no owl, nearest dog at 0.125; 2 nearest at inf and 4.56 on average: "
        "lower the trust in owl (-3.00)\n"
        "  second opinions  forest gives owl 0.40 and dog 0.50: lower the trust in owl (-0.50)\n"
        "  nearest owl: none\n"
        "  nearest dog: row 2 at 0.125, row 8 at 9"
    )


def test_neighbors_that_are_not_shown_are_named(explanation):
    learned = replace(explanation, spaces=["", "learned metric", ""])
    assert "lower the trust in cat (-0.50), by the learned metric\n" in str(learned)


def test_what_did_not_help_at_all_is_said(explanation):
    silent = np.where(np.arange(3) == 0, explanation.contributions, 0.0)
    words = str(replace(explanation, contributions=silent, guard_weight=0.0)).splitlines()
    assert words[1].endswith(": raises the trust in cat (+1.50)")
    assert words[2].endswith(": have no say, as they did not help on the validation rows")
    assert words[3].endswith(": have no say, as they did not help on the validation rows")
    assert not any("0.00" in line for line in words)


def test_rows_are_called_by_their_names(explanation):
    named = replace(
        explanation, names=["ID-7a", 12], reference_names=np.array([f"customer {i}" for i in range(9)])
    )
    lines = str(named).splitlines()
    assert lines[0] == "ID-7a: predicted cat with trust 0.500; next is dog with 0.375."
    assert lines[4] == "  nearest cat: customer 4 at 0.5, customer 7 at 1.25"
    assert lines[7].startswith("Row 12: predicted owl")
    assert named.to_frame()["row"].tolist()[0] == "ID-7a"


def test_neighbors_are_shown_with_the_values_that_differ_most(explanation):
    rows = pd.DataFrame(
        {"age": [30.0, 60.0], "color": ["red", None], "income": [51234.5, 1e4], "size": [3, 3]}
    )
    reference = pd.DataFrame(
        {"age": np.arange(9.0), "color": ["red"] * 8 + [None], "income": 50_000.0 + np.arange(9), "size": 3}
    )

    def vectorize(frame):
        return np.column_stack([frame["age"], frame["color"] == "red", frame["income"]])

    values = RowValues(rows, ReferenceValues([reference[:5], reference[5:]], vectorize))
    lines = str(replace(explanation, values=values)).splitlines()
    assert lines[4] == (
        "  nearest cat: row 4 at 0.5 (income 50,004, here 51,234; age 4, here 30), "
        "row 7 at 1.25 (income 50,007, here 51,234; age 7, here 30)"
    )
    assert lines[-1].endswith("row 8 at 9 (income 50,008, here 10,000; age 8, here 60)")
    same = RowValues(reference, ReferenceValues([reference], vectorize))
    assert same.difference(2, 2) == "equal in all columns used"


def test_html_is_escaped(explanation):
    html = replace(explanation, classes=np.array(["<cat>", "dog", "owl"]))._repr_html_()
    assert "&lt;cat&gt;" in html
    assert "<cat>" not in html
    assert "<td>neighbors</td>" in html
    assert "<li>row 2 at 2</li>" in html


def test_the_only_class():
    one = np.ones((1, 1, 1))
    explanation = Explanation(
        np.array(["cat"]),
        np.array([0]),
        one[0],
        ["classifier"],
        one,
        one,
        one.astype(int),
        ["classifier"],
        [""],
    )
    assert str(explanation) == "Predicted cat, the only class."


def test_runner_up_is_never_the_prediction(explanation):
    assert explanation.runner_up().tolist() == [1, 1]
    assert len(explanation) == 2


def test_other_row_numbers(explanation):
    renumbered = explanation.renumbered(np.where(explanation.indices < 0, -1, explanation.indices + 100))
    assert "nearest cat: row 104 at 0.5, row 107 at 1.25" in str(renumbered)
    assert "nearest owl: none" in str(renumbered)
    assert "row 104" not in str(explanation)


def test_table(explanation):
    frame = explanation.to_frame()
    assert frame.columns.tolist() == ["row", "class", "trust", "expert", "group", "contribution"]
    assert len(frame) == 2 * 3 * 3
    assert frame.iloc[0].tolist() == [0, "cat", 0.5, "classifier", "classifier", 2.0]
    assert frame.iloc[1].tolist() == [0, "cat", 0.5, "5 nearest (features)", "neighbors", -0.5]
    assert frame.iloc[14].tolist() == [1, "dog", 0.7, "forest", "second opinions", 0.25]


def test_table_without_pandas(explanation, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError) as caught:
        explanation.to_frame()
    assert str(caught.value) == (
        "Explanation.to_frame needs the package 'pandas', which is not installed.\n"
        'Hint: pip install "neighboragg[cli]"'
    )


class TestOfNeighborAgg:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    X = rng.normal(size=(150, 3)) + 2 * np.eye(3)[y]
    P = rng.dirichlet(np.ones(3), 150)
    LABELS = np.array(["a", "b", "c"])

    @pytest.fixture(params=["pool", "network"])
    def method(self, request):
        return NeighborAgg(request.param, n_neighbors=4).fit(self.X, self.LABELS[self.y], proba_val=self.P)

    def test_adds_up(self, method):
        found = method.explain(self.X[:20], self.P[:20])
        np.testing.assert_array_equal(found.trust, method.predict_trust(self.X[:20], self.P[:20]))
        assert found.contributions.shape == (20, 3, len(found.experts))
        rest = np.log(found.trust) - found.contributions.sum(axis=2)
        np.testing.assert_allclose(rest - rest[:, :1], 0, atol=1e-9)

    def test_neighbors_and_classes(self, method):
        found = method.explain(self.X[:20], self.P[:20])
        distances, indices = method.kneighbors(self.X[:20])
        np.testing.assert_array_equal(found.distances, distances)
        np.testing.assert_array_equal(found.indices, indices)
        np.testing.assert_array_equal(found.classes, self.LABELS)
        np.testing.assert_array_equal(found.predicted, self.P[:20].argmax(axis=1))

    def test_predictions_given(self, method):
        found = method.explain(self.X[:2], self.P[:2], y_pred=["c", "a"])
        np.testing.assert_array_equal(found.predicted, [2, 0])
        assert str(found).startswith(f"Predicted c with trust {found.trust[0, 2]:.3f}; next is ")

    def test_unknown_prediction(self, method):
        with pytest.raises(InvalidInputError) as caught:
            method.explain(self.X[:1], self.P[:1], y_pred=["z"])
        assert str(caught.value) == (
            "y_pred passed to NeighborAgg contains labels that are not among the 3 known classes: 'z'.\n"
            "Hint: known classes are 'a', 'b', 'c'."
        )

    def test_neighbors_are_searched_once(self, method, monkeypatch):
        searches = []
        for name, index in method.neighborhoods_.indexes.items():
            search = index.kneighbors
            monkeypatch.setattr(
                index, "kneighbors", lambda *a, n=name, s=search, **k: searches.append(n) or s(*a, **k)
            )
        method.explain(self.X[:2], self.P[:2])
        assert searches == list(method.neighborhoods_.indexes)


class TestOfTheNetwork:
    """It weighs inputs as it has learned to, which may be the other way round."""

    @pytest.fixture
    def explained(self):
        X, y = make_classification(400, 8, n_informative=5, flip_y=0.1, random_state=0)
        P = GaussianNB().fit(X[:150], y[:150]).predict_proba(X)
        method = NeighborAgg("network").fit(
            X[:150], y[:150], X_val=X[150:350], y_val=y[150:350], proba_val=P[150:350]
        )
        return method.explain(X[350:], P[350:])

    def test_a_classifier_that_favors_one_of_two_classes_never_lowers_the_trust_in_it(self, explained):
        assert explained.groups == ["classifier", "neighbors", "class balance"]
        row, predicted = np.arange(50), explained.predicted
        margins = explained.contributions[row, predicted] - explained.contributions[row, 1 - predicted]
        assert (margins[:, 0] > -1e-9).all()

    def test_an_input_that_counts_the_other_way_is_named(self, explanation):
        network = replace(
            explanation,
            experts=["classifier", "neighbors", "class balance"],
            groups=["classifier", "neighbors", "class balance"],
            spaces=["", "", ""],
        )
        assert (
            "lower the trust in cat (-0.50): the network has learned to count it the other way\n"
            "  class balance  what remains if the same evidence favors each class in turn: raise"
        ) in str(network)
