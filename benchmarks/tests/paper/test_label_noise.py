"""The comparison on wrong labels, on a small table in the place of a known data set."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import scale
from typer.testing import CliRunner

from benchmarks.__main__ import bench
from benchmarks.paper import (
    METHODS,
    LabelNoiseResults,
    LabelNoiseTask,
    boosting_margins,
    knn_shapley,
    label_noise_plan,
    noise_rows,
    out_of_fold_loss,
    simifeat,
)


@pytest.fixture
def wine_as_landsat(tmp_path, monkeypatch):
    X, y = load_wine(return_X_y=True)
    wide = np.tile(scale(X), 3)[:, :36]
    frame = pd.DataFrame(wide, columns=[f"band_{i}" for i in range(36)]).assign(label=y)
    frame.to_csv(tmp_path / "landsat.csv.gz", index=False)
    monkeypatch.setenv("NEIGHBORAGG_DATA", str(tmp_path))
    noise_rows.cache_clear()
    yield tmp_path
    noise_rows.cache_clear()


@pytest.mark.full
def test_every_score_is_judged_on_the_same_cell(wine_as_landsat):
    rows = LabelNoiseTask("landsat", "LR", "symmetric", 0.09, 0).rows()
    found = {row["method"]: row for row in rows}
    assert set(found) == set(METHODS)
    assert found["ours"]["average_precision"] > 0.9
    assert found["ours, reliability=paper"]["average_precision"] < found["ours"]["average_precision"]
    assert found["ours"]["precision_at_recall_90"] > 0.5
    assert 0 <= found["cleanlab filter"]["flag_f1"] <= 1
    assert all(row["set"] == "landsat" and row["rate"] == 0.09 for row in rows)


@pytest.mark.full
def test_forest_base(wine_as_landsat):
    rows = LabelNoiseTask("landsat", "RF", "class_dependent", 0.09, 1).rows()
    assert len(rows) == len({row["method"] for row in rows})


def test_the_plan_covers_all_cells_once():
    tasks = label_noise_plan(2)
    assert len(tasks) == len(set(tasks)) == 4 * 2 * (4 * 4 + 3 * 3)


def test_tables_count_wins_and_list_losses():
    def row(method, rate, value, **more):
        ranking = dict.fromkeys(
            ("average_precision", "auroc", "precision_at_recall_90", "precision_100", "precision_1000"), value
        )
        flags = dict.fromkeys(
            ("flagged", "flag_precision", "flag_recall", "flag_f1", "false_alarm_rate"), value
        )
        cell = {"set": "s", "base": "LR", "noise": "symmetric", "rate": rate, "seed": 0, "method": method}
        return {**cell, **ranking, **flags, **more}

    rows = []
    for rate, ours in ((0.03, 0.9), (0.2, 0.4)):
        estimates = {"estimated_rate": rate, "ece": 0.01}
        rows.append(row("ours", rate, ours, **estimates))
        rows.append(row("ours, reliability=margin", rate, ours + 0.2))
        rows.append(row("ours, reliability=difference", rate, ours))
        rows += [
            row(baseline, rate, 0.5)
            for baseline in (
                "cleanlab normalized_margin",
                "margin on the mean of the models",
                "cleanlab filter",
            )
        ]
    grids = LabelNoiseResults(rows).tables()
    gains, rates, lost = grids[3], grids[4], grids[5]
    assert gains.rows[0][2].startswith("+15.0")
    assert gains.rows[0][3] == "1 / 1"
    assert rates.rows == [
        ["3%", "3.0%", "0.0", "1.0"],
        ["20%", "20.0%", "0.0", "1.0"],
    ]
    assert lost.rows == [["s, LR", "symmetric, 20%", "-10.0", "+10.0", "-10.0"]]


@pytest.mark.full
def test_the_command_writes_tables(wine_as_landsat, monkeypatch):
    one = [LabelNoiseTask("landsat", "LR", "symmetric", 0.2, 0)]
    monkeypatch.setattr("benchmarks.paper._studies.label_noise_plan", lambda seeds: one)
    out = wine_as_landsat / "out"
    result = CliRunner().invoke(bench, ["mislabel", "-o", str(out), "--jobs", "1"])
    assert result.exit_code == 0, result.output
    assert "Share of wrong labels" in (out / "mislabel.md").read_text()
    assert np.isin(
        ["mislabel.html", "mislabel.jsonl", "mislabel.png"], [path.name for path in out.iterdir()]
    ).all()


@pytest.fixture
def pairs_of_rows():
    """Two classes far apart, five rows of each labeled as the other."""
    rng = np.random.default_rng(0)
    true = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 3)) + 6.0 * (true[:, None] - 0.5)
    wrong = np.zeros(120, dtype=bool)
    wrong[[0, 1, 2, 3, 4, 60, 61, 62, 63, 64]] = True
    return X, np.where(wrong, 1 - true, true), wrong


def test_rivals_put_wrong_labels_last(pairs_of_rows):
    X, y, wrong = pairs_of_rows
    scores, voted, ranked = simifeat(X, y)
    rivals = (scores, knn_shapley(X, y), boosting_margins(X, y, 0), out_of_fold_loss(X, y, 0))
    assert min(average_precision_score(wrong, -found) for found in rivals) > 0.8
    np.testing.assert_array_equal(voted, wrong)
    assert wrong[ranked].mean() > 0.7 and ranked[wrong].mean() > 0.7


def test_shapley_values_follow_their_definition():
    """Against the mean gain over all orders of four rows, one after the other used as the row to label."""
    X, y = np.array([[0.0], [1.0], [2.5], [4.5]]), np.array([0, 1, 0, 0])
    expected = np.zeros(4)
    for tested in range(4):
        others = [i for i in range(4) if i != tested]
        for order in permutations(others):
            before = 0.0
            for k in range(1, 4):
                near = sorted(order[:k], key=lambda i: abs(X[i, 0] - X[tested, 0]))[:10]
                gain = sum(y[i] == y[tested] for i in near) / 10
                expected[order[k - 1]] += (gain - before) / 6
                before = gain
    np.testing.assert_allclose(knn_shapley(X, y), expected / 4)
