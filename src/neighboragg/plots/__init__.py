"""Figures of trust, one display a figure; matplotlib is imported when one is drawn."""

from neighboragg._public import publish as _publish
from neighboragg.plots._label_matrix import LabelMatrixDisplay
from neighboragg.plots._label_scores import LabelScoreDisplay
from neighboragg.plots._network_weights import NetworkWeightsDisplay
from neighboragg.plots._reliability import ReliabilityDisplay
from neighboragg.plots._risk_coverage import RiskCoverageDisplay
from neighboragg.plots._trust_by_density import TrustByDensityDisplay
from neighboragg.plots._trust_surface import TrustSurfaceDisplay

__all__ = [
    "LabelMatrixDisplay",
    "LabelScoreDisplay",
    "NetworkWeightsDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "TrustByDensityDisplay",
    "TrustSurfaceDisplay",
]

_publish(globals())
