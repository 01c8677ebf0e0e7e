"""The paper's tables and figures, computed again beside the printed ones."""

from benchmarks.paper._figures import ablation_figure, sensitivity_figure
from benchmarks.paper._label_noise import METHODS, noise_rows
from benchmarks.paper._label_noise_rivals import boosting_margins, knn_shapley, out_of_fold_loss, simifeat
from benchmarks.paper._label_noise_tables import LabelNoiseResults, LabelNoiseTask, label_noise_plan
from benchmarks.paper._plans import (
    ABLATION_SETS,
    ALL_METHODS,
    PAPER_BASES,
    SENSITIVITY_METHODS,
    TABLE1_BASES,
    TABLE1_SETS,
    plan,
    sensitivity_plan,
)
from benchmarks.paper._printed import TABLE1_PRINTED, TABLE2_PRINTED
from benchmarks.paper._studies import ablation, label_noise, sensitivity, table1

__all__ = [
    "ABLATION_SETS",
    "ALL_METHODS",
    "METHODS",
    "PAPER_BASES",
    "SENSITIVITY_METHODS",
    "TABLE1_BASES",
    "TABLE1_PRINTED",
    "TABLE1_SETS",
    "TABLE2_PRINTED",
    "LabelNoiseResults",
    "LabelNoiseTask",
    "ablation",
    "ablation_figure",
    "boosting_margins",
    "knn_shapley",
    "label_noise",
    "label_noise_plan",
    "noise_rows",
    "out_of_fold_loss",
    "plan",
    "sensitivity",
    "sensitivity_figure",
    "sensitivity_plan",
    "simifeat",
    "table1",
]
