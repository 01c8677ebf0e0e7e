"""The paper's tables and figures beside ours, and wrong labels put in on purpose."""

from neighboragg._public import publish as _publish
from neighboragg.bench.paper._label_noise import noise_rows
from neighboragg.bench.paper._label_noise_tables import LabelNoiseResults
from neighboragg.bench.paper._plans import (
    ABLATION_SETS,
    ALL_METHODS,
    PAPER_BASES,
    SENSITIVITY_METHODS,
    TABLE1_BASES,
    TABLE1_SETS,
)
from neighboragg.bench.paper._printed import TABLE1_PRINTED, TABLE2_PRINTED
from neighboragg.bench.paper._studies import ablation, label_noise, sensitivity, table1

__all__ = [
    "ABLATION_SETS",
    "ALL_METHODS",
    "PAPER_BASES",
    "SENSITIVITY_METHODS",
    "TABLE1_BASES",
    "TABLE1_PRINTED",
    "TABLE1_SETS",
    "TABLE2_PRINTED",
    "LabelNoiseResults",
    "ablation",
    "label_noise",
    "noise_rows",
    "sensitivity",
    "table1",
]

_publish(globals())
