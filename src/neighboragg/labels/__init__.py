"""Wrong labels: what to flag and why, the detector, and the audit of a whole table."""

from neighboragg._core.packages import publish as _publish
from neighboragg.labels._audit import audit as audit
from neighboragg.labels._by import Columns, Embeddings, Images, Text
from neighboragg.labels._detector import MislabelDetector as MislabelDetector
from neighboragg.labels._detector import find_mislabeled as find_mislabeled
from neighboragg.labels._outputs import Audit as Audit
from neighboragg.labels._outputs import AuditFiles as AuditFiles
from neighboragg.labels._outputs import Origin as Origin
from neighboragg.labels._outputs import check_not_input as check_not_input
from neighboragg.labels._result import MislabelResult as MislabelResult
from neighboragg.labels._review_set import Neighbor as Neighbor
from neighboragg.labels._review_set import ReviewItem as ReviewItem
from neighboragg.labels._review_set import ReviewSet as ReviewSet
from neighboragg.labels._review_set import load_review_set as load_review_set
from neighboragg.labels._rules import FDR, Budget, Estimated, FalseAlarms

__all__ = ["FDR", "Budget", "Columns", "Embeddings", "Estimated", "FalseAlarms", "Images", "Text"]

_publish(globals())
