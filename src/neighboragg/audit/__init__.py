"""An audit of the labels of a table: what is suspicious and why, files for a review, and the corrected table."""

from neighboragg._public import publish as _publish
from neighboragg.audit._audit import audit
from neighboragg.audit._correct import Correction, correct
from neighboragg.audit._files import AuditFiles
from neighboragg.audit._findings import Finding
from neighboragg.audit._large import LargeAudit, audit_files
from neighboragg.audit._result import Audit

__all__ = ["Audit", "AuditFiles", "Correction", "Finding", "LargeAudit", "audit", "audit_files", "correct"]

_publish(globals())
