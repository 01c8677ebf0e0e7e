"""Texts to vectors, and what counts as a text."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from neighboragg.features import TabularFeatures
from neighboragg.features._columns import TextVectors, column_kind, is_texts, read_columns

QUESTIONS = [
    "How far is the moon from here?",
    "How far is Mars from the sun?",
    "Who wrote the novel Emma?",
    "Who wrote the play Faust?",
    "How many people live in Oslo?",
    "How many people live in Rome?",
]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.0, 2.0, 3.0], "number"),
        (QUESTIONS, "text"),
        ([*QUESTIONS[:4], None, None], "text"),
        (["red", "blue", "green"], "category"),
        (["dark red", "light blue"] * 3, "category"),
        (["order 17", "order 18", "order 19"], "category"),
        (["a-17", "b-18", "c-19"], "category"),
        (["", "", ""], "empty"),
    ],
)
def test_kinds_of_columns(values, kind):
    (column,) = read_columns(pd.DataFrame({"x": values}))
    assert column_kind(column) == kind


@pytest.mark.parametrize(
    "texts",
    [QUESTIONS, tuple(QUESTIONS), np.array(QUESTIONS), np.array(QUESTIONS, dtype=object), pd.Series(QUESTIONS),
     pl.Series(QUESTIONS), pd.Series(QUESTIONS, dtype="string")],
    ids=["list", "tuple", "array", "objects", "pandas", "polars", "string dtype"],
)  # fmt: skip
def test_texts_in_any_container_are_one_column(texts):
    assert is_texts(texts)
    features = TabularFeatures()
    vectors = features.fit_transform(texts)
    assert features.kinds_ == ["text"]
    np.testing.assert_array_equal(vectors, TabularFeatures().fit_transform(pd.DataFrame({"q": QUESTIONS})))
    np.testing.assert_allclose(features.transform(texts), vectors)


@pytest.mark.parametrize(
    "rows", [[], [[1.0]], np.ones(3), [1.0, 2.0], "one text", pd.DataFrame({"q": QUESTIONS})]
)
def test_what_is_not_a_list_of_texts(rows):
    assert not is_texts(rows)


def test_related_texts_are_near_and_lengths_are_one():
    vectors = TextVectors().fit_transform(QUESTIONS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)
    similar = vectors @ vectors.T
    assert (similar[[0, 2, 4], [1, 3, 5]] > 0.5).all()
    assert similar[0, 2] < 0.3


def test_texts_without_a_common_term_have_no_vectors():
    texts = TextVectors().fit(["abc", "xyz"])
    assert texts.transform(["abc"]).shape == (1, 0)
    assert TextVectors().fit(["abc"]).transform(["abc", "d"]).shape == (2, 0)


def test_a_text_of_unknown_terms_is_zero():
    np.testing.assert_array_equal(TextVectors().fit(QUESTIONS).transform(["ÄÖÜ"]), 0.0)


def test_texts_stand_beside_other_columns():
    frame = pd.DataFrame({"length": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "q": QUESTIONS, "c": list("aabbab")})
    features = TabularFeatures()
    rows = features.fit_represent(frame)
    alone = TextVectors().fit(QUESTIONS)
    assert features.kinds_ == ["number", "text", "category"]
    assert rows.vectors.shape == (6, 1 + 2 + alone.transform(QUESTIONS).shape[1])
    np.testing.assert_array_equal(rows.terms.toarray(), alone.terms(QUESTIONS).toarray())
    again = features.represent(frame)
    np.testing.assert_allclose(again.vectors, rows.vectors)
    assert TabularFeatures().fit_represent(frame[["length"]]).terms is None
