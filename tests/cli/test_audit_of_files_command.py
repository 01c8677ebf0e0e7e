"""`neighboragg audit` of Parquet files that are read part by part."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from benchmarks.datasets import add_label_noise
from neighboragg import find_mislabeled
from neighboragg._cli.app import app
from neighboragg.labels import _files as distributed


@pytest.fixture
def files(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.columns = ["sepal length", "sepal width", "petal length", "petal width"]
    noisy = add_label_noise(np.array(["setosa", "versicolor", "virginica"])[y], rate=0.05, random_state=0)
    frame = X.assign(species=noisy.y, number=[f"p{i}" for i in range(150)])
    (tmp_path / "iris").mkdir()
    frame[:60].to_parquet(tmp_path / "iris" / "0.parquet")
    frame[60:].to_parquet(tmp_path / "iris" / "1.parquet")
    return tmp_path, frame


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.full
def test_a_folder_and_a_pattern_are_judged_like_a_table(files):
    folder, frame = files
    expected = find_mislabeled(frame.drop(columns=["species", "number"]), frame["species"])
    flagged = expected.ranking[expected.mask[expected.ranking]]
    for i, source in enumerate((folder / "iris", folder / "iris" / "*.parquet")):
        output = folder / f"{i}.csv"
        done = run("audit", source, "--label", "species", "-o", output, "--part-rows", 40)
        assert done.exit_code == 0, done.output
        assert f"{len(flagged)} labels flagged" in done.output
        listed = pd.read_csv(output)
        assert listed["row"].tolist() == flagged.tolist()
        assert listed["suggested"].tolist() == expected.suggested[flagged].tolist()
        assert listed["number"].tolist() == frame["number"].iloc[flagged].tolist()
        judged = pd.concat(
            [pd.read_parquet(file) for file in sorted((folder / f"{i}.judged").glob("*.parquet"))]
        )
        np.testing.assert_array_equal(judged["score"], expected.scores)


@pytest.mark.full
def test_a_cluster_gives_the_same(files):
    folder, _ = files
    for name, options in {
        "alone": ["--sample-rows", 90],
        "cluster": ["--sample-rows", 90, "--cluster", "local"],
    }.items():
        done = run("audit", folder / "iris", "--label", "species", "-o", folder / f"{name}.csv", *options)
        assert done.exit_code == 0, done.output
    assert (folder / "alone.csv").read_bytes() == (folder / "cluster.csv").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label", "species", "--flag", "5"], "--flag needs all rows in memory"),
        (["--label", "species", "--n-random", "0"], "--n-random does nothing for Parquet files"),
        (["--label", "species", "--sep", ";"], "--sep does nothing for Parquet files"),
        (["--label", "species", "--encoding", "cp1252"], "--encoding does nothing for Parquet files"),
        (["--label", "species", "--skip-unreadable"], "--skip-unreadable does nothing for Parquet files"),
        (["--label", "species", "--cache", "vectors"], "--cache does nothing for Parquet files"),
        (["--label", "species", "--no-cache"], "--no-cache does nothing for Parquet files"),
        (
            ["--label", "species", "--flag", "0"],
            "--flag must be 'estimated', a number of rows such as 100, or a share",
        ),
        (["--label", "kind"], "There is no column 'kind' in "),
        ([], "A table needs the name of its label column."),
        (["--label", "species", "-o", "out.txt"], "must end in .csv"),
    ],
)
def test_refusals(files, options, message, monkeypatch):
    folder, _ = files
    monkeypatch.chdir(folder)
    done = run("audit", folder / "iris", *options)
    assert done.exit_code != 0
    assert message in str(done.exception)
    assert sorted(path.name for path in folder.iterdir()) == ["iris"]


def test_warnings_are_said(files, monkeypatch):
    quick = partial(distributed.find_mislabeled, effort="fast")
    monkeypatch.setattr("neighboragg.labels._large.find_mislabeled", quick)
    folder, frame = files
    shuffled = np.random.default_rng(0).permutation(frame["species"])
    frame.assign(species=shuffled).to_parquet(folder / "shuffled.parquet")
    done = run(
        "audit",
        folder / "shuffled.parquet",
        "--label",
        "species",
        "--sample-rows",
        150,
        "-o",
        folder / "o.csv",
    )
    assert done.exit_code == 0, done.output
    assert (
        done.output.count("Warning: What was passed to MislabelDetector predicts the labels no better") == 1
    )
    assert "0 labels flagged" in done.output


def test_an_address_is_audited_like_a_folder(files, monkeypatch):
    quick = partial(distributed.find_mislabeled, effort="fast")
    monkeypatch.setattr("neighboragg.labels._large.find_mislabeled", quick)
    folder, frame = files
    for name, source in {"folder": folder / "iris", "address": (folder / "iris").as_uri()}.items():
        done = run("audit", source, "--label", "species", "-o", folder / f"{name}.csv")
        assert done.exit_code == 0, done.output
    assert (folder / "address.csv").read_bytes() == (folder / "folder.csv").read_bytes()
    listed = pd.read_csv(folder / "address.csv")
    assert len(listed)
    assert listed["number"].tolist() == frame["number"].iloc[listed["row"]].tolist()


@pytest.mark.parametrize(
    "source", ["iris", "iris/*", "iris/?.parquet", "iris/[01].parquet", "s3://bucket/iris"]
)
def test_sets_of_files_are_read_part_by_part(files, source, monkeypatch):
    monkeypatch.chdir(files[0])
    done = run("audit", source, "--label", "species", "--flag", 5)
    assert "--flag needs all rows in memory" in str(done.exception)


def test_hidden_files_make_no_set_of_a_folder(files, monkeypatch):
    folder, _ = files
    monkeypatch.chdir(folder)
    (folder / "iris").rename(folder / "_iris")
    (folder / "pictures").mkdir()
    (folder / "_iris").rename(folder / "pictures" / "_iris")
    done = run("audit", "pictures", "--flag", 5)
    assert done.exit_code != 0
    assert "Parquet" not in str(done.exception)
