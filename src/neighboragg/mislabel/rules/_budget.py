"""Flag as many labels as somebody has time to look at."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from neighboragg._typing import BoolArray
from neighboragg._validation import check_integer
from neighboragg.exceptions import InvalidParameterError
from neighboragg.mislabel.rules._base import REVIEW, FlagRule, Flags, JudgedLabels

__all__ = ["Budget"]


@dataclass(frozen=True)
class Budget(FlagRule):
    """Flag exactly the `n` most suspicious labels; of equal scores, those that come first.

    Parameters
    ----------
    n : int
        Labels to flag.

    Notes
    -----
    Nothing is promised about false alarms. ``flag=100`` is short for ``flag=Budget(100)``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from neighboragg.mislabel import Budget, find_mislabeled
    >>> X, y = load_iris(return_X_y=True)
    >>> find_mislabeled(X, y, flag=Budget(5)).n_flagged
    5
    """

    name: ClassVar[str] = "budget"

    n: int

    def __post_init__(self) -> None:
        check_integer(self.n, "n", "Budget", minimum=1)

    def check(self, verified: BoolArray) -> None:
        """Raise if there are fewer labels than are to be flagged."""
        if self.n > (most := int((~verified).sum())):
            raise InvalidParameterError(
                f"Budget({self.n}) asks for more flags than there are labels to flag, {most}.\n"
                f"Hint: Budget({most}) flags them all."
            )

    def flag(self, labels: JudgedLabels) -> Flags:
        """Flag the lowest scores."""
        scores = labels.scores
        rows = np.flatnonzero(~labels.verified)
        order = rows[np.argsort(scores[rows], kind="stable")]
        mask = np.zeros(len(scores), dtype=bool)
        mask[order[: self.n]] = True
        threshold = float(scores[order[self.n]]) if self.n < len(order) else np.inf
        return Flags(mask, threshold, f"As many as asked for; no promise about false alarms. {REVIEW}")
