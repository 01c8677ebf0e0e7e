"""Which columns are used, which are ignored, and which give the label away."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine

from benchmarks.datasets import add_label_noise
from neighboragg._data.labels import check_class_labels, label_notes
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.features._leaks import to_matrix
from neighboragg.features._roles import check_usable, column_roles, describe_roles, prepared_frame

N = 300


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def y(rng):
    return rng.integers(0, 3, N).astype(str)


def uses(frame, y, **options):
    return {role.name: role.use for role in column_roles(frame, y, **options)}


def test_kinds_of_columns(rng, y):
    days = pd.date_range("2024-01-01", periods=N, freq="D").to_series().sample(frac=1, random_state=0)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=N),
            "whole": rng.integers(0, 9, N),
            "flag": rng.random(N) < 0.5,
            "maybe": pd.array([1, None] * (N // 2), dtype="Int64"),
            "color": rng.choice(["red", "blue"], N),
            "day": days.to_numpy(),
            "written day": days.dt.strftime("%Y-%m-%d").to_numpy(),
            "moment": days.dt.strftime("%Y-%m-%dT12:30:00Z").to_numpy(),
            "zoned": days.dt.tz_localize("Europe/Berlin").to_numpy(),
            "note": [f"some words {i}" for i in range(N)],
            "empty": np.nan,
            "constant": "x",
            "gaps": ["x", None] * (N // 2),
            "lists": [[1, 2]] * N,
        }
    )
    assert uses(frame, y) == {
        "number": "number", "whole": "number", "flag": "number", "maybe": "number", "color": "category", "day": "date",
        "written day": "date", "moment": "date", "zoned": "date", "note": "text", "empty": "ignored",
        "constant": "ignored", "gaps": "category", "lists": "ignored",
    }  # fmt: skip
    prepared = prepared_frame(frame, column_roles(frame, y))
    assert [prepared[name].dtype.kind for name in ("day", "written day", "moment", "zoned")] == ["M"] * 4
    assert np.isfinite(to_matrix(prepared.drop(columns="note"))).all()


@pytest.mark.full(keep=8)
@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("customer", [f"c{i:03d}" for i in range(N)], "every value occurs once"),
        ("a", np.arange(N), "counted up"),
        ("a", np.arange(N) * 0.5, "counted up"),
        ("a", -np.arange(N), "counted up"),
        ("a", np.random.default_rng(1).permutation(N) + 5_000, "whole numbers that hardly repeat and fill a range"),
        ("a", np.sort(np.random.default_rng(1).choice(3000, N, replace=False)),
         "whole numbers in order that hardly repeat"),
        ("user_id", np.random.default_rng(1).choice(10**9, N, replace=False),
         "whole numbers that hardly repeat, and the name of an identifier"),
        ("qid", [f"{i * 7919:020x}" for i in range(N - 1)] + [f"{0:020x}"], "hashes"),
        ("name", [f"n{i}" for i in range(200)] + [f"n{i}" for i in range(N - 200)], "values hardly ever repeat"),
    ],
)  # fmt: skip
def test_identifiers_are_ignored_with_a_word(y, rng, name, values, reason):
    frame = pd.DataFrame({name: values, "x": rng.normal(size=N)})
    role = column_roles(frame, y)[0]
    assert (role.use, role.reason) == ("ignored", reason)
    assert column_roles(frame, y, use=[name])[0].used


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("income", np.random.default_rng(1).choice(10**6, N, replace=False)),
        ("size", np.sort(np.random.default_rng(1).normal(size=N))),
        ("video", np.random.default_rng(1).integers(0, 50, N)),
        ("city", np.random.default_rng(1).choice([f"c{i}" for i in range(60)], N)),
    ],
)
def test_what_only_resembles_an_identifier_is_used(y, name, values):
    assert column_roles(pd.DataFrame({name: values}), y)[0].used


def with_leak(frame, name, values):
    return frame.assign(**{name: values})


@pytest.fixture(scope="module")
def wine():
    X, target = load_wine(return_X_y=True, as_frame=True)
    noisy = add_label_noise(np.array(["barolo", "grignolino", "barbera"])[target], rate=0.06, random_state=0)
    return X, noisy.y


LEAKS = {
    "copy": lambda y: y,
    "code": lambda y: np.unique(y, return_inverse=True)[1] * 10,
    "scaled": lambda y: (
        np.unique(y, return_inverse=True)[1] + np.random.default_rng(0).normal(0, 0.05, len(y))
    ),
    "finer": lambda y: [f"{label}-{i % 4}" for i, label in enumerate(y)],
    "days": lambda y: pd.Timestamp("2024-01-01") + pd.to_timedelta(np.unique(y, return_inverse=True)[1], "D"),
}


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS.keys())
def test_a_column_that_gives_the_label_away_is_suspicious(wine, leak):
    X, labels = wine
    found = {role.name: role for role in column_roles(X.assign(leak=leak(labels)), labels) if not role.used}
    assert list(found) == ["leak"]
    assert found["leak"].use == "suspicious"
    assert column_roles(X.assign(leak=leak(labels)), labels, use=["leak"])[-1].used


@pytest.mark.full
def test_two_leaks_do_not_excuse_each_other(wine):
    X, labels = wine
    frame = X.assign(copy=labels, code=np.unique(labels, return_inverse=True)[1])
    assert [role.name for role in column_roles(frame, labels) if role.use == "suspicious"] == ["copy", "code"]


def test_the_reason_is_said(wine):
    X, labels = wine
    roles = column_roles(X.assign(copy=labels, row=np.arange(len(X))), labels, ignore=["ash"])
    assert describe_roles(roles) == (
        "  numbers     alcohol, malic_acid, alcalinity_of_ash, magnesium, total_phenols, flavanoids, "
        "nonflavanoid_phenols, proanthocyanins, color_intensity, hue, od280/od315_of_diluted_wines, proline\n"
        "  ignored     ash (not chosen), row (counted up)\n"
        "  SUSPICIOUS  copy encodes the label; left out because it would confirm wrong labels\n"
        "              (to use it anyway: --use copy)"
    )


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_good_columns_are_not_suspicious(load):
    X, target = load(return_X_y=True, as_frame=True)
    assert all(role.used for role in column_roles(X, target.to_numpy()))


def test_a_frequent_class_makes_no_column_suspicious(rng):
    y = (rng.random(1000) < 0.01).astype(int)
    frame = pd.DataFrame({"a": rng.normal(size=1000), "b": rng.choice(["u", "v"], 1000)})
    assert uses(frame, y) == {"a": "number", "b": "category"}


def test_classes_with_one_row_are_no_obstacle(rng, y):
    y = y.astype("U4")
    y[:3] = ["one", "two", "3rd"]
    assert uses(pd.DataFrame({"a": rng.normal(size=N), "copy": y}), y) == {
        "a": "number",
        "copy": "suspicious",
    }


def test_columns_by_name(rng, y):
    frame = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N), "id": np.arange(N)})
    assert uses(frame, y, only=["b", "id"]) == {"a": "ignored", "b": "number", "id": "number"}
    assert uses(frame, y, ignore=["b"]) == {"a": "number", "b": "ignored", "id": "ignored"}
    with pytest.raises(InvalidParameterError) as error:
        column_roles(frame, y, ignore=["z"])
    assert str(error.value) == (
        "ignore names 'z', which is not a column, or is the label column.\n"
        "Hint: the columns are 'a', 'b', 'id'."
    )


def test_nothing_usable_says_why(y):
    frame = pd.DataFrame({"id": np.arange(N), "copy": y})
    with pytest.raises(InvalidInputError) as error:
        check_usable(column_roles(frame, y))
    assert str(error.value) == (
        "There is no usable column other than the label:\n"
        "  id: counted up\n"
        "  copy: encodes the label\n"
        "Hint: name columns to use anyway (--use), or pass embeddings (--embeddings)."
    )


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["u"] * 9, "The label column 'y' has a single value, 'u'."),
        (["u"] + [""] * 9, "Only 1 rows have a label in 'y'; at least 2 are needed."),
        ([str(i / 7) for i in range(100)] * 3,
         "The label column 'y' contains numbers with 100 different values in 300 rows; they look like "
         "measurements, not classes.\n"
         "Hint: choose another column, or cut the numbers into a few classes first."),
        ([str(i) for i in range(60)] + ["1"] * 90,
         "The label column 'y' contains numbers with 60 different values in 150 rows; they look like "
         "measurements, not classes.\n"
         "Hint: choose another column, or cut the numbers into a few classes first."),
        ([f"text {i}" for i in range(90)] + ["text 1"] * 10,
         "The label column 'y' has 90 different values in 100 rows; it does not look like a class.\n"
         "Hint: choose another column."),
    ],
    ids=["single", "none", "measurements", "whole measurements", "texts"],
)  # fmt: skip
def test_labels_that_are_no_classes(labels, message):
    with pytest.raises(InvalidInputError) as error:
        check_class_labels(np.array(labels), "y")
    assert str(error.value) == message


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b", "c"],
        [str(i) for i in range(100)] * 3,
        ["0.5", "1.0", "1.5"] * 9,
        ["a"] * 50 + ["b", "c", "typo"],
    ],
)
def test_labels_that_are_classes(labels):
    check_class_labels(np.array(labels), "y")


def test_spellings_of_one_label_are_noted():
    assert label_notes(np.array(["cat", "Cat ", "dog", "", "cat"])) == [
        "Labels that differ only in spaces or capitalization count as different: 'Cat ' and 'cat'."
    ]
    assert label_notes(np.array(["cat", "dog"])) == []


@pytest.mark.parametrize("option", ["only", "ignore", "use"])
def test_a_text_is_no_list_of_columns(option):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0]})
    with pytest.raises(InvalidParameterError) as caught:
        column_roles(frame, np.array(["x", "y"]), **{option: "ab"})
    assert str(caught.value) == (
        f"{option} must be a list of column names. Got the text 'ab' instead.\nHint: a list of one is ['ab']."
    )
