"""Figures of trust, one display a figure; matplotlib is imported when one is drawn."""

from neighboragg.plots._risk_coverage import RiskCoverageDisplay

__all__ = ["RiskCoverageDisplay"]
