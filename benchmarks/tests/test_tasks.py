"""Cells and tasks: what is computed, how often, and that processes do not change it."""

import math
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from benchmarks.datasets import paper_split
from benchmarks.runs import ENTRANTS, ResultStore, Task, _tasks, run_tasks, score_entrants
from neighboragg._pool.opinions import RememberedOpinions
from neighboragg.trust._compare import make_cell

METHODS = ("Confidence", "TrustScore", "Pool")


def tasks_on(csv, seeds, methods):
    return [Task(str(csv), "LR", seed, methods, "kind") for seed in range(seeds)]


class Progress(list):
    """Remembers what was reported."""

    def __call__(self, done, total):
        self.append((done, total))


def comparable(rows):
    """Rows without what differs between runs, in one order."""
    rows = [{key: value for key, value in row.items() if key != "cpu_seconds"} for row in rows]
    return sorted(rows, key=lambda row: (row["seed"], row["method"]))


@pytest.fixture
def computed(monkeypatch):
    """Tasks that are really computed."""
    tasks = []

    def compute(task, original=_tasks.compute):
        tasks.append(task)
        return original(task)

    monkeypatch.setattr(_tasks, "compute", compute)
    return tasks


def test_only_what_is_missing_is_computed(tmp_path, csv, computed):
    tasks = tasks_on(csv, 2, ("Confidence", "kNN vote"))
    store = ResultStore(tmp_path / "results.jsonl")
    progress = Progress()
    run_tasks(tasks[:1], store, n_jobs=1, progress=progress)
    assert computed == tasks[:1]
    assert progress == [(0, 1), (1, 1)]
    assert [(row["set"], row["label"], row["base"], row["seed"]) for row in store.rows] == [
        ("fruit.csv", "kind", "LR", 0)
    ] * 2
    assert {(row["n_train"], row["n_val"], row["n_test"]) for row in store.rows} == {(120, 30, 150)}
    assert all(0.5 < row["auroc"] < 1 and row["cpu_seconds"] >= 0 and row["machine"] for row in store.rows)

    # More methods and seeds: the first cell lacks one method, the second cell is new.
    tasks = tasks_on(csv, 2, ("Confidence", "TrustScore", "kNN vote"))
    store = ResultStore(store.path)
    run_tasks(tasks, store, n_jobs=1, progress=progress)
    assert computed[1:] == [Task(str(csv), "LR", 0, ("TrustScore",), "kind"), tasks[1]]
    assert progress[2:] == [(0, 2), (1, 2), (2, 2)]

    before = store.path.read_bytes()
    run_tasks(tasks, store, n_jobs=1, progress=progress)
    assert len(computed) == 3
    assert progress[5:] == [(2, 2)]
    assert store.path.read_bytes() == before


@pytest.mark.full
def test_processes_change_no_result(tmp_path, csv, monkeypatch):
    """Two processes and one compute the same, and the order of tasks does not matter either."""
    tasks = tasks_on(csv, 2, METHODS)
    alone, together = ResultStore(tmp_path / "alone.jsonl"), ResultStore(tmp_path / "together.jsonl")
    run_tasks(tasks, alone, n_jobs=1)

    pools = []

    class Pool(_tasks.ProcessPoolExecutor):
        def __init__(self, n_workers, **kwargs):
            pools.append(n_workers)
            super().__init__(n_workers, **kwargs)

    monkeypatch.setattr(_tasks, "_available_memory", lambda: math.inf)
    monkeypatch.setattr(_tasks, "ProcessPoolExecutor", Pool)
    progress = Progress()
    run_tasks(tasks[::-1], together, n_jobs=2, progress=progress)
    assert pools == [2]
    assert progress == [(0, 2), (1, 2), (2, 2)]
    assert len(alone.rows) == 2 * len(METHODS)
    for one, other in zip(comparable(alone.rows), comparable(together.rows), strict=True):
        numbers = {key: value for key, value in one.items() if isinstance(value, float)}
        assert {key: other[key] for key in numbers} == pytest.approx(numbers, abs=1e-9)
        assert {**other, **numbers} == one
    assert comparable(ResultStore(together.path).rows) == comparable(together.rows)


@pytest.mark.full
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_classifiers_share_the_second_opinions_of_a_split(tmp_path, csv, monkeypatch, n_jobs):
    monkeypatch.setattr(_tasks, "_available_memory", lambda: math.inf)
    tasks = [Task(str(csv), base, seed, ("Pool",), "kind") for base in ("LR", "RF") for seed in (0, 1)]
    store = ResultStore(tmp_path / "together.jsonl")
    progress = Progress()
    run_tasks(tasks, store, n_jobs=n_jobs, progress=progress)
    assert progress == [(done, 4) for done in range(5)]
    expected = [row for task in tasks for row in task.rows()]
    for row in expected:
        cell = {key: row[key] for key in ("base", "seed")}
        (found,) = (one for one in store.rows if one.items() >= cell.items())
        assert {**found, "cpu_seconds": row["cpu_seconds"]} == row


@dataclass(frozen=True)
class Failing(Task):
    """A task that cannot be done."""

    def rows(self):
        raise ZeroDivisionError("no such luck")


@pytest.mark.full
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_was_finished_before_an_error_is_kept(tmp_path, csv, monkeypatch, n_jobs):
    monkeypatch.setattr(_tasks, "_available_memory", lambda: math.inf)
    good = [Task(str(csv), base, 0, ("Confidence",), "kind") for base in ("LR", "RF")]
    bad = Failing(str(csv), "HGB", 0, ("Confidence",), "kind")
    others = [bad] if n_jobs == 1 else [bad, Failing(str(csv), "HGB", 1, ("Confidence",), "kind")]
    store = ResultStore(tmp_path / "results.jsonl")
    with pytest.raises(ZeroDivisionError, match="no such luck"):
        run_tasks([*good, *others], store, n_jobs=n_jobs)
    assert {row["base"] for row in store.rows} <= {"LR", "RF"}
    if n_jobs == 1:
        assert len(store.rows) == 2


