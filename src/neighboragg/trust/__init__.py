"""A classifier that also scores how far each of its predictions can be trusted."""

from neighboragg._core.packages import publish as _publish
from neighboragg.trust._assessment import Assessment as Assessment
from neighboragg.trust._classifier import TrustedClassifier as TrustedClassifier
from neighboragg.trust._compare import Comparison as Comparison
from neighboragg.trust._compare import compare as compare
from neighboragg.trust._compare import split_rows as split_rows
from neighboragg.trust._fit import fit as fit
from neighboragg.trust._score import score as score
from neighboragg.trust._seen import copies_among as copies_among
from neighboragg.trust._seen import without_warning as without_warning

#: Users import these from neighboragg.
__all__: list[str] = []

_publish(globals())
