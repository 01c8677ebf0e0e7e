"""Figures that show how the method works."""

from benchmarks.plots._network_weights import NetworkWeightsDisplay
from benchmarks.plots._trust_by_density import TrustByDensityDisplay
from benchmarks.plots._trust_surface import TrustSurfaceDisplay

__all__ = ["NetworkWeightsDisplay", "TrustByDensityDisplay", "TrustSurfaceDisplay"]
