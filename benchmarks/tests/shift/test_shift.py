"""The comparison on shifted rows: what a shift is, what is measured, and the tables."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from benchmarks import shift as shift_room
from benchmarks.__main__ import bench
from benchmarks.runs import ResultStore
from benchmarks.shift import (
    METHODS,
    SHIFTS,
    ShiftResults,
    ShiftTask,
    shift_plan,
    shifted_cell,
)
from benchmarks.shift._shifted_cell import _cached, _rotated

ALARMS = ("Familiarity", "kNN distance", "Mahalanobis distance", "max-softmax")


@pytest.fixture
def digits_as_letter(tmp_path, monkeypatch):
    """Digits with 16 columns in the place of the letters."""
    X, y = load_digits(return_X_y=True)
    names = "x-box y-box width high onpix x-bar y-bar x2bar y2bar xybar x2ybr xy2br x-ege xegvy y-ege yegvx"
    rows = X.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(len(y), 16)
    frame = pd.DataFrame(rows, columns=names.split()).assign(label=[chr(65 + c) for c in y])
    frame.to_csv(tmp_path / "letter.csv.gz", index=False)
    monkeypatch.setenv("NEIGHBORAGG_DATA", str(tmp_path))
    _cached.cache_clear()
    yield
    _cached.cache_clear()


@pytest.fixture
def made_adult(tmp_path, monkeypatch):
    """People under and over forty, from two countries, whose income is a matter of age."""
    rng = np.random.default_rng(0)
    n = 800
    numbers = ("fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
    words = ("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex")
    age = rng.integers(18, 70, n)
    frame = pd.DataFrame(
        {
            "age": age,
            **{name: rng.integers(0, 9, n) for name in numbers},
            **{name: rng.choice(["a", "b"], n) for name in words},
            "native-country": rng.choice(["United-States", "Mexico"], n, p=[0.7, 0.3]),
            "label": np.where(rng.normal(age, 10) > 45, ">50K", "<=50K"),
        }
    )
    order = (
        "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
        "capital-loss hours-per-week native-country label"
    )
    frame[order.split()].to_csv(tmp_path / "adult.csv.gz", index=False)
    monkeypatch.setenv("NEIGHBORAGG_DATA", str(tmp_path))
    _cached.cache_clear()
    yield frame
    _cached.cache_clear()


def test_the_plan_covers_every_shift_once():
    tasks = shift_plan(2)
    assert len(tasks) == len(set(tasks)) == 2 * 2 * sum(map(len, SHIFTS.values()))
    assert all(task.methods == (*METHODS, *ALARMS) for task in tasks)


@pytest.mark.filterwarnings("ignore:The file")
def test_unknown_classes_are_among_the_test_rows_only(digits_as_letter):
    made = shifted_cell("letter", "unknown classes", "LR", 0)
    cell = made.cell
    assert cell.proba.shape[1] == 8
    assert set(cell.codes[cell.train]) == set(cell.codes[cell.val]) == set(range(8))
    np.testing.assert_array_equal(cell.codes[cell.test] == -1, made.shifted)
    assert not cell.correct[made.shifted].any()
    assert cell.correct[~made.shifted].mean() > 0.8
    assert not set(cell.train) & set(cell.val) | set(cell.train) & set(cell.test)


@pytest.mark.filterwarnings("ignore:The file")
def test_rare_classes_are_rare_in_training_only(digits_as_letter):
    made = shifted_cell("letter", "rare classes", "LR", 0)
    cell = made.cell
    rare = np.unique(cell.codes[cell.test][made.shifted])
    assert len(rare) == 5
    shares = [np.isin(cell.codes[rows], rare).mean() for rows in (cell.train, cell.test)]
    assert shares[0] < 0.2 < 0.4 < shares[1]


@pytest.mark.filterwarnings("ignore:The file")
@pytest.mark.parametrize(
    ("kind", "other"),
    [("other age", lambda f: f["age"] >= 40), ("other country", lambda f: f["native-country"] == "Mexico")],
)
def test_other_people_are_among_the_test_rows_only(made_adult, monkeypatch, kind, other):
    monkeypatch.setattr("benchmarks.shift._shifted_cell.N_ROWS", 400)
    made = shifted_cell("adult", kind, "LR", 0)
    cell = made.cell
    assert (len(cell.train), len(cell.val), len(cell.test)) == (160, 40, 200)
    assert made.shifted.sum() == 100
    assert 0 < other(made_adult).sum() < 800
    if kind == "other age":
        age = cell.vectors["scaled"][:, 0]
        assert age[cell.test][made.shifted].min() > age[cell.train].max()
        assert age[cell.test][~made.shifted].max() <= age[cell.train].max() + 0.5


def test_a_rotation_is_one():
    image = np.zeros((1, 81))
    image[0, 9 * 4 : 9 * 4 + 9] = 1.0
    turned = _rotated(image, np.random.default_rng(0)).reshape(9, 9)
    assert turned[4, 4] == pytest.approx(1)
    assert turned[4, 0] < 0.2
    assert max(turned[2, 1], turned[6, 1]) > 0.4


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:The file")
def test_every_method_is_judged_on_the_same_cell(digits_as_letter):
    chosen = ("Confidence", "Pool", *ALARMS)
    rows = ShiftTask("letter", "unknown classes", "LR", 0, chosen).rows()
    found = {row["method"]: row for row in rows}
    assert list(found) == list(chosen)
    assert found["Pool"]["auroc"] > found["Confidence"]["auroc"]
    assert found["Pool"]["accuracy_shifted"] == 0
    for name in ALARMS:
        assert 0 <= found[name]["false_alarms_0.05"] < 0.15
    assert found["Familiarity"]["power_0.05"] > found["Familiarity"]["power_0.01"]
    assert found["Familiarity"]["power_0.05"] > 0.1
    assert "machine" in rows[0]
    json.dumps(rows)


def made_rows():
    rows = []
    for kind, sets in SHIFTS.items():
        for name in sets:
            for seed in range(2):
                cell = {"set": name, "shift": kind, "base": "LR", "seed": seed}
                for i, method in enumerate(METHODS):
                    rows.append(
                        {**cell, "method": method, "auroc": 0.9 - i / 100, "aurc": 0.1 + i / 100,
                         "auroc_same": 0.95, "trust_shifted": 0.5, "accuracy_shifted": 0.25}
                    )  # fmt: skip
                for i, method in enumerate(ALARMS):
                    values = {f"power_{level}": 0.5 - i / 10 for level in (0.01, 0.05)}
                    false = {f"false_alarms_{level}": level for level in (0.01, 0.05)}
                    rows.append({**cell, "method": method, **values, **false})
    return rows


def test_tables():
    text = ShiftResults(made_rows()).to_markdown()
    assert "| Confidence | 90.0 | 90.0 | 90.0 | 90.0 | 90.0 | 90.0 | 90.0 |" in text
    assert "| **accuracy** | **25.0** |" in text
    line = "| noise | mnist | **50.0** | 40.0 | 30.0 | 20.0 | **50.0** | 40.0 | 30.0 | 20.0 |"
    assert line in text
    assert "| false alarms | all | 1.00 | 1.00 | 1.00 | 1.00 | 5.00 | 5.00 | 5.00 | 5.00 |" in text
    assert "| max-softmax | +30.00 [+30.00, +30.00] | +30.00 [+30.00, +30.00] |" in text


def test_the_command_computes_what_is_missing(tmp_path, monkeypatch, figures):
    monkeypatch.setattr(shift_room._study, "shift_plan", lambda n: [])
    ResultStore(tmp_path / "shift.jsonl").add(made_rows())
    done = CliRunner().invoke(bench, ["shift", "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert {path.name for path in tmp_path.iterdir()} == {
        "shift.jsonl",
        "shift.png",
        "shift.md",
        "shift.html",
    }
    left, right = figures[0].axes
    assert len(left.collections) == 3
    assert len(right.containers) == 4
