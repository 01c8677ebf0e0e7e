"""What a fitted detector finds about the labels of further rows."""

from dataclasses import dataclass

import numpy as np

from neighboragg._typing import Array, BoolArray, FloatArray, IntArray
from neighboragg.mislabel._reliability import best_other_class

__all__ = ["NewLabels", "new_labels"]


@dataclass(frozen=True, eq=False)
class NewLabels:
    """Labels of new rows, judged.

    Parameters
    ----------
    mask : ndarray of bool of shape (m,)
        Which are flagged as wrong.
    scores : ndarray of shape (m,)
        Low is suspicious.
    given, suggested : ndarray of shape (m,)
        The labels, and the most trusted other class.
    label_trust : ndarray of shape (m,)
        Trust in the given labels.
    """

    mask: BoolArray
    scores: FloatArray
    given: Array
    suggested: Array
    label_trust: FloatArray


def new_labels(
    classes: Array, codes: IntArray, trust: FloatArray, scores: FloatArray, mask: BoolArray
) -> NewLabels:
    """From the trust in every class, and the labels as positions in the classes."""
    suggested = classes[best_other_class(trust, codes)]
    return NewLabels(mask, scores, classes[codes], suggested, trust[np.arange(len(codes)), codes])