def test_an_error_of_a_group_comes_after_what_was_finished(csv):
    good = Task(str(csv), "LR", 0, ("Confidence",), "kind")
    finished, error = _tasks.finished_together(
        [good, Failing(str(csv), "RF", 0, ("Confidence",), "kind"), good]
    )
    assert [row["base"] for rows in finished for row in rows] == ["LR"]
    assert isinstance(error, ZeroDivisionError)
    assert "in rows" in error.__notes__[0]


def test_one_split_is_spread_over_workers(csv):
    tasks = [Task(str(csv), base, 0, METHODS, "kind") for base in ("LR", "RF", "HGB")]
    assert _tasks._groups(tasks, 1) == [tasks]
    assert _tasks._groups(tasks, 2) == [[task] for task in tasks]
    more = [*tasks, *(Task(str(csv), "LR", seed, METHODS, "kind") for seed in (1, 2))]
    assert _tasks._groups(more, 3) == [tasks, [more[3]], [more[4]]]


def test_what_was_not_fitted_again_counts_in_the_seconds(csv):
    cell = make_cell(*_tasks._cached_matrix(str(csv), "kind"), "LR", 0)
    with RememberedOpinions() as remembered:
        list(score_entrants(cell, {"Pool": ENTRANTS["Pool"]}))
        remembered._entries = {
            key: entry._replace(seconds=1000.0) for key, entry in remembered._entries.items()
        }
        (again,) = score_entrants(cell, {"Pool": ENTRANTS["Pool"]})
    assert 1000 <= again["cpu_seconds"] < 2000


@pytest.mark.parametrize(
    ("n_jobs", "memory", "n_tasks", "expected"),
    [
        (4, 2.5 * _tasks.MEMORY_PER_WORKER, 9, 2),
        (4, 100.0, 9, 1),
        (4, math.inf, 3, 3),
        (4, math.inf, 9, 4),
        (None, math.inf, 99, 6),
        (-1, math.inf, 99, 6),
        (0, math.inf, 9, 1),
        (4, math.inf, 0, 0),
    ],
)
def test_no_more_processes_than_cores_memory_and_tasks(monkeypatch, n_jobs, memory, n_tasks, expected):
    monkeypatch.setattr(_tasks, "_available_memory", lambda: memory)
    monkeypatch.setattr(_tasks.os, "cpu_count", lambda: 6)
    assert _tasks._workers(n_jobs, n_tasks) == expected


def test_memory_is_unlimited_where_it_cannot_be_told(monkeypatch, tmp_path):
    assert _tasks._available_memory() > 2**20
    monkeypatch.setattr(_tasks, "Path", lambda path: tmp_path / "absent")
    assert _tasks._available_memory() == math.inf


def test_a_method_runs_with_the_changes_it_knows(frame):
    table = frame(200)
    X = table[["weight", "ripe"]].to_numpy(dtype=float)
    cell = make_cell(X, table["kind"].to_numpy(dtype=str), "LR", 0)
    rows = {
        k: {
            row["method"]: row["auroc"]
            for row in score_entrants(
                cell, {name: ENTRANTS[name] for name in ("Confidence", "kNN vote")}, n_neighbors=k
            )
        }
        for k in (1, 30)
    }
    assert rows[1]["Confidence"] == rows[30]["Confidence"]
    assert rows[1]["kNN vote"] != rows[30]["kNN vote"]


def test_cell_is_the_paper_split_with_training_statistics(frame):
    table = frame(200)
    X = table[["weight", "ripe"]].to_numpy(dtype=float)
    cell = make_cell(X, table["kind"].to_numpy(dtype=str), lambda seed: DummyClassifier(), 3)
    for part, expected in zip((cell.train, cell.val, cell.test), paper_split(200, seed=3), strict=True):
        np.testing.assert_array_equal(part, expected)
    scaled = cell.vectors["scaled"]
    np.testing.assert_allclose(scaled[cell.train].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled[cell.train].std(axis=0), 1)
    assert cell.codes.tolist() == (table["kind"] == "pear").astype(int).tolist()
    most_frequent = np.bincount(cell.codes[cell.train]).argmax()
    np.testing.assert_array_equal(cell.correct, cell.codes[cell.test] == most_frequent)


def test_rows_of_a_class_that_is_not_in_training_are_left_out():
    rng = np.random.default_rng(0)
    train, val, test = paper_split(100, seed=0)
    labels = rng.choice(["a", "c"], 100)
    labels[test[:2]], labels[val[0]], labels[test[2]] = "b", "b", "z"
    cell = make_cell(rng.normal(size=(100, 2)), labels, "LR", 0)
    np.testing.assert_array_equal(cell.train, train)
    np.testing.assert_array_equal(cell.val, val[1:])
    np.testing.assert_array_equal(cell.test, test[3:])
    assert cell.proba.shape == (100, 2)
    assert (np.array(["a", "c"])[cell.codes[cell.test]] == labels[cell.test]).all()


def test_a_cell_of_a_file_is_known_by_its_contents(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n")
    assert Task(str(tmp_path / "a.csv"), "LR", 1, METHODS, "y").cell() == {
        "set": "a.csv",
        "label": "y",
        "digest": sha256(b"x,y\n").hexdigest()[:16],
        "base": "LR",
        "seed": 1,
    }


def test_every_method_is_made_afresh():
    for entrant in ENTRANTS.values():
        assert entrant.make() is not entrant.make()
        assert entrant.vectors in ("scaled", "quantiles")
