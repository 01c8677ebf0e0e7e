"""The paper's tables and figures, computed where a folder lacks them, and written there."""

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.paper._figures import ablation_figure, label_noise_figure, sensitivity_figure
from benchmarks.paper._label_noise_tables import BEST_BASELINE, OURS, LabelNoiseResults, label_noise_plan
from benchmarks.paper._plans import (
    ABLATION_METHODS,
    ABLATION_SETS,
    ALL_METHODS,
    PAPER_BASES,
    SENSITIVITY_METHODS,
    TABLE1_BASES,
    TABLE1_SETS,
    plan,
    sensitivity_plan,
)
from benchmarks.paper._printed import TABLE1_PRINTED
from benchmarks.runs import COMPARED, Comparison, Computable, ResultStore, run_tasks

__all__ = ["ablation", "label_noise", "sensitivity", "table1"]

Progress = Callable[[int, int], None] | None


def table1(
    folder: Path,
    *,
    bases: Sequence[str] = TABLE1_BASES,
    n_splits: int = 5,
    n_jobs: int | None = None,
    progress: Progress = None,
) -> Comparison:
    """Three data sets × base classifiers × all methods, beside the paper's Table 1.

    Parameters
    ----------
    folder : Path
        Results are kept in `tabular.jsonl` there; finished cells are not computed again.
    bases : sequence of str, default=("LR", "RF", "MLP", "HGB")
    n_splits : int, default=5
    n_jobs : int, default=None
        Processes; None means as many as there are cores and memory for.
    progress : callable, default=None
        Called with the number of finished cells and of all.

    Returns
    -------
    comparison : Comparison
    """
    store = _computed(folder / "tabular.jsonl", plan(TABLE1_SETS, bases, n_splits), n_jobs, progress)
    title = "Table 1: trust methods on tabular data"
    return Comparison(store.rows, TABLE1_SETS, bases, COMPARED, title=title, printed=TABLE1_PRINTED)


def ablation(
    folder: Path,
    *,
    bases: Sequence[str] = PAPER_BASES,
    n_splits: int = 5,
    n_jobs: int | None = None,
    progress: Progress = None,
) -> Comparison:
    """Seven data sets: NeighOnly, ProbOnly, Trust Score, the paper's network and the pool, with figures.

    Parameters are those of :func:`table1`; figures are written to `folder`.
    """
    store = _computed(folder / "tabular.jsonl", plan(ABLATION_SETS, bases, n_splits), n_jobs, progress)
    for metric in ("auroc", "ap_success", "ap_error"):
        path = folder / f"ablation_{metric}.png"
        ablation_figure(store.rows, ABLATION_SETS, bases, ABLATION_METHODS, metric, path)
    return Comparison(
        store.rows,
        ABLATION_SETS,
        bases,
        ALL_METHODS,
        title="Ablation on seven tabular data sets",
        detailed=ABLATION_METHODS,
        printed=TABLE1_PRINTED,
    )


def sensitivity(
    folder: Path,
    *,
    most: int = 20,
    n_splits: int = 5,
    n_jobs: int | None = None,
    progress: Progress = None,
) -> Path:
    """Figure of K from 1 to `most` on CardDefault with logistic regression, as in the paper's appendix.

    Other parameters are those of :func:`table1`; returns where the figure was written.
    """
    tasks = sensitivity_plan(n_splits, range(1, most + 1))
    store = _computed(folder / "sensitivity.jsonl", tasks, n_jobs, progress)
    path = folder / "sensitivity.png"
    sensitivity_figure(store.rows, SENSITIVITY_METHODS, path)
    return path


def label_noise(
    folder: Path, *, n_splits: int = 1, n_jobs: int | None = None, progress: Progress = None
) -> LabelNoiseResults:
    """Labels made wrong on purpose: ours against cleanlab, kNN and classifier disagreement, with a figure.

    Parameters are those of :func:`table1`; the figure is written to `folder`.
    """
    store = _computed(folder / "mislabel.jsonl", label_noise_plan(n_splits), n_jobs, progress)
    results = LabelNoiseResults(store.rows)
    label_noise_figure(results.first_comparison(), OURS, BEST_BASELINE, folder / "mislabel.png")
    return results


def _computed(path: Path, tasks: Sequence[Computable], n_jobs: int | None, progress: Progress) -> ResultStore:
    store = ResultStore(path)
    run_tasks(tasks, store, n_jobs=n_jobs, progress=progress)
    return store
