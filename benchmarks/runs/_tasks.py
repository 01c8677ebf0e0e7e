"""Run cells in parallel, within memory, resumably."""

import hashlib
import os
import traceback
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.runs._entrants import ENTRANTS, score_entrants
from benchmarks.runs._load_matrix import load_matrix
from benchmarks.runs._machine import machine
from benchmarks.runs._store import ResultStore
from neighboragg._core.types import Array, FloatArray
from neighboragg._pool.opinions import RememberedOpinions
from neighboragg.exceptions import TrustWarning
from neighboragg.trust._compare import make_cell

__all__ = ["Computable", "Task", "file_digest", "run_tasks"]

MEMORY_PER_WORKER = 3 * 2**30


@dataclass(frozen=True)
class Task:
    """One cell to compute: data (a name, a file with its label column, or arrays), base, seed and methods."""

    set: str
    base: str
    seed: int
    methods: tuple[str, ...]
    label: str | None = None
    changes: tuple[tuple[str, Any], ...] = ()
    arrays: tuple[FloatArray, Array] | None = field(default=None, repr=False, compare=False)

    def cell(self) -> dict[str, Any]:
        """What identifies the cell in the results."""
        of_file = {} if self.label is None else {"label": self.label, "digest": file_digest(Path(self.set))}
        return {
            "set": Path(self.set).name,
            **of_file,
            "base": self.base,
            "seed": self.seed,
            **dict(self.changes),
        }

    def split(self) -> Hashable:
        """The rows to learn from."""
        return (self.set, self.label, self.seed)

    def limited_to(self, methods: Sequence[str]) -> "Task":
        """The same cell with only some of the methods."""
        return replace(self, methods=tuple(methods))

    def rows(self) -> list[dict[str, Any]]:
        """Results of the cell, one row a method."""
        X, labels = self.arrays or _cached_matrix(self.set, self.label)
        cell = make_cell(X, labels, self.base, self.seed)
        about = {"n_train": len(cell.train), "n_val": len(cell.val), "n_test": len(cell.test)}
        entrants = {name: ENTRANTS[name] for name in self.methods}
        scored = score_entrants(cell, entrants, **dict(self.changes))
        return [{**self.cell(), **row, **about, "machine": machine()} for row in scored]


def file_digest(path: Path) -> str:
    """Tells a file from one of the same name with other contents."""
    status = path.stat()
    return _digest(path, status.st_mtime_ns, status.st_size)


@lru_cache
def _digest(path: Path, changed: int, size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


class Computable(Protocol):
    """A task of any comparison."""

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods that the cell is complete with."""

    def cell(self) -> dict[str, Any]:
        """What identifies the cell in the results."""

    def split(self) -> Hashable:
        """The rows to learn from; tasks that have them in common share what does not depend on the classifier."""

    def limited_to(self, methods: Sequence[str]) -> "Computable":
        """The same cell with only some of the methods."""

    def rows(self) -> list[dict[str, Any]]:
        """Results of the cell, one row a method."""


def run_tasks(
    tasks: Sequence[Computable],
    store: ResultStore,
    *,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Compute what the store lacks, one split after the other; what is reported as finished is on disk.

    Parameters
    ----------
    tasks : sequence of Task or LabelNoiseTask
    store : ResultStore
    n_jobs : int, default=None
        Processes; None means as many as there are cores and memory for.
    progress : callable, default=None
        Called with the number of finished tasks and of all, first with those that were finished before.
    """
    open_tasks = [
        task.limited_to(missing) for task in tasks if (missing := store.missing(task.cell(), task.methods))
    ]
    if progress is not None:
        progress(len(tasks) - len(open_tasks), len(tasks))
    for i, rows in enumerate(_computed(open_tasks, n_jobs), start=1):
        store.add(rows)
        if progress is not None:
            progress(len(tasks) - len(open_tasks) + i, len(tasks))


def _computed(tasks: Sequence[Computable], n_jobs: int | None) -> Iterator[list[dict[str, Any]]]:
    """Rows of each task as they are finished."""
    workers = _workers(n_jobs, len(tasks))
    groups = _groups(tasks, workers)
    if workers <= 1:
        for group in groups:
            yield from _together(group)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_single_thread) as pool:
        futures = [pool.submit(finished_together, group) for group in groups]
        for future in as_completed(futures):
            finished, error = future.result()
            yield from finished
            if error is not None:
                raise error


def _groups(tasks: Sequence[Computable], workers: int) -> list[list[Computable]]:
    """Tasks of each split, which share second opinions; each by itself where that would leave workers idle."""
    splits: dict[Hashable, list[Computable]] = {}
    for task in tasks:
        splits.setdefault(task.split(), []).append(task)
    return list(splits.values()) if len(splits) >= workers else [[task] for task in tasks]


def _together(tasks: Sequence[Computable]) -> Iterator[list[dict[str, Any]]]:
    """Rows of each of the tasks of a group."""
    remembered = RememberedOpinions()
    for task in tasks:
        with remembered:
            rows = compute(task)
        yield rows


def finished_together(tasks: Sequence[Computable]) -> tuple[list[list[dict[str, Any]]], Exception | None]:
    """Rows of those tasks of a group that were finished, and why no more; another process finds it by its name."""
    finished = []
    try:
        for rows in _together(tasks):
            finished += [rows]
    except Exception as error:
        error.add_note(traceback.format_exc())  # which does not travel between processes
        return finished, error
    return finished, None


def compute(task: Computable) -> list[dict[str, Any]]:
    """All rows of one task."""
    return task.rows()


@lru_cache(maxsize=2)
def _cached_matrix(name: str, label: str | None) -> tuple[FloatArray, Array]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # told before the tasks were made
        return load_matrix(name, label)


def _workers(n_jobs: int | None, n_tasks: int) -> int:
    cores = os.cpu_count() or 1
    wanted = cores if n_jobs is None or n_jobs < 0 else max(1, n_jobs)
    memory = _available_memory()
    fitting = max(1, int(memory // MEMORY_PER_WORKER)) if np.isfinite(memory) else wanted
    return min(wanted, fitting, n_tasks)


def _available_memory() -> float:
    info = Path("/proc/meminfo")
    if not info.exists():
        return float("inf")
    lines = dict(line.split(":", 1) for line in info.read_text().splitlines() if ":" in line)
    return 1024.0 * int(lines["MemAvailable"].split()[0])


def _single_thread() -> None:
    threadpool_limits(1)
    os.environ["OMP_NUM_THREADS"] = "1"
