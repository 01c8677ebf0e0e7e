"""Can I trust this prediction, and can I trust this label?

Trust scores for any trained classifier, from its nearest training rows in every class.
"""

from neighboragg._load import load
from neighboragg._public import publish as _publish
from neighboragg._show_versions import show_versions
from neighboragg.classifier import Assessment, TrustedClassifier
from neighboragg.methods import NeighborAgg
from neighboragg.mislabel import MislabelDetector, find_mislabeled
from neighboragg.selective import SelectiveClassifier

__version__ = "0.1.0"

__all__ = [
    "Assessment",
    "MislabelDetector",
    "NeighborAgg",
    "SelectiveClassifier",
    "TrustedClassifier",
    "find_mislabeled",
    "load",
    "show_versions",
]

_publish(globals())
