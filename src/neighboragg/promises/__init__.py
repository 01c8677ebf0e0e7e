"""From trust to a decision: thresholds, intervals and conformal rules with a guarantee."""

from neighboragg._core.packages import publish as _publish
from neighboragg.promises._conformal import benjamini_hochberg, cmd_threshold, conformal_p_values
from neighboragg.promises._intervals import clopper_pearson as clopper_pearson
from neighboragg.promises._intervals import errors_left_interval, precision_interval
from neighboragg.promises._selective import SelectiveClassifier as SelectiveClassifier
from neighboragg.promises._thresholds import coverage_threshold, risk_threshold

__all__ = [
    "benjamini_hochberg",
    "cmd_threshold",
    "conformal_p_values",
    "coverage_threshold",
    "errors_left_interval",
    "precision_interval",
    "risk_threshold",
]

_publish(globals())
