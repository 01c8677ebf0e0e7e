"""Anybody's table as a matrix: what becomes of each kind of column, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.datasets import list_datasets
from benchmarks.runs import load_matrix
from neighboragg.exceptions import InvalidInputError, TrustWarning


@pytest.fixture
def basic():
    """60 rows with one number and a label of two values."""
    return pd.DataFrame({"x": np.random.default_rng(0).normal(size=60).round(2), "y": ["no", "yes"] * 30})


def message_of(kind, call, *args):
    with pytest.raises(kind) as error:
        call(*args)
    return str(error.value)


def test_csv_with_everything(tmp_path, frame):
    table = frame(200)
    path = tmp_path / "fruit.csv"
    table.to_csv(path, index=False)
    X, labels = load_matrix(str(path), "kind")
    gaps = table["size"].isna().to_numpy()
    assert labels.tolist() == table["kind"].tolist()
    assert labels.dtype.kind == "U"
    # size, its gaps, weight, four colors (one of them missing), ripe
    assert X.shape == (200, 8)
    assert X.dtype == np.float64
    assert np.isfinite(X).all()
    np.testing.assert_allclose(X[:, 0], table["size"].fillna(table["size"].median()))
    np.testing.assert_array_equal(X[:, 1], gaps)
    np.testing.assert_allclose(X[:, 2], table["weight"])
    np.testing.assert_array_equal(X[:, 3:7].sum(axis=1), np.ones(200))
    for j, color in enumerate(["blue", "green"]):
        np.testing.assert_array_equal(X[:, 3 + j], table["color"] == color)
    np.testing.assert_array_equal(X[:, 5], table["color"].isna())
    np.testing.assert_array_equal(X[:, 7], table["ripe"])


@pytest.mark.parametrize(
    "name",
    ["fruit.parquet", "fruit.PQ", "fruit.csv.gz", "FRUIT.CSV", "fruit.tsv", "fruit.tsv.gz", "fruit.v2.txt"],
)
def test_other_formats_hold_the_same(tmp_path, frame, name):
    table, path = frame(100), tmp_path / name
    if path.suffix in (".parquet", ".PQ"):
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if ".tsv" in path.suffixes else ",")
    X, labels = load_matrix(str(path), "kind")
    expected, expected_labels = load_matrix(table, "kind")
    np.testing.assert_allclose(X, expected)
    np.testing.assert_array_equal(labels, expected_labels)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_dates_are_numbers(tmp_path, basic, zone):
    basic["x"] = pd.date_range("2024-01-01", periods=60, freq="D", tz=zone)
    path = tmp_path / "dates.parquet"
    basic.to_parquet(path)
    X, _ = load_matrix(str(path), "y")
    assert X.shape == (60, 1)
    day = pd.Timedelta(days=1) / pd.Timedelta(1, unit=basic["x"].dt.unit)
    np.testing.assert_allclose(np.diff(X[:, 0]), day, rtol=1e-6)

    basic.loc[7, "x"] = pd.NaT
    X, _ = load_matrix(basic, "y")
    np.testing.assert_array_equal(np.flatnonzero(X[:, 1]), [7])
    assert X[0, 0] < X[7, 0] < X[-1, 0]


def test_dates_as_text_are_dates(basic):
    basic["x"] = pd.date_range("2024-01-01", periods=60).strftime("%Y-%m-%d")
    X, _ = load_matrix(basic, "y")
    assert X.shape == (60, 1)
    assert (np.diff(X[:, 0]) > 0).all()


def test_columns_that_pandas_marks_as_missing(basic):
    basic["whole"] = pd.array([1, None, 3] * 20, dtype="Int64")
    basic["flag"] = pd.array([True, None, False] * 20, dtype="boolean")
    basic["group"] = pd.Categorical([3, 1, 3] * 20)
    X, _ = load_matrix(basic, "y")
    np.testing.assert_array_equal(
        X[:3, 1:],
        [[1, 0, 1, 0, 0, 1], [2, 1, 0.5, 1, 1, 0], [3, 0, 0, 0, 0, 1]],
    )


def test_infinite_values_are_missing_and_empty_columns_vanish(basic):
    basic.loc[3, "x"] = np.inf
    basic["empty"] = np.nan
    with pytest.warns(TrustWarning) as caught:
        X, _ = load_matrix(basic, "y")
    assert [str(warning.message) for warning in caught] == ["Left out 'empty' (empty)."]
    assert X.shape == (60, 2)
    assert np.isfinite(X).all()
    assert X[3].tolist() == [np.median(np.delete(basic["x"].to_numpy(), 3)), 1.0]


def test_rows_without_a_label_are_left_out(basic):
    basic.loc[:4, "y"] = None
    X, labels = load_matrix(basic, "y")
    assert X[:, 0].tolist() == basic["x"].tolist()[5:]
    assert set(labels.tolist()) == {"no", "yes"}


def test_numbers_may_be_labels(basic):
    basic["y"] = [1, 2, 3] * 20
    assert load_matrix(basic, "y")[1].tolist() == ["1", "2", "3"] * 20


def test_labels_of_a_file_are_their_text(tmp_path, basic):
    basic["y"] = ["01", "02", "None"] * 20
    basic.to_csv(tmp_path / "t.csv", index=False)
    X, labels = load_matrix(tmp_path / "t.csv", "y")
    assert labels.tolist() == ["01", "02", "None"] * 20
    assert len(X) == 60


def test_an_identifier_is_left_out_and_named(frame):
    table = frame(150)
    expected = load_matrix(table, "kind")[0]
    table.insert(0, "customer", [f"c{i}" for i in range(150)])
    table.insert(3, "note", [f"some text {i}" for i in range(150)])
    with pytest.warns(TrustWarning) as caught:
        X = load_matrix(table, "kind")[0]
    assert [str(warning.message) for warning in caught] == [
        "Left out 'customer' (every value occurs once), 'note' (texts)."
    ]
    np.testing.assert_array_equal(X, expected)


def test_a_table_of_identifiers_alone_is_refused(basic):
    table = pd.concat([basic, basic], ignore_index=True).drop(columns="x")
    assert message_of(InvalidInputError, load_matrix, table, "y") == (
        "There is no usable column other than the label:\n"
        "  the label is the only column\n"
        "Hint: add columns of numbers or categories."
    )


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["same"] * 60, "The label column 'y' has a single value, 'same'."),
        (
            ["no", "yes"] * 20 + [None] * 20,
            "Only 40 rows have a label in 'y'; at least 50 are needed.",
        ),
        (
            [f"class {i % 13}" for i in range(60)],
            "The label column 'y' has 13 different values in 60 rows; each has too few rows to compare methods.\n"
            "Hint: choose another column, or join rare classes.",
        ),
    ],
)
def test_labels_that_cannot_be_compared(basic, labels, message):
    basic["y"] = labels
    assert message_of(InvalidInputError, load_matrix, basic, "y") == message


def test_twelve_classes_in_sixty_rows_are_just_enough(basic):
    basic["y"] = [f"class {i % 12}" for i in range(60)]
    assert len(np.unique(load_matrix(basic, "y")[1])) == 12


def test_unknown_label_column(basic):
    assert message_of(InvalidInputError, load_matrix, basic, "z") == (
        "There is no column 'z' in the table.\nHint: the columns are 'x', 'y'."
    )


def test_missing_file_and_unknown_format(tmp_path):
    path = tmp_path / "absent.csv"
    assert message_of(InvalidInputError, load_matrix, str(path), "y") == f"There is no file {path}."
    path = tmp_path / "table.docx"
    path.touch()
    assert message_of(InvalidInputError, load_matrix, str(path), "y") == (
        f"Cannot tell the format of {path}.\n"
        "Hint: use .csv, .tsv or .jsonl (each also with .gz), .parquet, .feather or .xlsx."
    )


def test_unknown_data_set():
    assert message_of(InvalidInputError, load_matrix, "fruit.csv") == (
        f"Unknown data set 'fruit.csv'.\nHint: one of {', '.join(list_datasets())}; for a file, name its label column."
    )


def test_known_data_set(monkeypatch):
    class Known:
        y = np.array(["b", "a", "b"])

        def to_matrix(self):
            return np.eye(3)

    monkeypatch.setattr("benchmarks.runs._load_matrix.load_dataset", {"letter": Known()}.get)
    X, labels = load_matrix("letter")
    np.testing.assert_array_equal(X, np.eye(3))
    assert labels.tolist() == [1, 0, 1]
