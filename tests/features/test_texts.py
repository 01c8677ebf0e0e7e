"""Texts to vectors, and what counts as a text."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

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
        (5 * [f"the parcel number {word} has not arrived" for word in "abcdefghijklmnopqrstu"], "text"),
        (50 * ["I strongly agree with this", "I do not agree with this"], "category"),
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


MANY_WORDS = [f"{QUESTIONS[i % 6]} {' '.join(f'w{(i * j) % 400}' for j in range(1, 8))}" for i in range(120)]


@pytest.mark.parametrize("texts", [QUESTIONS, MANY_WORDS], ids=["narrow", "reduced"])
@pytest.mark.parametrize("vectorizer", [TfidfVectorizer(), CountVectorizer()], ids=["weights", "counts"])
def test_sparse_terms_have_unit_length_and_zero_without_any(texts, vectorizer):
    terms = vectorizer.fit_transform(texts)
    if texts is QUESTIONS and isinstance(vectorizer, CountVectorizer):
        terms = sparse.hstack([terms, sparse.csr_matrix((6, 150))]).tocsr()  # few of all words
    features = TabularFeatures()
    vectors = features.fit_transform(terms)
    assert (vectors.shape[1] < terms.shape[1]) == (texts is MANY_WORDS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)
    np.testing.assert_array_equal(features.transform(terms[3:5]), vectors[3:5])
    np.testing.assert_allclose(features.transform(7 * terms), vectors, atol=1e-9)
    np.testing.assert_array_equal(features.transform(0 * terms[:1]), 0.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_other_sparse_matrices_keep_their_scale(sign):
    rng = np.random.default_rng(0)
    X = sign * rng.random((50, 300)) * (rng.random((50, 300)) < (0.5 if sign > 0 else 0.05))
    lengths = np.linalg.norm(TabularFeatures().fit_transform(sparse.csr_matrix(X)), axis=1)
    np.testing.assert_allclose(lengths, np.linalg.norm(X, axis=1), rtol=0.3)
