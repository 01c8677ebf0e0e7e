"""The command line, as a user runs it."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import neighboragg
from neighboragg.cli import main
from neighboragg.cli._app import app
from neighboragg.exceptions import NeighborAggError


def test_demo_compares_explains_and_plots(tmp_path):
    plot = tmp_path / "curves.png"
    result = CliRunner().invoke(app, ["demo", "--output", str(plot)], env={"COLUMNS": "140"})
    assert result.exit_code == 0, result.output
    for words in ("max-softmax", "Trust Score", "NeighborAgg (network)", "NeighborAgg (pool)", "AUROC"):
        assert words in result.output
    assert result.output.count("least trusted predictions") == 2
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "curves.png" in result.output


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.output.strip() == neighboragg.__version__


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

    monkeypatch.setattr("neighboragg.cli._app.app", fail)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == "Error: no such thing"
