"""The command line, as a user runs it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import neighboragg
from neighboragg._cli import main
from neighboragg._cli.app import app
from neighboragg._cli.demo import Scored, _verdict
from neighboragg.exceptions import NeighborAggError


def test_demo_shows_where_neighbors_help_and_where_not(tmp_path):
    plot = tmp_path / "digits.png"
    result = CliRunner().invoke(app, ["demo", "--output", str(plot)], env={"COLUMNS": "140"})
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    for words in (
        "digits: logistic regression is wrong on 42 of 899 new rows",
        "Neighbors help here (+",
        "breast cancer: logistic regression is wrong on 5 of 285 new rows",
        "Neighbors do not help here, and the method noticed on its validation rows",
        "the 6 least trusted predictions",
        "an error",
        "digits.png",
    ):
        assert words in text
    lines = result.output.splitlines()
    errors = {
        row: [[int(cell) for cell in line.split("│")[2:-1]] for line in lines if f"│ {row} " in line]
        for row in ("chosen by confidence", "chosen by trust")
    }
    on_digits, on_cancer = zip(*errors.values(), strict=True)
    assert on_digits[0][0] == on_digits[1][0] == 42
    assert on_digits[1][2] <= 10 < 20 <= on_digits[0][2]
    assert on_cancer[0] == on_cancer[1]
    assert lines[-1].split()[:3] == ["neighboragg", "audit", "table.csv"]
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert plot.stat().st_size < 300_000
    committed = Path(__file__).parents[2] / "docs" / "images" / "demo.png"
    assert f"and {on_digits[1][2]} errors are left in the rest instead of {on_digits[0][2]}" in caption(plot)
    assert caption(committed) == caption(plot)


def caption(plot):
    return Image.open(plot).text["Description"]


def test_demo_says_so_where_neighbors_make_no_clear_difference():
    rng = np.random.default_rng(0)
    correct = rng.random(300) < 0.8
    scored = Scored("made data", correct, correct + rng.normal(size=300), correct + rng.normal(size=300))
    assert _verdict(scored, 0).startswith("Neighbors make no clear difference here (")


def test_errors_left_counts_what_remains():
    scored = Scored(
        "made data", np.array([True, False, True, False]), np.arange(4.0), np.array([3.0, 1, 2, 0])
    )
    assert scored.errors_left(scored.trust, np.array([0.0, 0.25, 0.5])).tolist() == [2, 1, 0]
    assert scored.errors_left(scored.confidence, 0.5) == 1


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.output.strip() == neighboragg.__version__


@pytest.mark.full
def test_installed_command():
    done = subprocess.run(
        [sys.executable, "-m", "neighboragg", "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == (
        "The neighboragg command needs the package 'typer', which is not installed.\n"
        'Hint: pip install "neighboragg[cli]"'
    )


def test_errors_are_told_without_a_traceback(monkeypatch):
    def fail():
        raise NeighborAggError("no such thing")

    monkeypatch.setattr("neighboragg._cli.app.app", fail)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == "Error: no such thing"
