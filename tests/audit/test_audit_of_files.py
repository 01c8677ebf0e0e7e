"""An audit of Parquet files: the rows it lists are those of the files it began with."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from neighboragg.exceptions import InvalidInputError
from neighboragg.labels._files import find_mislabeled
from neighboragg.labels._large import audit_files


@pytest.fixture
def folder(tmp_path):
    frame = load_iris(as_frame=True).frame.rename(columns={"target": "species"})
    frame["species"] = np.array(["setosa", "versicolor", "virginica"])[frame["species"]]
    frame.loc[[7, 120], "species"] = ["virginica", "setosa"]
    frame["number"] = [f"p{i}" for i in range(150)]
    source = tmp_path / "iris"
    source.mkdir()
    frame[:60].to_parquet(source / "q0.parquet")
    frame[60:].to_parquet(source / "q1.parquet")
    return source


def listed(path):
    return pd.read_csv(path).sort_values("row")[["row", "number"]].to_numpy().tolist()


def test_a_file_that_comes_in_the_meantime_shifts_no_rows(folder, tmp_path, monkeypatch):
    quick = partial(find_mislabeled, effort="fast")
    monkeypatch.setattr("neighboragg.labels._large.find_mislabeled", quick)

    def progress(stage, done, total):
        if stage == "Judging labels" and not (folder / "a.parquet").exists():
            pd.read_parquet(folder / "q1.parquet").to_parquet(folder / "a.parquet")

    audit_files(folder, tmp_path / "out.csv", label="species", progress=progress)
    found = listed(tmp_path / "out.csv")
    assert (folder / "a.parquet").exists()
    assert {7, 120} <= {row for row, _ in found}
    assert all(number == f"p{row}" for row, number in found)


def test_a_missing_label_is_named(folder, tmp_path):
    frame = pd.read_parquet(folder / "q1.parquet")
    frame.loc[70, "species"] = None
    frame.to_parquet(folder / "q1.parquet")
    with pytest.raises(InvalidInputError, match=r"^There is no label in row 70, counted .*\.\nHint: drop"):
        audit_files(folder, tmp_path / "out.csv", label="species")
    assert [path.name for path in tmp_path.iterdir()] == ["iris"]


@pytest.mark.parametrize("pattern", ["", "**/*.parquet", "*/part*.parquet"])
def test_judgments_are_not_written_into_the_input(folder, pattern, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(InvalidInputError, match=r"suspicious\.judged lies in the input .*\n.*with -o"):
        audit_files(pattern or ".", "suspicious.csv", label="species")
    assert sorted(path.name for path in folder.iterdir()) == ["q0.parquet", "q1.parquet"]
