"""Checks of `correct` and `trust`: whether each prediction was correct, and how much it was trusted."""

import numpy as np
from numpy.typing import NDArray

from neighboragg._inputs import as_column, missing_mask
from neighboragg._typing import Array, ArrayLike, BoolArray
from neighboragg._validation import check_same_length
from neighboragg.exceptions import InvalidInputError

__all__ = ["check_correct", "check_outcomes", "check_probability", "check_trust"]


def check_outcomes(
    correct: ArrayLike, trust: ArrayLike, owner: str, *, probability: bool = False, minimum: int = 1
) -> tuple[BoolArray, NDArray[np.float64]]:
    """Return both as 1-D arrays of one length; `probability` also asks for trust in [0, 1]."""
    outcomes = check_correct(correct, "correct", owner, minimum)
    scores = check_trust(trust, "trust", owner, minimum)
    check_same_length(outcomes, "correct", scores, "trust", owner)
    if probability:
        check_probability(scores, owner)
    return outcomes, scores


def check_correct(correct: ArrayLike, name: str, owner: str, minimum: int = 1) -> BoolArray:
    """Return outcomes as a 1-D boolean array of at least `minimum` rows."""
    values = _one_dimensional(correct, name, owner, minimum)
    if values.dtype.kind == "b":
        return values
    if values.dtype.kind not in "iu":
        raise InvalidInputError(
            f"{name} passed to {owner} must be boolean, or the integers 0 and 1. Got dtype {values.dtype}.\n"
            "Hint: pass y_pred == y_true."
        )
    if (other := (values != 0) & (values != 1)).any():
        row = int(np.argmax(other))
        raise InvalidInputError(
            f"{name} passed to {owner} must be boolean, or the integers 0 and 1. "
            f"Row {row} is {values[row]}.\nHint: pass y_pred == y_true."
        )
    return values.astype(np.bool_)


def check_trust(trust: ArrayLike, name: str, owner: str, minimum: int = 1) -> NDArray[np.float64]:
    """Return scores as a 1-D float64 array without NaN; infinities have a rank and stay."""
    values = _one_dimensional(trust, name, owner, minimum)
    if values.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"{name} passed to {owner} must be numbers. Got dtype {values.dtype}.\n"
            "Hint: pass one float per row, higher for more trusted."
        )
    # Adding zero turns -0.0 into 0.0, so that equal scores are also equal bits.
    scores: NDArray[np.float64] = values.astype(np.float64) + 0.0
    if (missing := np.isnan(scores)).any():
        raise InvalidInputError(
            f"{name} passed to {owner} contains NaN, first in row {int(np.argmax(missing))}.\n"
            "Hint: a row without a score has no rank; drop it from correct and trust alike."
        )
    return scores


def check_probability(trust: NDArray[np.float64], owner: str) -> None:
    """Raise unless every score lies in [0, 1]."""
    if (outside := (trust < 0.0) | (trust > 1.0)).any():
        row = int(np.argmax(outside))
        raise InvalidInputError(
            f"trust passed to {owner} must be probabilities in [0, 1]. Row {row} is {trust[row]:.6g}.\n"
            "Hint: calibrate the score first, or use a metric of its order alone, e.g. auroc."
        )


def _one_dimensional(values: ArrayLike, name: str, owner: str, minimum: int) -> Array:
    array = np.asarray(as_column(values, name, owner))
    if array.ndim != 1:
        raise InvalidInputError(
            f"{name} passed to {owner} must be one-dimensional, one entry per row. Got shape {array.shape}."
        )
    if len(array) < minimum:
        raise InvalidInputError(f"{name} passed to {owner} is empty; at least one row is needed.")
    if array.dtype.kind == "O" and (missing := missing_mask(array)).any():
        raise InvalidInputError(
            f"{name} passed to {owner} is missing in {int(missing.sum())} of {len(array)} rows, first in row "
            f"{int(missing.argmax())}.\nHint: drop these rows from correct and trust alike."
        )
    return array
