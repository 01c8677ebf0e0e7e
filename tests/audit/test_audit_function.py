"""The audit as a Python function: what it judges by, what it gives back, and what it writes."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from benchmarks.datasets import add_label_noise
from neighboragg import audit
from neighboragg.exceptions import InvalidInputError, TrustWarning
from neighboragg.labels import FDR, Columns, Embeddings


@pytest.fixture(scope="module")
def wine():
    X, target = load_wine(return_X_y=True, as_frame=True)
    names = np.array(["barolo", "grignolino", "barbera"])[target]
    noisy = add_label_noise(names, rate=0.06, random_state=0)
    return X.assign(cultivar=noisy.y), noisy.mask


@pytest.fixture(scope="module")
def found(wine, tmp_path_factory):
    frame, _ = wine
    path = tmp_path_factory.mktemp("audit") / "wine.csv"
    frame = frame.assign(bottle=np.arange(len(frame)), grape=frame["cultivar"].str.upper())
    frame.to_csv(path, index=False)
    return audit(path, label="cultivar")


def test_wrong_labels_are_found_in_spite_of_a_leak(wine, found):
    _, wrong = wine
    flagged = found.to_frame()
    assert wrong[flagged["row"]].mean() > 0.8
    assert len(flagged) >= 5
    assert flagged["where"].tolist() == [f"line {row + 2}" for row in flagged["row"]]
    uses = {role.name: role.use for role in found.roles}
    assert (uses.pop("bottle"), uses.pop("grape")) == ("ignored", "suspicious")
    assert set(uses.values()) == {"number"}


def test_the_summary_says_by_what_labels_were_judged(found):
    text = found.summary()
    assert text.startswith("178 labels of wine.csv, scored by:\n  numbers     alcohol, malic_acid, ")
    assert "  ignored     bottle (counted up)\n  SUSPICIOUS  grape encodes the label; left out" in text
    assert (f"Found:\n  {found.result.n_flagged:>2}  suspicious labels\n") in text
    assert "labels flagged" in text
    assert found.result.noise_summary() in text


def test_the_most_suspicious_rows_come_first(wine, found):
    _, wrong = wine
    assert found.result.noise_rate == pytest.approx(wrong.mean(), abs=0.05)
    flagged = found.to_frame()
    assert (flagged["p_wrong"].diff().dropna() <= 0).all()


def test_kept_leaks_hide_every_wrong_label(wine):
    frame, _ = wine
    frame = frame.assign(grape=frame["cultivar"].str.upper())
    assert audit(frame, label="cultivar", by=Columns(use=["grape"])).result.n_flagged < 5


def test_files_are_written_once_and_whole(found, tmp_path, monkeypatch):
    output = tmp_path / "new" / "s.csv"
    files = found.write(output)
    assert sorted(path.name for path in output.parent.iterdir()) == [
        "s.csv",
        "s.findings.csv",
        "s.png",
        "s.review.json",
    ]
    assert pd.read_csv(files.flagged)["row"].tolist() == found.to_frame()["row"].tolist()
    before = {path.name: path.read_bytes() for path in output.parent.iterdir()}
    with pytest.raises(InvalidInputError) as error:
        found.write(output)
    assert str(error.value) == (
        f"The output {output} already exists.\nHint: choose another name with -o, or replace the file with --overwrite."
    )

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("neighboragg.labels._outputs.save_review_set", full)
    for target in (output, tmp_path / "other.csv"):
        with pytest.raises(OSError, match="No space left"):
            found.write(target, overwrite=True)
    assert {path.name: path.read_bytes() for path in output.parent.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


@pytest.fixture(scope="module")
def numbered():
    """Labels 9, 10 and 11, which sort differently as text, with good probabilities."""
    rng = np.random.default_rng(0)
    y = rng.choice([9, 10, 11], 150)
    frame = pd.DataFrame(rng.normal(size=(150, 3)) + 2.0 * y[:, None], columns=list("abc")).assign(y=y)
    proba = np.eye(3)[y - 9] * 0.7 + 0.1
    return frame, proba


def agreement(found):
    """How often the classifier is said to prefer another class; its opinion is that of the labels."""
    return not any("classifier prefers" in reason for reasons in found.result.reasons for reason in reasons)


def test_probabilities_are_in_numeric_order_if_all_labels_are_numbers(numbered):
    frame, proba = numbered
    assert agreement(audit(frame, label="y", proba=proba, flag=20))


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("source", ["frame", "csv", "parquet", "npz"])
def test_named_columns_may_be_in_any_order_and_of_absent_classes(numbered, tmp_path, source):
    frame, proba = numbered
    shuffled = np.column_stack([proba[:, 1], np.zeros(len(proba)), proba[:, 2], proba[:, 0]])
    names = ["10", "12", "11", "9"]
    named = pd.DataFrame(shuffled, columns=names)
    given = named
    if source == "csv":
        named.to_csv(given := tmp_path / "p.csv", index=False)
    elif source == "parquet":
        named.to_parquet(given := tmp_path / "p.parquet")
    elif source == "npz":
        np.savez(given := tmp_path / "p.npz", proba=shuffled, classes=np.array([10, 12, 11, 9]))
    assert agreement(audit(frame, label="y", proba=given, flag=20))


def test_swapped_columns_are_noticed(numbered):
    frame, proba = numbered
    with pytest.warns(TrustWarning) as caught:
        audit(frame, label="y", proba=proba[:, [1, 2, 0]], flag=5)
    assert str(caught[0].message) == (
        "proba agrees with 0.0% of the labels, but would agree with 100.0% if its columns were in another order: the "
        "column of '10' is '11', '11' is '9', '9' is '10'.\n"
        "Hint: name the class of each column: a data frame, a CSV file with a header, or an .npz file with proba and "
        "classes."
    )


@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        ([0, 1], None, "proba has 2 columns, but there are 3 labels: 9, 10, 11.\nHint: name the class of each column: "
         "a data frame, a CSV file with a header, or an .npz file with proba and classes."),
        ([0, 1, 2], ["9", "10", "12"], "proba has no column for the label '11'; its columns are 9, 10, 12.\n"
         "Hint: name each class by its label as text, exactly as in the table."),
        ([0, 1, 2], ["9", "10", "10"], "proba has two columns for one class: 9, 10, 10."),
    ],
)  # fmt: skip
def test_probabilities_that_do_not_fit(numbered, columns, names, message):
    frame, proba = numbered
    given = proba[:, columns]
    with pytest.raises(InvalidInputError) as error:
        audit(frame, label="y", proba=given if names is None else pd.DataFrame(given, columns=names))
    assert str(error.value) == message


def test_tables_that_cannot_be_judged():
    numbers = pd.DataFrame({"a": np.random.default_rng(0).normal(size=200), "y": np.arange(200) / 7})
    with pytest.raises(InvalidInputError) as error:
        audit(numbers, label="y")
    assert str(error.value) == (
        "The label column 'y' contains numbers with 200 different values in 200 rows; they look like "
        "measurements, not classes.\n"
        "Hint: choose another column, or cut the numbers into a few classes first."
    )
    alone = pd.DataFrame({"id": np.arange(40), "y": ["u", "v"] * 20})
    with pytest.raises(InvalidInputError) as error:
        audit(alone, label="y")
    assert str(error.value) == (
        "There is no usable column other than the label:\n"
        "  id: counted up\n"
        "Hint: name columns to use anyway (--use), or pass embeddings (--embeddings)."
    )


def vectors_and_labels():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 60)
    vectors = rng.normal(size=(120, 4)) + 5 * (y == "b")[:, None]
    y[3] = "b"
    return pd.DataFrame({"name": [f"row {i}" for i in range(120)], "vector": list(vectors), "y": y})


def test_a_column_of_vectors_is_judged_by(tmp_path):
    frame = vectors_and_labels()
    frame.to_parquet(tmp_path / "t.parquet")
    inside = audit(tmp_path / "t.parquet", label="y", by=Embeddings("vector"), flag=1)
    beside = audit(frame.drop(columns="vector"), label="y", by=Embeddings(np.stack(frame["vector"])), flag=1)
    assert inside.to_frame()["row"].tolist() == beside.to_frame()["row"].tolist() == [3]
    assert np.array_equal(inside.result.scores, beside.result.scores)


def test_a_column_without_vectors_cannot_be_embeddings():
    with pytest.raises(InvalidInputError) as caught:
        audit(vectors_and_labels(), label="y", by=Embeddings("name"))
    assert str(caught.value).startswith("Column 'name' of ")
    assert "does not contain vectors of numbers.\nHint: pass a column" in str(caught.value)


def test_no_spreadsheet_runs_what_is_written(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["=1+1", "b"], 60)
    frame = pd.DataFrame({"@size": rng.normal(size=120) + 6 * (y == "b"), "word": "-a+b", "y": y})
    frame.loc[5, "y"] = "b"
    found = audit(frame, label="y", by=Columns(["@size"]), flag=1)
    found.write(tmp_path / "out.csv")
    read = pd.read_csv(tmp_path / "out.csv")
    assert read.loc[0, ["suggested", "word"]].tolist() == ["'=1+1", "'-a+b"]
    assert "'@size" in read.columns
    assert read.loc[0, "'@size"] == frame.loc[5, "@size"]


def test_rows_are_called_by_the_index_of_a_frame(wine):
    frame, wrong = wine
    chosen = frame[frame["alcohol"] > 12].sample(frac=1, random_state=0)
    found = audit(chosen, "cultivar", flag=6).to_frame()
    for row, where, given, alcohol in zip(
        found["row"], found["where"], found["given"], found["alcohol"], strict=True
    ):
        assert frame.loc[row, ["cultivar", "alcohol"]].tolist() == [given, alcohol]
        assert where == f"row {row}"
    assert wrong[found["row"]].mean() > 0.8


def test_verified_rows_are_never_flagged_and_allow_a_promise(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.choice(["u", "v"], 400)
    X = rng.normal(size=(400, 3)) + 4 * (y == "v")[:, None]
    noisy = add_label_noise(y, rate=0.1, random_state=0)
    checked = (np.arange(400) >= 250) & ~noisy.mask
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=noisy.y, checked=np.where(checked, "yes", ""))
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = audit(tmp_path / "t.csv", "y", flag=FDR(0.2), verified="checked")
    assert not checked[found.rows[found.result.mask]].any()
    assert noisy.mask[found.rows[found.result.mask]].mean() > 0.7
    for verified in (checked, np.flatnonzero(checked)):
        same = audit(frame, "y", by=Columns(ignore=["checked"]), flag=FDR(0.2), verified=verified)
        np.testing.assert_array_equal(same.result.mask, found.result.mask)
    frame["checked"] = "maybe"
    with pytest.raises(InvalidInputError, match="contains 'maybe', which is neither yes nor no"):
        audit(frame, "y", verified="checked")


class DataSet:
    """What this package uses of a Hugging Face data set, which may return tensors."""

    def __init__(self, frame, names=None, *, tensors=False):
        self.frame, self.tensors = frame, tensors
        self.column_names = list(frame)
        self.features = {name: SimpleNamespace(names=names if name == "y" else None) for name in frame}

    def __len__(self):
        return len(self.frame)

    def with_format(self, kind):
        found = DataSet(self.frame, tensors=kind is not None)
        found.features = self.features
        return found

    def to_pandas(self):
        if self.tensors:
            raise TypeError("tensors have no frame")
        return self.frame


@pytest.mark.parametrize("tensors", [False, True])
def test_a_data_set_is_a_source_and_its_classes_have_names(tensors):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    frame = pd.DataFrame({"a": rng.normal(size=80) + 6 * y, "b": rng.normal(size=80), "y": y})
    frame.loc[3, "y"] = 1 - y[3]
    frame.loc[7, "y"] = -1
    found = audit(DataSet(frame, ["cat", "dog"], tensors=tensors), "y", flag=1)
    names = np.array(["cat", "dog"])
    assert found.to_frame()[["row", "given", "suggested"]].values.tolist() == [
        [3, names[1 - y[3]], names[y[3]]]
    ]
    assert found.notes == ("1 of 80 rows are left out because their label is missing.",)
