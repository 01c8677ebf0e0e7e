"""Flag nothing, where nothing is known."""

from dataclasses import dataclass

import numpy as np

from neighboragg._typing import BoolArray, FloatArray
from neighboragg.mislabel.rules._base import FlagRule, Flags, JudgedLabels

__all__ = ["Nothing"]


@dataclass(frozen=True)
class Nothing(FlagRule):
    """Flag no label, now or later, and say why; stands in for a rule that has nothing to go by."""

    name: str  # type: ignore[misc]  # that of the rule it stands in for
    reason: str

    def flag(self, labels: JudgedLabels) -> Flags:
        """Flag nothing."""
        return Flags(np.zeros(len(labels.scores), dtype=bool), -np.inf, self.reason)

    def flag_new(self, scores: FloatArray, threshold: float, verified_scores: FloatArray) -> BoolArray:
        """Flag nothing."""
        return np.zeros(len(scores), dtype=bool)
