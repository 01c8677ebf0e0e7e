"""Trust methods: NeighborAgg and the baselines, all with one array contract."""

from neighboragg._core.packages import publish as _publish
from neighboragg.methods._confidence import MaxConfidence, TemperatureScaling, TopLabelCalibration
from neighboragg.methods._distances import Mahalanobis, TrustScore
from neighboragg.methods._explanation import Explanation as Explanation
from neighboragg.methods._explanation import ReferenceValues as ReferenceValues
from neighboragg.methods._explanation import RowValues as RowValues
from neighboragg.methods._familiarity import too_many_unfamiliar as too_many_unfamiliar
from neighboragg.methods._logits import LogitMethod as LogitMethod
from neighboragg.methods._logits import logits_of as logits_of
from neighboragg.methods._method import TrustMethod
from neighboragg.methods._neighbor_agg import NeighborAgg as NeighborAgg
from neighboragg.methods._neighbor_gcn import NeighborGCN
from neighboragg.methods._true_class import TrueClassProbability
from neighboragg.methods._true_class import spread_trust as spread_trust

__all__ = [
    "Mahalanobis",
    "MaxConfidence",
    "NeighborGCN",
    "TemperatureScaling",
    "TopLabelCalibration",
    "TrueClassProbability",
    "TrustMethod",
    "TrustScore",
]

_publish(globals())
