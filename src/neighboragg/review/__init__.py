"""The label review page: suspicious labels with their evidence, decisions kept in SQLite, and what they show."""

from neighboragg._public import publish as _publish
from neighboragg.review._app import create_app
from neighboragg.review._build import build_review_set
from neighboragg.review._decision import Decision, DecisionConflictError
from neighboragg.review._export import corrected_labels, excluded_rows, export_labels
from neighboragg.review._files import load_review_set, save_review_set
from neighboragg.review._items import Neighbor, ReviewItem, ReviewSet
from neighboragg.review._serve import serve
from neighboragg.review._statistics import ReviewStatistics, review_statistics
from neighboragg.review._store import DecisionStore

__all__ = [
    "Decision",
    "DecisionConflictError",
    "DecisionStore",
    "Neighbor",
    "ReviewItem",
    "ReviewSet",
    "ReviewStatistics",
    "build_review_set",
    "corrected_labels",
    "create_app",
    "excluded_rows",
    "export_labels",
    "load_review_set",
    "review_statistics",
    "save_review_set",
    "serve",
]

_publish(globals())
