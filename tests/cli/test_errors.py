"""What goes wrong is one sentence, an exit code, and nothing half-written."""

import sys

import pytest
from typer.testing import CliRunner

from neighboragg._cli import main
from neighboragg._cli.app import app

TABLE = b"a,y\n" + b"".join(b"%d,%s\n" % (i * i, [b"u", b"v"][i % 2]) for i in range(30))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(TABLE)
    return path


def stopped(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["neighboragg", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


def test_a_file_that_is_not_there(monkeypatch, tmp_path):
    said = stopped(monkeypatch, "audit", tmp_path / "no.csv", "--label", "y", "-o", tmp_path / "out.csv")
    assert said == f"Error: There is no file {tmp_path}/no.csv."
    said = stopped(monkeypatch, "correct", tmp_path / "no.csv")
    assert said == (
        f"Error: There is no review set {tmp_path}/no.review.json.\n"
        f"Hint: neighboragg audit table.csv --label y -o {tmp_path}/no.csv"
    )


def test_a_full_disk(monkeypatch, table, tmp_path):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device", str(tmp_path / "out.csv"))

    monkeypatch.setattr("neighboragg.labels._audit.find_mislabeled", full)
    said = stopped(monkeypatch, "audit", table, "--label", "y", "-o", tmp_path / "out.csv")
    assert said == f"Error: No space left on device ({tmp_path}/out.csv)."
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_an_existing_output_stops_before_the_work(monkeypatch, table, tmp_path):
    (tmp_path / "out.png").touch()
    monkeypatch.setattr("neighboragg.labels._audit.find_mislabeled", None)
    said = stopped(monkeypatch, "audit", table, "--label", "y", "-o", tmp_path / "out.csv")
    assert said == (
        f"Error: The output {tmp_path}/out.png already exists.\n"
        "Hint: choose another name with -o, or replace the file with --overwrite."
    )


def test_an_interrupt_ends_with_one_line(monkeypatch, table, tmp_path):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("neighboragg.labels._audit.find_mislabeled", interrupted)
    result = CliRunner().invoke(app, ["audit", str(table), "--label", "y", "-o", str(tmp_path / "out.csv")])
    assert result.exit_code == 130
    assert result.stderr == "Interrupted.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("share", ["0", "1.0", "-0.1", "nan", "some", "fdr:0", "fdr:x", "fpr:0.1"])
def test_a_share_that_is_none_stops_before_the_work(monkeypatch, table, share):
    monkeypatch.setattr("neighboragg.labels._audit.find_mislabeled", None)
    said = stopped(monkeypatch, "audit", table, "--label", "y", "--flag", share)
    assert said.startswith("Error: --flag must be 'estimated', a number of rows such as 100, a share")
