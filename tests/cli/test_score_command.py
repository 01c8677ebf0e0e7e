"""`neighboragg score`, from its arguments to its last line."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from neighboragg import TrustedClassifier, score
from neighboragg._cli import main
from neighboragg._cli.app import app


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    model = TrustedClassifier(LogisticRegression(), random_state=0).fit(X[:100], (X["a"] > 0)[:100])
    model.save(tmp_path / "model.nagg")
    (tmp_path / "new").mkdir()
    for i in range(2):
        part = X[100 + 50 * i : 150 + 50 * i].assign(id=range(50 * i, 50 * i + 50))
        part.to_parquet(tmp_path / "new" / f"{i}.parquet")
    return tmp_path


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr("neighboragg.trust._score.PART_ROWS", 30)


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def stopped(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["neighboragg", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


def test_folders_patterns_and_files_give_the_same(files, small):
    model, new = files / "model.nagg", files / "new"
    for i, source in enumerate(([new], [new / "*.parquet"], [new / "0.parquet", new / "1.parquet"])):
        output = files / f"{i}.parquet"
        done = run("score", model, *source, "-o", output, "--include", "id")
        assert done.exit_code == 0, done.output
        assert done.output.strip() == f"100 rows in 4 parts: {output}"
    written = score(model, new, files / "python", include=["id"])
    expected = pd.concat([pd.read_parquet(file) for file in written.files], ignore_index=True)
    for i in range(3):
        pd.testing.assert_frame_equal(pd.read_parquet(files / f"{i}.parquet"), expected, rtol=0, atol=1e-9)


def test_failures_are_an_error(files, monkeypatch):
    rows = pd.read_parquet(files / "new" / "1.parquet")
    rows.loc[rows.index[7], "b"] = np.nan
    rows.to_parquet(files / "new" / "1.parquet")
    said = stopped(monkeypatch, "score", files / "model.nagg", files / "new", "-o", files / "out")
    assert said.startswith(f"Error: 1 of 2 parts failed; the other 1 are in {files / 'out'}.\n- ")


def test_no_dask_no_cluster(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    arguments = ["score", files / "model.nagg", files / "new", "-o", files / "out", "--cluster", "local"]
    assert stopped(monkeypatch, *arguments) == (
        "Error: Work on a cluster needs the package 'distributed', which is not installed.\n"
        'Hint: pip install "neighboragg[dask]"'
    )
    assert not (files / "out").exists()
    assert run(*arguments[:-2]).exit_code == 0


def test_a_cluster_that_is_none(files, monkeypatch):
    arguments = ["score", files / "model.nagg", files / "new", "-o", files / "out", "--cluster"]
    assert stopped(monkeypatch, *arguments, "remote") == (
        "Error: The cluster must be 'local' or the address of a Dask scheduler, such as tcp://host:8786. Got 'remote'."
    )
    monkeypatch.setattr("neighboragg._run.executor.CONNECT_SECONDS", 0.1)
    said = stopped(monkeypatch, *arguments, "tcp://127.0.0.1:1")
    assert said.startswith("Error: No Dask scheduler answers at tcp://127.0.0.1:1 (")


@pytest.mark.full
def test_a_local_cluster(files):
    model, new = files / "model.nagg", files / "new"
    done = run("score", model, new, "-o", files / "cluster.parquet", "--cluster", "local")
    assert done.exit_code == 0, done.output
    assert run("score", model, new, "-o", files / "alone.parquet").exit_code == 0
    found = [pd.read_parquet(files / f"{name}.parquet") for name in ("cluster", "alone")]
    pd.testing.assert_frame_equal(*found, rtol=0, atol=1e-9)
