"""Results on disk: resumed, repaired after a crash, never computed twice."""

import json
import math

import pytest

from benchmarks.runs import ResultStore
from neighboragg.exceptions import FileFormatError


@pytest.fixture
def rows(result):
    return [result("letter", "LR", seed, method, 0.8) for seed in (0, 1) for method in ("Pool", "TCP")]


def test_results_are_there_after_a_restart(tmp_path, rows):
    path = tmp_path / "new" / "folder" / "results.jsonl"
    store = ResultStore(path)
    assert store.rows == []
    assert not path.exists()
    store.add(rows[:1])
    store.add(iter(rows[1:]))
    assert ResultStore(path).rows == store.rows == rows
    assert [json.loads(line) for line in path.read_text().splitlines()] == rows
    assert path.read_text().endswith("\n")


def test_missing_methods_of_a_cell(tmp_path, rows):
    store = ResultStore(tmp_path / "results.jsonl")
    store.add(rows)
    cell = {"set": "letter", "base": "LR", "seed": 0}
    assert {**cell, "method": "Pool"} in store
    assert {**cell, "method": "Network"} not in store
    assert store.missing(cell, ["Network", "Pool", "TCP", "kNN vote"]) == ["Network", "kNN vote"]
    for change in ({"seed": 2}, {"set": "adult"}, {"base": "RF"}, {"n_neighbors": 3}, {"label": "y"}):
        assert store.missing({**cell, **change}, ["Pool"]) == ["Pool"]


def test_a_last_line_cut_short_is_dropped(tmp_path, rows):
    path = tmp_path / "results.jsonl"
    ResultStore(path).add(rows)
    whole = path.read_text()
    for length in range(len(whole.rstrip()) - 40, len(whole.rstrip())):
        path.write_text(whole[:length])
        assert ResultStore(path).rows == rows[:3]
        assert len(path.read_text().splitlines()) == 3
    store = ResultStore(path)
    store.add(rows[3:])
    assert ResultStore(path).rows == rows


def test_a_last_line_that_lacks_only_its_end_is_kept(tmp_path, rows):
    path = tmp_path / "results.jsonl"
    ResultStore(path).add(rows[:2])
    path.write_text(path.read_text().rstrip("\n"))
    store = ResultStore(path)
    assert store.rows == rows[:2]
    store.add(rows[2:])
    assert ResultStore(path).rows == rows


def test_an_empty_file_is_an_empty_store(tmp_path, rows):
    path = tmp_path / "results.jsonl"
    path.touch()
    store = ResultStore(path)
    assert store.rows == []
    store.add(rows)
    assert ResultStore(path).rows == rows


def test_a_broken_line_in_the_middle_is_an_error(tmp_path, rows):
    path = tmp_path / "results.jsonl"
    ResultStore(path).add(rows)
    lines = path.read_text().splitlines()
    lines[1] = "not json " * 20
    path.write_text("\n".join(lines) + "\n")
    before = path.read_bytes()
    with pytest.raises(FileFormatError) as error:
        ResultStore(path)
    assert str(error.value) == (
        f"Line 2 of {path} is not JSON: {('not json ' * 20)[:60]!r}.\nHint: remove that line, or the file."
    )
    assert path.read_bytes() == before


def test_undefined_metrics_survive(tmp_path, result):
    path = tmp_path / "results.jsonl"
    ResultStore(path).add([result("letter", "LR", 0, "Pool", math.nan)])
    assert math.isnan(ResultStore(path).rows[0]["auroc"])


def test_a_store_without_a_file_is_in_memory(tmp_path, rows):
    store = ResultStore()
    store.add(rows)
    assert store.rows == rows
    assert store.missing({"set": "letter", "base": "LR", "seed": 0}, ["Pool", "Network"]) == ["Network"]


def test_a_machine_is_written_once_and_known_of_every_row(tmp_path):
    path = tmp_path / "results.jsonl"
    machines = [{"cores": 2}, {"cores": 2}, {"cores": 8}, {"cores": 8}, {"cores": 2}]
    rows = [{"set": "a", "seed": seed, "machine": machine} for seed, machine in enumerate(machines)]
    ResultStore(path).add(rows[:2])
    store = ResultStore(path)
    store.add(rows[2:3])
    store.add(rows[3:])
    store.add([])
    assert path.read_text().count("machine") == 3
    assert store.rows == ResultStore(path).rows == rows
