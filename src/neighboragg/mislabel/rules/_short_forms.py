"""Short forms of the common rules."""

from numbers import Integral, Real
from typing import Any

from neighboragg.exceptions import InvalidParameterError
from neighboragg.mislabel.rules._base import FlagRule
from neighboragg.mislabel.rules._budget import Budget
from neighboragg.mislabel.rules._estimated import Estimated
from neighboragg.mislabel.rules._false_alarms import FalseAlarms

__all__ = ["as_rule"]


def as_rule(flag: Any, owner: str) -> FlagRule:
    """The rule that a `flag` parameter stands for."""
    if isinstance(flag, FlagRule):
        return flag
    if isinstance(flag, str) and flag == "estimated":
        return Estimated()
    if isinstance(flag, Integral) and not isinstance(flag, bool) and int(flag) >= 1:
        return Budget(int(flag))
    if isinstance(flag, Real) and not isinstance(flag, Integral) and 0 < float(flag) < 1:
        return FalseAlarms(float(flag))
    raise InvalidParameterError(
        f"The 'flag' parameter of {owner} must be 'estimated', a number of labels to flag (an int >= 1), a share of "
        f"false alarms (a float in (0, 1)), or a rule. Got {flag!r} instead.\n"
        "Hint: the rules are Estimated(), Budget(100), FalseAlarms(0.05) and FDR(0.1)."
    )
