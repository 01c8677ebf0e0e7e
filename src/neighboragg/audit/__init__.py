"""An audit of the labels of a table: what is suspicious and why, files for a review, and the corrected table."""

from neighboragg._public import publish as _publish
from neighboragg.audit._audit import Audit, audit
from neighboragg.audit._correct import Correction, correct
from neighboragg.audit._files import AuditFiles

__all__ = ["Audit", "AuditFiles", "Correction", "audit", "correct"]

_publish(globals())
