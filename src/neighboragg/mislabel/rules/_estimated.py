"""Flag as many labels as seem to be wrong."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from neighboragg.mislabel.rules._base import REVIEW, FlagRule, Flags, JudgedLabels

__all__ = ["Estimated"]


@dataclass(frozen=True)
class Estimated(FlagRule):
    """Flag as many of the most suspicious labels as are estimated to be wrong; the default.

    Notes
    -----
    Where errors look random, the number is that for which the expected F1 of the flags is largest; where they look
    like ambiguity, that of rows whose trust is confident of another class (:func:`confident_count`); and in between a
    mean of the two. Labels that tie at the threshold are not flagged. Nothing is promised about false alarms.
    ``flag="estimated"`` is short for ``flag=Estimated()``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from neighboragg.mislabel import Estimated, find_mislabeled
    >>> X, y = load_iris(return_X_y=True)
    >>> y[7] = 2
    >>> bool(find_mislabeled(X, y, flag=Estimated()).mask[7])
    True
    """

    name: ClassVar[str] = "estimated"

    def flag(self, labels: JudgedLabels) -> Flags:
        """Flag the lowest scores."""
        tested = ~labels.verified
        count = labels.noise.n_to_flag(tested)
        ordered = np.sort(labels.scores[tested])
        threshold = float(ordered[count]) if count < len(ordered) else np.inf
        promise = f"As many as are estimated to be wrong; no promise about false alarms. {REVIEW}"
        return Flags(tested & (labels.scores < threshold), threshold, promise)
