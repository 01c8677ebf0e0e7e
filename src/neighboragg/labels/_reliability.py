"""From trust vectors and given labels to one score per label, and to the label that fits better."""

import numpy as np

from neighboragg._core.checks import check_choice
from neighboragg._core.stats import best_other_class
from neighboragg._core.types import ArrayLike, FloatArray, IntArray
from neighboragg.exceptions import InvalidInputError
from neighboragg.labels._noise import check_trust

RELIABILITIES = ("difference", "margin", "paper", "trust")


def label_reliability(
    trust: ArrayLike, y_codes: ArrayLike, *, kind: str = "margin", predicted: ArrayLike | None = None
) -> FloatArray:
    """Score every given label from its trust vector; low is suspicious."""
    owner = "label_reliability"
    check_choice(kind, "kind", owner, choices=RELIABILITIES)
    values, codes = check_trust(trust, y_codes, "trust", owner)
    if values.shape[1] < 2:
        raise InvalidInputError(
            f"trust passed to {owner} has 1 column; a label can be doubted only if there are two classes or more."
        )
    labels = None if predicted is None else check_trust(values, predicted, "trust", owner)[1]
    return reliability_scores(values, codes, kind, labels)


def reliability_scores(
    trust: FloatArray, codes: IntArray, kind: str, predicted: IntArray | None
) -> FloatArray:
    """The score of :func:`label_reliability` for checked arrays."""
    given = trust[np.arange(len(codes)), codes]
    if kind == "trust":
        return given
    if kind == "paper":
        agrees = (trust.argmax(axis=1) if predicted is None else predicted) == codes
        return np.where(agrees, given, -given)
    other = trust[np.arange(len(codes)), best_other_class(trust, codes)]
    if kind == "difference":
        return given - other
    tiny = np.finfo(np.float64).tiny
    return np.log(np.maximum(given, tiny)) - np.log(np.maximum(other, tiny))
