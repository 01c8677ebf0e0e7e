"""Columns and rows unlike those of fit: what is converted, what is named, and what passes without a word."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import neighboragg
from neighboragg import NeighborAgg, SelectiveClassifier, TrustedClassifier
from neighboragg.exceptions import TrustWarning
from sizes import draws


def table(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "days": rng.normal(30, 5, n),
            "job": rng.choice(["admin", "tech", "none"], n, p=[0.5, 0.3, 0.2]),
            "place": pd.Series(np.where(rng.random(n) < 0.2, None, rng.choice(["x", "y"], n)), dtype=object),
            "grade": pd.Categorical(rng.choice(list("abc"), n)),
        }
    )
    score = (frame["job"] == "admin") + frame["age"] / 60 + rng.normal(0, 0.5, n)
    return frame, (score > 1.3).astype(int).to_numpy()


@pytest.fixture(scope="module")
def model():
    X, y = table(1000, 0)
    numbers = make_column_selector(dtype_include="number")
    encoder = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    return TrustedClassifier(
        make_pipeline(encoder, LogisticRegression()), NeighborAgg(effort="fast"), random_state=0
    ).fit(X, y)


def notes_of(model, X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        notes = model.assess(X).notes
    assert [str(one.message) for one in caught] == list(notes)
    assert all(one.category is TrustWarning and one.filename == __file__ for one in caught)
    return " ".join(notes)


@pytest.mark.parametrize(
    ("column", "change", "words"),
    [
        ("job", lambda c: c.str.upper(), "100% of the values did not occur in fit, such as 'ADMIN'; 'admin' did."),
        ("job", lambda c: c + " ", "did not occur in fit, such as 'admin '; 'admin' did."),
        ("days", lambda c: c * 24, "in fit they lay between"),
        ("age", lambda c: c * np.nan, "100% of the values are missing; in fit 0% were."),
        ("job", lambda c: c.where(c == "none", "none"), "100% of the values are 'none'; in fit 2"),
        ("job", lambda c: c.where(c != "tech", "chef"), "did not occur in fit, such as 'chef'"),
    ],
    ids=["case", "spaces", "units", "missing", "shares", "new category"],
)  # fmt: skip
def test_a_changed_column_is_named(model, column, change, words):
    X, _ = table(400, 1)
    note = notes_of(model, X.assign(**{column: change(X[column])}))
    assert note.startswith(f"Columns of these 400 rows are unlike those of fit: column '{column}': ")
    assert words in note


def test_swapped_columns_are_both_named(model):
    X, _ = table(400, 1)
    note = notes_of(model, X.assign(age=X["days"], days=X["age"]))
    assert "column 'age': half" in note
    assert "column 'days': half" in note


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("age", lambda c: c.astype(str)),
        ("age", lambda c: c.astype(int)),
        ("place", lambda c: c.where(c.notna(), np.nan)),
        ("grade", lambda c: c.astype(str)),
        ("grade", lambda c: c.cat.reorder_categories(list("cba"))),
        ("job", lambda c: c.astype("category")),
    ],
    ids=[
        "text of numbers",
        "whole numbers",
        "NaN for None",
        "text of categories",
        "other order",
        "categories",
    ],
)
def test_what_loses_nothing_is_converted_without_a_word(model, column, change, tmp_path):
    X, _ = table(400, 1)
    changed = X.assign(**{column: change(X[column])})
    model.save(tmp_path / "model.nagg")
    for one in (model, neighboragg.load(tmp_path / "model.nagg")):
        assert notes_of(one, changed) == ""
        np.testing.assert_allclose(one.assess(changed).trust, model.assess(X).trust, atol=1e-12)
        np.testing.assert_array_equal(one.predict(changed), model.predict(X))


def test_predict_warns_too(model):
    X, _ = table(400, 1)
    for call in (model.predict, model.predict_proba, model.score_samples):
        with pytest.warns(TrustWarning, match="column 'job'"):
            call(X.assign(job="other"))


def test_a_promise_about_changed_columns_warns(model):
    X, y = table(400, 1)
    with pytest.warns(TrustWarning, match="column 'job'") as caught:
        SelectiveClassifier(model, target_coverage=0.5).calibrate(X.assign(job="other"), y)
    assert caught[0].filename == __file__


def test_batches_from_the_same_source_pass_without_a_word(model):
    n = draws(100)
    noted = sum(notes_of(model, table((8, 40, 300, 2000)[seed % 4], seed + 2)[0]) != "" for seed in range(n))
    assert noted <= max(1, round(0.01 * n))


def test_rows_unlike_the_training_data_are_counted(model):
    X, y = table(400, 1)
    rng = np.random.default_rng(0)
    far = X.assign(age=rng.uniform(60, 89, 400), days=rng.choice([5.0, 60.0], 400))
    assert "of these rows are unlike the training data (5% expected by chance)" in notes_of(model, far)
    safe = SelectiveClassifier(model, target_coverage=0.5).calibrate(X, y)
    with pytest.warns(TrustWarning, match="a promised risk does not cover them"):
        safe.predict(far)
