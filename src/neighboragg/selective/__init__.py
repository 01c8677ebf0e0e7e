"""Selective prediction: keep what can be trusted, with a promise about what is kept."""

from neighboragg._public import publish as _publish
from neighboragg.selective._classifier import SelectiveClassifier
from neighboragg.selective._thresholds import SelectiveThreshold, coverage_threshold, risk_threshold

__all__ = ["SelectiveClassifier", "SelectiveThreshold", "coverage_threshold", "risk_threshold"]

_publish(globals())
