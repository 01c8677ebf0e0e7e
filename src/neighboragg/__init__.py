"""Can I trust this prediction, and can I trust this label?

Trust scores for any trained classifier, from its nearest training rows in every class.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neighboragg._data.open import Table as Table
    from neighboragg._report.report import TrustReport as TrustReport
    from neighboragg._review.app import review as review
    from neighboragg._review.correct import correct as correct
    from neighboragg._show_versions import show_versions as show_versions
    from neighboragg._store.load import load as load
    from neighboragg.labels import Audit as Audit
    from neighboragg.labels import MislabelDetector as MislabelDetector
    from neighboragg.labels import MislabelResult as MislabelResult
    from neighboragg.labels import audit as audit
    from neighboragg.labels import find_mislabeled as find_mislabeled
    from neighboragg.methods import Explanation as Explanation
    from neighboragg.methods import NeighborAgg as NeighborAgg
    from neighboragg.promises import SelectiveClassifier as SelectiveClassifier
    from neighboragg.trust import Assessment as Assessment
    from neighboragg.trust import Comparison as Comparison
    from neighboragg.trust import TrustedClassifier as TrustedClassifier
    from neighboragg.trust import compare as compare
    from neighboragg.trust import fit as fit
    from neighboragg.trust import score as score

__version__ = "0.1.0"

# Imported when first used, so a command that needs none of them starts at once.
ROOMS = {
    "Assessment": "neighboragg.trust",
    "Audit": "neighboragg.labels",
    "Comparison": "neighboragg.trust",
    "Explanation": "neighboragg.methods",
    "MislabelDetector": "neighboragg.labels",
    "MislabelResult": "neighboragg.labels",
    "NeighborAgg": "neighboragg.methods",
    "SelectiveClassifier": "neighboragg.promises",
    "Table": "neighboragg._data.open",
    "TrustReport": "neighboragg._report.report",
    "TrustedClassifier": "neighboragg.trust",
    "audit": "neighboragg.labels",
    "compare": "neighboragg.trust",
    "correct": "neighboragg._review.correct",
    "find_mislabeled": "neighboragg.labels",
    "fit": "neighboragg.trust",
    "load": "neighboragg._store.load",
    "review": "neighboragg._review.app",
    "score": "neighboragg.trust",
    "show_versions": "neighboragg._show_versions",
}

__all__ = sorted(ROOMS)


def __getattr__(name: str) -> Any:
    if name not in ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(_import_module(ROOMS[name]), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
