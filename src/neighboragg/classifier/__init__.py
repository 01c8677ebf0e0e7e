"""A classifier that also says how far each of its predictions can be trusted."""

from neighboragg._public import publish as _publish
from neighboragg.classifier._assessment import Assessment
from neighboragg.classifier._staged_fit import StagedFit
from neighboragg.classifier._trusted_classifier import TrustedClassifier

__all__ = ["Assessment", "StagedFit", "TrustedClassifier"]

_publish(globals())
