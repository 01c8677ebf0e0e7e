"""Rules that say which labels are flagged; a new one is a class in a file of its own, exported here."""

from neighboragg._public import publish as _publish
from neighboragg.mislabel.rules._base import FlagRule, Flags, JudgedLabels
from neighboragg.mislabel.rules._budget import Budget
from neighboragg.mislabel.rules._estimated import Estimated
from neighboragg.mislabel.rules._false_alarms import FalseAlarms
from neighboragg.mislabel.rules._fdr import FDR
from neighboragg.mislabel.rules._nothing import Nothing
from neighboragg.mislabel.rules._short_forms import as_rule

__all__ = [
    "FDR",
    "Budget",
    "Estimated",
    "FalseAlarms",
    "FlagRule",
    "Flags",
    "JudgedLabels",
    "Nothing",
    "as_rule",
]

_publish(globals())
