"""Flag so many labels that at most a given share of the flags is false, on average."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from neighboragg._typing import BoolArray, FloatArray
from neighboragg._validation import check_real
from neighboragg.exceptions import InvalidInputError
from neighboragg.mislabel._conformal import benjamini_hochberg, conformal_p_values
from neighboragg.mislabel.rules._base import FlagRule, Flags, JudgedLabels

__all__ = ["FDR"]


@dataclass(frozen=True)
class FDR(FlagRule):
    """Keep the expected share of false alarms among the flags, the false discovery rate, below `level`.

    Parameters
    ----------
    level : float, default=0.1
        Expected share of false alarms among the flags, in ``(0, 1)``.

    Notes
    -----
    Needs `verified` rows, a random sample of the right labels. They take part in the fit like any other, which
    makes their scores exchangeable with those of other right labels; conformal p-values against them and the
    step-up rule of Benjamini and Hochberg do the rest (:func:`conformal_p_values`, :func:`benjamini_hochberg`).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from neighboragg.mislabel import FDR, find_mislabeled
    >>> X, y = load_digits(return_X_y=True)
    >>> X, y = X[:400] / 16, y[:400]
    >>> y[:20] = (y[:20] + 1) % 10
    >>> verified = np.arange(200, 400)
    >>> result = find_mislabeled(X, y, features="passthrough", flag=FDR(0.2), verified=verified, own_models=False)
    >>> result.n_flagged, int(result.mask[:20].sum())
    (25, 20)
    """

    name: ClassVar[str] = "FDR"

    level: float = 0.1

    def __post_init__(self) -> None:
        check_real(self.level, "level", "FDR", low=0, high=1)

    def check(self, verified: BoolArray) -> None:
        """Raise if there are no verified rows."""
        if not verified.any():
            raise InvalidInputError(
                "The rule FDR needs rows whose labels have been verified.\n"
                "Hint: pass verified=rows, a random sample of right labels, or choose another rule."
            )

    def flag(self, labels: JudgedLabels) -> Flags:
        """Flag the discoveries among the labels that are not verified."""
        tested, sample = labels.scores[~labels.verified], np.sort(labels.scores[labels.verified])
        p_values = conformal_p_values(tested, sample)
        found = benjamini_hochberg(p_values, q=self.level)
        mask = np.zeros(len(labels.scores), dtype=bool)
        mask[~labels.verified] = found
        m = len(sample)
        least = math.ceil(len(tested) / (self.level * (m + 1)))
        promise = (
            f"On average at most {self.level:.3g} of the flags are false alarms, if the {m:,} verified rows are a "
            f"random sample of the right labels. So few verified rows can only find {least:,} or more at once."
        )
        if not found.any():
            return Flags(mask, -np.inf, promise)
        # The largest flagged p-value has this many verified scores at or below it; the next one is above.
        passed = round(float(p_values[found].max()) * (m + 1)) - 1
        return Flags(mask, float(sample[passed]) if passed < m else np.inf, promise)

    def flag_new(self, scores: FloatArray, threshold: float, verified_scores: FloatArray) -> BoolArray:
        """Flag the discoveries among these labels alone."""
        return benjamini_hochberg(conformal_p_values(scores, verified_scores), q=self.level)
