"""Cells of a benchmark: data, entrants, processes, and results that are kept."""

from benchmarks.runs._comparison import METRICS, Comparison, Grid, Results, gain_interval
from benchmarks.runs._entrants import BEST, COMPARED, DEFAULT, ENTRANTS, FAST, PAPER_METHOD, score_entrants
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
    "METRICS",
    "PAPER_METHOD",
    "Comparison",
    "Computable",
    "Grid",
    "ResultStore",
    "Results",
    "Task",
    "gain_interval",
    "load_matrix",
    "machine",
    "run_tasks",
    "score_entrants",
]
