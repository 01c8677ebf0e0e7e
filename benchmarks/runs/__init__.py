"""Cells of a benchmark: data, entrants, processes, and results that are kept."""

from benchmarks.runs._entrants import BEST, COMPARED, DEFAULT, ENTRANTS, FAST, PAPER_METHOD
from benchmarks.runs._load_matrix import load_matrix
from benchmarks.runs._machine import machine
from benchmarks.runs._store import ResultStore
from benchmarks.runs._tasks import Computable, Task, run_tasks

__all__ = [
    "BEST",
    "COMPARED",
    "DEFAULT",
    "ENTRANTS",
    "FAST",
    "PAPER_METHOD",
    "Computable",
    "ResultStore",
    "Task",
    "load_matrix",
    "machine",
    "run_tasks",
]
