"""The whole comparison on shifted rows, computed where a folder lacks it."""

from collections.abc import Callable
from pathlib import Path

from benchmarks.runs import ResultStore, run_tasks
from benchmarks.shift._figure import shift_figure
from benchmarks.shift._results import ShiftResults
from benchmarks.shift._task import shift_plan

__all__ = ["shift"]


def shift(
    folder: Path,
    *,
    n_splits: int = 3,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ShiftResults:
    """Unknown and rare classes, noise, rotation and other groups of people: every trust method, and familiarity.

    Parameters
    ----------
    folder : Path
        Results are kept in `shift.jsonl` there, beside the figure `shift.png`; finished cells are not computed again.
    n_splits : int, default=3
    n_jobs : int, default=None
        Processes; None means as many as there are cores and memory for.
    progress : callable, default=None
        Called with the number of finished cells and of all.

    Returns
    -------
    results : ShiftResults
    """
    store = ResultStore(folder / "shift.jsonl")
    run_tasks(shift_plan(n_splits), store, n_jobs=n_jobs, progress=progress)
    shift_figure(store.rows, folder / "shift.png")
    return ShiftResults(store.rows)
