"""Metrics of a trust score: ranking, selection and calibration.

Every metric takes `(correct, trust)`, two arrays with one entry per prediction: whether it was correct, and a score
that is higher for more trusted predictions. Rows with equal trust form one group, so no metric depends on the order
of the rows.
"""

from neighboragg._core.packages import publish as _publish
from neighboragg.metrics._bootstrap import Interval as Interval
from neighboragg.metrics._bootstrap import bootstrap_difference, bootstrap_interval
from neighboragg.metrics._calibration import expected_calibration_error, reliability_curve
from neighboragg.metrics._displays import ReliabilityDisplay, RiskCoverageDisplay
from neighboragg.metrics._displays import axes_for as axes_for
from neighboragg.metrics._ranking import auroc, average_precision_error, average_precision_success, fpr_at_tpr
from neighboragg.metrics._selective import (
    augrc,
    aurc,
    coverage_at_risk,
    risk_at_coverage,
    risk_coverage_curve,
)
from neighboragg.metrics._summary import trust_metrics

__all__ = [
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "augrc",
    "aurc",
    "auroc",
    "average_precision_error",
    "average_precision_success",
    "bootstrap_difference",
    "bootstrap_interval",
    "coverage_at_risk",
    "expected_calibration_error",
    "fpr_at_tpr",
    "reliability_curve",
    "risk_at_coverage",
    "risk_coverage_curve",
    "trust_metrics",
]

_publish(globals())
