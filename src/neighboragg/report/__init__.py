"""Did trust help on these rows: one summary, as text, HTML, numbers and a picture."""

from neighboragg._public import publish as _publish
from neighboragg.report._report import TrustReport
from neighboragg.report._summary import summarize_trust

__all__ = ["TrustReport", "summarize_trust"]

_publish(globals())
