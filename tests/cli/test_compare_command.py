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


def test_it_prints_a_table(csv):
    done = run(csv, "--label", "kind", "--estimators", "LR", "--splits", 1)
    assert done.exit_code == 0, done.output
    assert "Trust methods on fruit.csv\n" in done.output
    for method in ("max-softmax", "temperature scaling", "Trust Score", "paper's network", "neighboragg"):
        assert f"\n{method}" in done.output


def test_a_wrong_label_column_is_named_before_any_work(csv):
    done = run(csv, "--label", "taste")
    assert isinstance(done.exception, InvalidInputError)
    assert str(done.exception) == (
        f"There is no column 'taste' in {csv}.\nHint: the columns are 'size', 'kind'."
    )


def test_what_is_not_known_is_refused(csv):
    assert "'SVM'" in str(run(csv, "--label", "kind", "--estimators", "LR,SVM").exception)
    assert run(csv, "--label", "kind", "--splits", 0).exit_code == 2


def test_dates_are_read_as_the_option_says(tmp_path):
    rng = np.random.default_rng(0)
    code = rng.integers(0, 2, 200)
    days = [f"{day:02}/{month:02}/2024" for day, month in rng.integers(1, 13, (200, 2))]
    path = tmp_path / "fruit.csv"
    pd.DataFrame({"size": rng.normal(size=200), "day": days, "kind": np.where(code, "apple", "pear")}).to_csv(
        path, index=False
    )
    arguments = (path, "--label", "kind", "--estimators", "LR", "--splits", 1)
    assert "Warning: day: " in run(*arguments).output
    done = run(*arguments, "--dayfirst")
    assert done.exit_code == 0, done.output
    assert "day: " not in done.output
