"""`neighboragg compare`, as a user runs it."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from neighboragg._cli.app import app
from neighboragg.exceptions import InvalidInputError


@pytest.fixture
def csv(tmp_path):
    rng = np.random.default_rng(0)
    code = rng.integers(0, 2, 200)
    path = tmp_path / "fruit.csv"
    pd.DataFrame({"size": rng.normal(size=200) + code, "kind": np.where(code, "apple", "pear")}).to_csv(
        path, index=False
    )
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)], env={"COLUMNS": "200"})


def test_it_prints_and_writes_all_tables(csv, tmp_path):
    done = run(csv, "--label", "kind", "--bases", "LR", "--splits", 1, "--output", tmp_path / "found")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "found.md").read_text().startswith("# Trust methods on fruit.csv\n")
    assert "<td>TrustScore</td>" in (tmp_path / "found.html").read_text()
    for method in ("Confidence", "TempScaling", "TrustScore", "Network", "Pool"):
        assert method in done.output


def test_a_wrong_label_column_is_named_before_any_work(csv, tmp_path):
    done = run(csv, "--label", "taste", "--output", tmp_path / "found")
    assert isinstance(done.exception, InvalidInputError)
    assert str(done.exception) == (
        f"There is no column 'taste' in {csv}.\nHint: the columns are 'size', 'kind'."
    )
    assert not (tmp_path / "found.md").exists()


def test_what_is_not_known_is_refused(csv):
    assert "'SVM'" in str(run(csv, "--label", "kind", "--bases", "LR,SVM").exception)
    assert run(csv, "--label", "kind", "--splits", 0).exit_code == 2
