"""Comparisons: the paper's tables and figures beside ours, and the same on anybody's data."""

from neighboragg.bench._cells import Cell, make_cell, score_entrants
from neighboragg.bench._figures import ablation_figure, mislabel_figure, sensitivity_figure
from neighboragg.bench._lineup import ABLATION, BASES, DEFAULT, ENTRANTS, PAPER_METHOD, TABLE1, Entrant
from neighboragg.bench._mislabel import mislabel_rows
from neighboragg.bench._mislabel_run import BEST_RIVAL, OURS, MislabelTask, mislabel_grids, mislabel_plan
from neighboragg.bench._plans import (
    ABLATION_SETS,
    ALL_METHODS,
    PAPER_BASES,
    SENSITIVITY_METHODS,
    TABLE1_BASES,
    TABLE1_SETS,
    plan,
    sensitivity_plan,
)
from neighboragg.bench._run import Task, run_tasks
from neighboragg.bench._store import ResultStore, machine
from neighboragg.bench._tables_in import frame_to_matrix, is_parquet, load_matrix, read_table
from neighboragg.bench._tables_out import (
    Grid,
    difference_table,
    mean_table,
    result_table,
    to_html,
    to_markdown,
)

__all__ = [
    "ABLATION",
    "ABLATION_SETS",
    "ALL_METHODS",
    "BASES",
    "BEST_RIVAL",
    "DEFAULT",
    "ENTRANTS",
    "OURS",
    "PAPER_BASES",
    "PAPER_METHOD",
    "SENSITIVITY_METHODS",
    "TABLE1",
    "TABLE1_BASES",
    "TABLE1_SETS",
    "Cell",
    "Entrant",
    "Grid",
    "MislabelTask",
    "ResultStore",
    "Task",
    "ablation_figure",
    "difference_table",
    "frame_to_matrix",
    "is_parquet",
    "load_matrix",
    "machine",
    "make_cell",
    "mean_table",
    "mislabel_figure",
    "mislabel_grids",
    "mislabel_plan",
    "mislabel_rows",
    "plan",
    "read_table",
    "result_table",
    "run_tasks",
    "score_entrants",
    "sensitivity_figure",
    "sensitivity_plan",
    "to_html",
    "to_markdown",
]
