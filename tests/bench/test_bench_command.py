"""`neighboragg bench`, as a user runs it."""

import pytest
from typer.testing import CliRunner

from neighboragg.bench import COMPARED, ResultStore, _tasks
from neighboragg.bench.paper import (
    ABLATION_SETS,
    ALL_METHODS,
    PAPER_BASES,
    SENSITIVITY_METHODS,
    TABLE1_SETS,
)
from neighboragg.cli._app import app
from neighboragg.exceptions import InvalidInputError


def run(*arguments):
    return CliRunner().invoke(app, ["bench", *map(str, arguments)], env={"COLUMNS": "200"})


@pytest.fixture
def refuse(monkeypatch):
    """Make any computation an error."""

    def make():
        def compute(task):
            raise AssertionError(f"computed {task}")

        monkeypatch.setattr(_tasks, "compute", compute)

    return make


@pytest.fixture
def prepared(tmp_path, result):
    """A folder with finished cells, whose numbers depend on the method alone."""

    def make(name, sets, bases, methods, changes=({},)):
        ResultStore(tmp_path / name).add(
            result(dataset, base, seed, method, 0.7 + 0.01 * i, **change)
            for dataset in sets
            for base in bases
            for seed in (0, 1)
            for i, method in enumerate(methods)
            for change in changes
        )
        return tmp_path

    return make


@pytest.mark.full
def test_data_end_to_end_and_again(csv, tmp_path, refuse):
    output = tmp_path / "out"
    arguments = (
        "data",
        csv,
        "--label",
        "kind",
        "--seeds",
        1,
        "--jobs",
        1,
        "--bases",
        "LR",
        "--output",
        output,
    )
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    files = {path.name: path.read_bytes() for path in output.iterdir()}
    assert sorted(files) == ["fruit.csv.html", "fruit.csv.jsonl", "fruit.csv.md"]
    rows = ResultStore(output / "fruit.csv.jsonl").rows
    assert [row["method"] for row in rows] == list(COMPARED)
    assert all(row["label"] == "kind" and 0 <= row["auroc"] <= 1 for row in rows)
    markdown = files["fruit.csv.md"].decode()
    assert markdown.startswith("# Trust methods on fruit.csv\n")
    for method in COMPARED:
        assert f"| {method} | " in markdown
        assert method in done.output
    assert f"<td>{COMPARED[0]}</td>" in files["fruit.csv.html"].decode()

    refuse()
    again = run(*arguments)
    assert again.exit_code == 0, again.output
    assert {path.name: path.read_bytes() for path in output.iterdir()} == files


def test_another_label_column_is_another_comparison(csv, tmp_path, monkeypatch, result):
    computed = []

    def compute(task):
        computed.append(task)
        value = {"kind": 0.75, "ripe": 0.65}[task.label]
        return [{**result("", "", 0, method, value), **task.cell()} for method in task.methods]

    monkeypatch.setattr(_tasks, "compute", compute)
    for label, shown in (("kind", "75.00"), ("ripe", "65.00")):
        done = run("data", csv, "--label", label, "--seeds", 2, "--jobs", 1, "--bases", "LR", "-o", tmp_path)
        assert done.exit_code == 0, done.output
        text = (tmp_path / "fruit.csv.md").read_text()
        assert f"**{shown} (0.00)**" in text
        assert "70.00" not in text
    assert [(task.label, task.seed) for task in computed] == [
        (label, seed) for label in ("kind", "ripe") for seed in (0, 1)
    ]


def test_other_contents_under_the_same_name_are_another_comparison(csv, tmp_path, monkeypatch, result):
    computed = []

    def compute(task):
        computed.append(task.cell()["digest"])
        value = 0.75 if len(set(computed)) == 1 else 0.65
        return [{**result("", "", 0, method, value), **task.cell()} for method in task.methods]

    monkeypatch.setattr(_tasks, "compute", compute)
    arguments = ("data", csv, "--label", "kind", "--seeds", 1, "--jobs", 1, "--bases", "LR", "-o", tmp_path)
    for shown in ("75.00", "65.00"):
        done = run(*arguments)
        assert done.exit_code == 0, done.output
        text = (tmp_path / "fruit.csv.md").read_text()
        assert f"**{shown} (" in text
        csv.write_bytes(csv.read_bytes() + csv.read_bytes().splitlines(keepends=True)[-1])
    assert len(computed) == len(set(computed)) == 2


def test_table1_beside_the_paper(prepared, refuse):
    output = prepared("tabular.jsonl", TABLE1_SETS, ["LR", "HGB"], ALL_METHODS)
    refuse()
    done = run("table1", "--seeds", 2, "--jobs", 1, "--bases", "LR, HGB", "--output", output)
    assert done.exit_code == 0, done.output
    text = (output / "table1.md").read_text()
    assert text.count("[99.08]") == 1
    assert "| NeighOnly |" not in text
    assert (output / "table1.html").read_text().count("<table>") == 5


@pytest.mark.full
def test_ablation_with_figures(prepared, refuse, figures):
    output = prepared("tabular.jsonl", ABLATION_SETS, PAPER_BASES, ALL_METHODS)
    refuse()
    done = run("ablation", "--seeds", 2, "--output", output)
    assert done.exit_code == 0, done.output
    assert "| NeighOnly |" in (output / "ablation.md").read_text()
    for metric in ("auroc", "ap_success", "ap_error"):
        assert (output / f"ablation_{metric}.png").read_bytes().startswith(b"\x89PNG")
    assert [len(figure.axes) for figure in figures] == [3, 3, 3]


def test_sensitivity_figure(prepared, refuse, figures):
    counts = [{"n_neighbors": k} for k in (1, 2, 3)]
    output = prepared("sensitivity.jsonl", ["card_default"], ["LR"], SENSITIVITY_METHODS, counts)
    refuse()
    done = run("sensitivity", "--seeds", 2, "--most", 3, "--output", output)
    assert done.exit_code == 0, done.output
    assert (output / "sensitivity.png").read_bytes().startswith(b"\x89PNG")
    assert [len(line.get_xdata()) for line in figures[0].axes[0].lines] == [3, 3]
    assert "sensitivity.png" in done.output


def test_what_is_wrong_with_the_file_is_told_before_any_work(csv, tmp_path, refuse):
    refuse()
    done = run("data", csv, "--label", "taste", "--output", tmp_path / "out")
    assert isinstance(done.exception, InvalidInputError)
    assert str(done.exception) == (
        f"There is no column 'taste' in {csv}.\nHint: the columns are 'size', 'weight', 'color', 'ripe', 'kind'."
    )
    assert not (tmp_path / "out").exists()


def test_unknown_base_classifier(csv, tmp_path):
    done = run("data", csv, "--label", "kind", "--bases", "LR,SVM", "--output", tmp_path / "out")
    assert done.exit_code == 2
    assert "'SVM' is not one of LR, RF, MLP, HGB" in done.output


def test_no_seeds_is_refused(csv):
    done = run("data", csv, "--label", "kind", "--seeds", 0)
    assert done.exit_code == 2
