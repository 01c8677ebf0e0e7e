"""Explanations in words, as a table, and as numbers that add up."""

import sys

import numpy as np
import pytest

from neighboragg.exceptions import InvalidInputError, MissingExtraError
from neighboragg.methods import Explanation, NeighborAgg


@pytest.fixture
def explanation():
    return Explanation(
        classes=np.array(["cat", "dog", "owl"]),
        predicted=np.array([0, 2]),
        trust=np.array([[0.5, 0.375, 0.125], [0.1, 0.7, 0.2]]),
        experts=["classifier", "5 nearest (features)"],
        contributions=np.array(
            [[[2.0, -0.5], [0.5, 0.0], [-2.5, 0.5]], [[0.0, 0.0], [0.0, 1.5], [0.0, -1.5]]]
        ),
        distances=np.array(
            [[[0.5, 1.25], [2.0, np.inf], [3.0, 4.0]], [[1.0, 1.0], [0.125, 9.0], [np.inf, np.inf]]]
        ),
        indices=np.array([[[4, 7], [2, -1], [0, 1]], [[4, 7], [2, 8], [-1, -1]]]),
    )


def test_words(explanation):
    assert str(explanation) == (
        "Predicted cat with trust 0.500; next is dog with 0.375.\n"
        "  classifier                    +1.50  for cat\n"
        "  5 nearest (features)          -0.50  for dog\n"
        "  nearest cat: row 4 at 0.5, row 7 at 1.25\n"
        "  nearest dog: row 2 at 2\n"
        "\n"
        "Predicted owl with trust 0.200; next is dog with 0.700.\n"
        "  5 nearest (features)          -3.00  for dog\n"
        "  classifier                    +0.00  for owl\n"
        "  nearest owl: none\n"
        "  nearest dog: row 2 at 0.125, row 8 at 9"
    )


def test_the_only_class():
    one = np.ones((1, 1, 1))
    explanation = Explanation(
        np.array(["cat"]), np.array([0]), one[0], ["classifier"], one, one, one.astype(int)
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
    assert frame.columns.tolist() == ["row", "class", "trust", "expert", "contribution"]
    assert len(frame) == 2 * 3 * 2
    assert frame.iloc[0].tolist() == [0, "cat", 0.5, "classifier", 2.0]
    assert frame.iloc[1].tolist() == [0, "cat", 0.5, "5 nearest (features)", -0.5]
    assert frame.iloc[9].tolist() == [1, "dog", 0.7, "5 nearest (features)", 1.5]


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
