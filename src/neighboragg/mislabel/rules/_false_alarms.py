"""Flag at most a given share of the right labels: the paper's conformal rule."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from neighboragg._validation import check_real
from neighboragg.mislabel._conformal import cmd_threshold
from neighboragg.mislabel.rules._base import FlagRule, Flags, JudgedLabels

__all__ = ["FalseAlarms"]

# Estimates above this are no estimates; the threshold is not defined at 1.
MOST_NOISE = 0.99


@dataclass(frozen=True)
class FalseAlarms(FlagRule):
    """Flag at most a share `level` of the right labels, whatever the data: conformal mislabel detection.

    Parameters
    ----------
    level : float, default=0.05
        Share of the right labels that may be flagged, in ``(0, 1)``.
    noise_rate : float, default=None
        Share of wrong labels, or an upper bound of it, in ``[0, 1)``. None estimates it.

    Notes
    -----
    The rule flags about this share of the labels on any data: `level` is a false-alarm rate, not a precision.
    What it assumes is said in :func:`cmd_threshold`. ``flag=0.05`` is short for ``flag=FalseAlarms(0.05)``.

    References
    ----------
    .. [1] Xiong et al., "Birds of a Feather Trust Together: Knowing When to Trust a Classifier via Adaptive
       Neighborhood Aggregation", TMLR 2022, Algorithm 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from neighboragg.mislabel import FalseAlarms, find_mislabeled
    >>> X, y = load_iris(return_X_y=True)
    >>> find_mislabeled(X, y, flag=FalseAlarms(0.1, noise_rate=0.02)).n_flagged
    13
    """

    name: ClassVar[str] = "false alarms"

    level: float = 0.05
    _: KW_ONLY
    noise_rate: float | None = None

    def __post_init__(self) -> None:
        check_real(self.level, "level", "FalseAlarms", low=0, high=1)
        if self.noise_rate is not None:
            check_real(self.noise_rate, "noise_rate", "FalseAlarms", low=0, high=1, closed="left")

    def flag(self, labels: JudgedLabels) -> Flags:
        """Flag scores below the conformal threshold."""
        rate = self.noise_rate
        if rate is None:
            rate = min(labels.noise.rate, MOST_NOISE)
        threshold = cmd_threshold(labels.scores, alpha=self.level, noise_rate=rate)
        most = math.floor(self.level * len(labels.scores) * (1 - rate))
        promise = (
            f"At most {self.level:.3g} of the right labels are flagged, if at most {rate:.3g} of all are wrong: up to "
            f"{most:,} false alarms. This is not a precision."
        )
        return Flags(~labels.verified & (labels.scores < threshold), threshold, promise)
