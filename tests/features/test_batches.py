"""The answer for a row depends on nothing but the row and the fit: not on its batch, its dtype or its file."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from neighboragg import NeighborAgg, TrustedClassifier
from neighboragg.exceptions import InvalidInputError
from neighboragg.features import TabularFeatures
from tests.sizes import examples

MISSING = {"None": None, "NaN": np.nan, "NA": pd.NA, "NaT": pd.NaT}


def make_frame(n, seed):
    """Codes as text, half of them missing, with numbers and categories next to them."""
    rng = np.random.default_rng(seed)
    code = rng.integers(10, 14, n).astype(str).astype(object)
    code[rng.random(n) < 0.5] = None
    color = rng.choice(["red", "green", "blue"], n).astype(object)
    size = rng.normal(size=n)
    size[rng.random(n) < 0.2] = np.nan
    y = (code == "11") | ((color == "red") & (np.nan_to_num(size) > 0))
    frame = pd.DataFrame({"code": code, "color": color, "size": size, "nothing": [None] * n})
    return frame, np.where(y, "yes", "no")


@pytest.fixture(scope="module")
def model():
    X, y = make_frame(400, 0)
    classifier = make_pipeline(TabularFeatures(), LogisticRegression())
    return TrustedClassifier(classifier, NeighborAgg(effort="fast"), random_state=0).fit(X, y)


NEW = make_frame(60, 1)[0]


def as_read(part, missing, numbers):
    """Rows as some reader gives them: with another kind of missing value, and codes as numbers if it can."""
    part = part.copy()
    for name in ("code", "color"):
        part[name] = part[name].astype(object).where(part[name].notna(), missing)
    if numbers:  # as pandas reads a file of codes
        part["code"] = pd.to_numeric(part["code"].where(part["code"].notna(), np.nan))
    return part


@examples(30)
@given(
    order=st.permutations(range(len(NEW))),
    cuts=st.lists(st.integers(1, len(NEW) - 1), max_size=4, unique=True),
    missing=st.sampled_from(sorted(MISSING)),
    numbers=st.booleans(),
)
def test_a_row_gets_the_same_answer_in_any_batch(model, order, cuts, missing, numbers):
    expected = model.assess(NEW).to_frame()
    bounds = [0, *sorted(cuts), len(NEW)]
    batches = [NEW.iloc[list(order[a:b])] for a, b in pairwise(bounds)]
    found = pd.concat(
        [model.assess(as_read(batch, MISSING[missing], numbers)).to_frame() for batch in batches]
    ).loc[NEW.index]
    assert (found["predicted"] == expected["predicted"]).all()
    for name in ("probability", "trust", "familiarity"):
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-9)


def test_a_code_is_a_category_however_many_missing_values_come_first():
    column = np.array([None] * 200 + ["11", "12"] * 50, dtype=object)[:, None]
    features = TabularFeatures().fit(column)
    assert features.kinds_ == ["category"]
    assert features.categories_ == {0: ["", "11", "12"]}
    alone = np.array([[11.0], [np.nan]])
    np.testing.assert_array_equal(features.transform(alone), features.transform(column[[200, 0]]))


def test_numbers_that_come_as_text_are_converted_or_named():
    features = TabularFeatures().fit(pd.DataFrame({"age": [1.0, 2.0, 5.0]}))
    expected = features.transform(pd.DataFrame({"age": [2.0, np.nan]}))
    np.testing.assert_array_equal(features.transform(pd.DataFrame({"age": ["2", None]})), expected)
    with pytest.raises(InvalidInputError) as caught:
        features.transform(pd.DataFrame({"age": ["2", "old"]}))
    assert str(caught.value) == (
        "Column 'age' of X contained only numbers in fit, but now contains 'old' in row 1.\n"
        "Hint: convert the column, or fit again with rows like this one."
    )


def test_a_column_without_values_in_fit_is_ignored():
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0], "later": [None, None, None]})
    features = TabularFeatures().fit(frame)
    assert features.kinds_ == ["number", "empty"]
    expected = features.transform(frame)
    for values in (["a", "b", "c"], [1, 2, 3], [np.nan] * 3):
        np.testing.assert_array_equal(features.transform(frame.assign(later=values)), expected)


def test_texts_may_begin_with_a_missing_one():
    texts = ["a red apple pie", "the green tree here", "some blue sky above", "a long way home"] * 3
    features = TabularFeatures().fit(texts)
    found = features.transform(pd.Series([None, *texts[:2]]))
    np.testing.assert_array_equal(found[1:], features.transform(texts[:2]))
