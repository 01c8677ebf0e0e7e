"""Dataset: rows as a user has them, plain matrix, frame, checksum."""

import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.datasets import Dataset
from neighboragg.exceptions import InvalidInputError, MissingExtraError


@pytest.fixture
def mixed():
    return Dataset(
        "mixed",
        y=np.array(["no", "yes", "no"]),
        numeric=np.array([[1.0, -2.5], [2.0, 0.0], [3.0, 7.0]]),
        categorical=np.array([["b", "?"], ["a", "x"], ["b", "x"]], dtype=object),
        feature_names=("kind", "size", "other", "weight"),
        categorical_names=("kind", "other"),
    )


@pytest.fixture
def questions():
    return Dataset(
        "questions",
        y=np.array(["A", "B"]),
        numeric=np.empty((2, 0)),
        categorical=np.empty((2, 0), dtype=object),
        feature_names=("text",),
        text=np.array(["Who 's it ?", "Where_to ?"], dtype=object),
    )


@pytest.fixture
def images():
    return Dataset(
        "images",
        y=np.array([3, 1]),
        numeric=np.empty((2, 0)),
        categorical=np.empty((2, 0), dtype=object),
        feature_names=("pixel_0", "pixel_1"),
        images=np.array([[0, 255], [7, 8]], dtype=np.float32),
        n_train=1,
    )


@pytest.mark.full
def test_imports_without_pandas():
    code = "import sys; sys.modules['pandas'] = None; import benchmarks.datasets"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_rows_keep_the_order_of_the_names(mixed):
    assert mixed.X.tolist() == [["b", 1.0, "?", -2.5], ["a", 2.0, "x", 0.0], ["b", 3.0, "x", 7.0]]


def test_numeric_rows_are_the_array_itself(mixed):
    numeric = replace(mixed, feature_names=("size", "weight"), categorical_names=())
    assert numeric.X is numeric.numeric


def test_matrix_has_one_column_a_category(mixed):
    np.testing.assert_array_equal(
        mixed.to_matrix(), [[1, -2.5, 0, 1, 1, 0], [2, 0, 1, 0, 0, 1], [3, 7, 0, 1, 0, 1]]
    )


def test_matrix_of_images(images):
    assert images.to_matrix() is images.images and images.X is images.images


def test_matrix_of_texts(questions):
    with pytest.raises(InvalidInputError) as caught:
        questions.to_matrix()
    assert str(caught.value) == (
        "The data set 'questions' holds texts, which have no plain matrix.\n"
        "Hint: turn them into vectors first, e.g. TfidfVectorizer().fit_transform(dataset.text)."
    )


@given(rows=st.lists(st.tuples(st.sampled_from("abc?"), st.sampled_from("xyz")), min_size=1, max_size=30))
def test_one_hot_columns_sum_to_one_per_feature(rows):
    dataset = Dataset(
        "any",
        y=np.zeros(len(rows), dtype=int),
        numeric=np.empty((len(rows), 0)),
        categorical=np.array(rows, dtype=object),
        feature_names=("first", "second"),
        categorical_names=("first", "second"),
    )
    matrix = dataset.to_matrix()
    n_first = len({first for first, _ in rows})
    assert matrix.shape == (len(rows), n_first + len({second for _, second in rows}))
    np.testing.assert_array_equal(matrix[:, :n_first].sum(axis=1), 1.0)
    np.testing.assert_array_equal(matrix[:, n_first:].sum(axis=1), 1.0)


def test_frame_of_mixed_columns(mixed):
    frame = mixed.to_frame()
    assert list(frame.columns) == ["kind", "size", "other", "weight", "label"]
    assert isinstance(frame["kind"].dtype, pd.CategoricalDtype)
    assert frame["other"].tolist() == ["?", "x", "x"]
    assert frame["weight"].tolist() == [-2.5, 0.0, 7.0] and frame["label"].tolist() == ["no", "yes", "no"]


def test_frames_of_texts_and_images(questions, images):
    assert questions.to_frame().to_dict("list") == {
        "text": ["Who 's it ?", "Where_to ?"],
        "label": ["A", "B"],
    }
    assert images.to_frame().to_dict("list") == {"pixel_0": [0, 7], "pixel_1": [255, 8], "label": [3, 1]}


def test_frame_without_pandas(mixed, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError) as caught:
        mixed.to_frame()
    assert str(caught.value) == (
        "Dataset.to_frame needs the package 'pandas', which is not installed.\n"
        'Hint: pip install "neighboragg[cli]"'
    )


def test_checksum_sees_every_value(mixed, images):
    changed = [
        replace(mixed, numeric=mixed.numeric + 1e-12),
        replace(mixed, categorical=mixed.categorical[:, ::-1]),
        replace(mixed, y=mixed.y[::-1].copy()[[0, 2, 1]]),
    ]
    assert len({data.checksum() for data in [mixed, *changed]}) == 4
    assert images.checksum() != replace(images, images=images.images + 1).checksum()
    assert (
        mixed.checksum() == replace(mixed, name="other", numeric=np.asfortranarray(mixed.numeric)).checksum()
    )


def test_checksum_of_texts_leaves_out_blanks_and_punctuation(questions):
    same = np.array(["Who's it ?", "Where to?"], dtype=object)
    other = np.array(["Who is it ?", "Where to?"], dtype=object)
    assert questions.checksum() == replace(questions, text=same).checksum()
    assert questions.checksum() != replace(questions, text=other).checksum()


def test_short_and_frozen(mixed):
    assert repr(mixed) == "Dataset('mixed', n_samples=3, n_features=4, n_classes=2)"
    with pytest.raises(FrozenInstanceError):
        mixed.name = "other"
