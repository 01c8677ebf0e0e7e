"""Wrong labels: the detector, rules for what to flag, noise rates, and intervals from reviewed rows."""

from neighboragg._public import publish as _publish
from neighboragg.mislabel._conformal import (
    benjamini_hochberg,
    cmd_flags,
    cmd_threshold,
    conformal_p_values,
)
from neighboragg.mislabel._detector import MislabelDetector
from neighboragg.mislabel._find import find_mislabeled
from neighboragg.mislabel._intervals import clopper_pearson, errors_left_interval, precision_interval
from neighboragg.mislabel._label_noise import FoundNoise
from neighboragg.mislabel._new_labels import NewLabels
from neighboragg.mislabel._noise_rate import confident_count
from neighboragg.mislabel._reliability import label_reliability
from neighboragg.mislabel._result import MislabelResult
from neighboragg.mislabel.rules import FDR, Budget, Estimated, FalseAlarms, FlagRule, Flags, JudgedLabels

__all__ = [
    "FDR",
    "Budget",
    "Estimated",
    "FalseAlarms",
    "FlagRule",
    "Flags",
    "FoundNoise",
    "JudgedLabels",
    "MislabelDetector",
    "MislabelResult",
    "NewLabels",
    "benjamini_hochberg",
    "clopper_pearson",
    "cmd_flags",
    "cmd_threshold",
    "confident_count",
    "conformal_p_values",
    "errors_left_interval",
    "find_mislabeled",
    "label_reliability",
    "precision_interval",
]

_publish(globals())
