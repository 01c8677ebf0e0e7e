"""What a rule is given, what it gives back, and what every rule can do."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from neighboragg._typing import BoolArray, FloatArray, IntArray
from neighboragg.mislabel._label_noise import FoundNoise
from neighboragg.persistence import Stored

__all__ = ["REVIEW", "FlagRule", "Flags", "JudgedLabels"]

REVIEW = "Review a random sample of the flags for an interval (precision_interval)."


@dataclass(frozen=True)
class JudgedLabels:
    """What is known of n labels when a rule is asked.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Reliability of each label; low is suspicious.
    trust : ndarray of shape (n, C)
        Trust in every class.
    codes : ndarray of shape (n,)
        Given labels as positions in the class axis.
    verified : ndarray of bool of shape (n,)
        Rows whose labels have been verified to be right; never flagged.
    noise : FoundNoise
        P(wrong) of each label, the share of wrong ones, and how many are worth flagging.
    """

    scores: FloatArray
    trust: FloatArray
    codes: IntArray
    verified: BoolArray
    noise: FoundNoise


@dataclass(frozen=True)
class Flags:
    """Which labels are flagged, the score below which further ones are, and what that promises."""

    mask: BoolArray
    threshold: float
    promise: str


class FlagRule(Stored, ABC):
    """Which labels to flag, from their scores.

    A rule is a frozen dataclass whose fields are its parameters, checked when it is made. It has a name, and a
    :meth:`flag` that turns judged labels into flags; the other methods have defaults that suit most rules.
    """

    #: What results call the rule.
    name: ClassVar[str]

    def _after_load(self) -> None:
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    @abstractmethod
    def flag(self, labels: JudgedLabels) -> Flags:
        """Choose the labels to flag, none of them verified."""

    def check(self, verified: BoolArray) -> None:
        """Raise, before any work is done, if the rule cannot be kept with these rows."""

    def flag_new(self, scores: FloatArray, threshold: float, verified_scores: FloatArray) -> BoolArray:
        """Flag further labels by the threshold of the first, and the scores of the verified among those."""
        return scores < threshold
