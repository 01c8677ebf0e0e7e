"""`python -m benchmarks`, as a user runs it."""

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import bench
from benchmarks.paper import ABLATION_SETS, ALL_METHODS, PAPER_BASES, SENSITIVITY_METHODS, TABLE1_SETS
from benchmarks.runs import ResultStore, _tasks


def run(*arguments):
    return CliRunner().invoke(bench, [*map(str, arguments)], env={"COLUMNS": "200"})


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


def test_unknown_base_classifier(tmp_path):
    done = run("table1", "--bases", "LR,SVM", "--output", tmp_path / "out")
    assert done.exit_code == 2
    assert "'SVM' is not one of LR, RF, MLP, HGB" in done.output


def test_no_seeds_is_refused():
    assert run("table1", "--seeds", 0).exit_code == 2
