"""Validation of parameters, rows, labels, probabilities and outcomes, with errors that name the remedy."""

import re
import warnings
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from neighboragg._core.inputs import as_column, as_plain, expand_vectors, missing_mask, refusal_explained
from neighboragg._core.types import Array, ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

# Squares of larger values overflow double precision in a distance.
LARGEST_VALUE = 1e150
PROBABILITY_TOLERANCE = 1e-3
PLAIN_TYPES = (np.dtype(np.float64), np.dtype(np.float32))
MEMORY_UNITS = {"B": 1, "": 1} | {
    f"{letter}{unit}": base**power
    for power, letter in enumerate("KMGT", start=1)
    for unit, base in (("B", 1000), ("IB", 1024))
}
MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*((?:[kmgt]i?)?b|)", re.IGNORECASE)


def check_integer(value: Any, name: str, owner: str, *, minimum: int) -> int:
    """Return `value` as an int of at least `minimum`."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= minimum:
        return int(value)
    raise InvalidParameterError(
        f"The {name!r} parameter of {owner} must be an int >= {minimum}. Got {value!r} instead."
    )


def check_real(
    value: Any, name: str, owner: str, *, low: float, high: float, closed: str = "neither"
) -> float:
    """Return `value` as a float in an interval; `closed` is "neither", "left", "right" or "both"."""
    left, right = closed in ("left", "both"), closed in ("right", "both")
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
    if (number >= low if left else number > low) and (number <= high if right else number < high):
        return number
    interval = f"{'[' if left else '('}{low:g}, {high:g}{']' if right else ')'}"
    raise InvalidParameterError(
        f"The {name!r} parameter of {owner} must be a number in {interval}. Got {value!r} instead."
    )


def check_memory(value: Any, name: str, owner: str, *, minimum: int) -> int:
    """Return a number of bytes from an int or from text such as "500 MB" or "2GiB"."""
    number = 0
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
    elif isinstance(value, str) and (found := MEMORY.fullmatch(value.strip())):
        number = int(float(found[1]) * MEMORY_UNITS[found[2].upper()])
    if number >= minimum:
        return number
    raise InvalidParameterError(
        f"The {name!r} parameter of {owner} must be at least {-(-minimum // 10**6)} MB, as bytes or as text such as "
        f"'500 MB' or '2 GiB'. Got {value!r} instead."
    )


def check_choice(value: Any, name: str, owner: str, *, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if isinstance(value, str) and value in choices:
        return value
    options = ", ".join(repr(choice) for choice in sorted(choices))
    raise InvalidParameterError(
        f"The {name!r} parameter of {owner} must be one of {options}. Got {value!r} instead."
    )


def check_fitted(estimator: Any, attribute: str) -> None:
    """Raise scikit-learn's NotFittedError unless the estimator has the fitted attribute."""
    if attribute not in vars(estimator):
        check_is_fitted(estimator, attribute)


def check_rows(X: ArrayLike, name: str, owner: str, *, n_features: int | None = None) -> FloatArray:
    """Return `X` as a finite 2-D float array; float32 stays float32, other types become float64."""
    # If the sum of squares is at most LARGEST_VALUE², no value is larger and none is NaN.
    if _is_plain(X) and float(np.vdot(X, X)) <= LARGEST_VALUE**2:
        rows, largest = X, LARGEST_VALUE
    else:
        rows = _as_finite_rows(X, name, owner)
        largest = _largest(rows)
    if n_features is not None and rows.shape[1] != n_features:
        raise InvalidInputError(
            f"{name} passed to {owner} has {rows.shape[1]} features, but {n_features} were seen in fit."
        )
    if largest > LARGEST_VALUE:
        raise InvalidInputError(
            f"{name} passed to {owner} contains the value {largest:.3g}, which is too large for a distance "
            f"(at most {LARGEST_VALUE:g}).\nHint: scale the features, e.g. with StandardScaler."
        )
    return rows


def _as_finite_rows(X: Any, name: str, owner: str) -> FloatArray:
    """Convert anything that represents rows of finite numbers."""
    if sparse.issparse(X):
        raise InvalidInputError(
            f"{name} passed to {owner} is a sparse matrix, but distances need dense rows.\n"
            "Hint: reduce it first, e.g. TruncatedSVD(100).fit_transform(X), or use TrustedClassifier, "
            "which reduces sparse input itself."
        )
    X = expand_vectors(as_plain(X, name, owner), name, owner)
    hint = "distances need numbers; convert any table with neighboragg.features.TabularFeatures().fit_transform(X)."
    with refusal_explained(X, name, owner, hint):
        return check_array(
            X,
            dtype=[np.float64, np.float32],
            order="C",
            input_name=name,
            estimator=owner,
            ensure_min_samples=0,
        )


def _is_plain(X: Any) -> TypeGuard[FloatArray]:
    """Whether scikit-learn would return this array unchanged, provided that its values are finite."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.shape[1] > 0
        and X.dtype in PLAIN_TYPES
        and X.flags.c_contiguous
    )


def _largest(rows: FloatArray) -> float:
    """Largest magnitude, or NaN if any value is NaN."""
    return float(max(rows.max(initial=0.0), -rows.min(initial=0.0)))


def check_same_length(first: Any, first_name: str, second: Any, second_name: str, owner: str) -> None:
    """Raise unless both have the same number of rows."""
    if len(first) != len(second):
        raise InvalidInputError(
            f"{first_name} and {second_name} passed to {owner} must have the same number of rows. "
            f"Got {len(first)} and {len(second)}."
        )


def check_row_values(values: ArrayLike, name: str, owner: str, *, n_rows: int) -> Array:
    """One value for each row, such as its group."""
    found = np.asarray(values)
    if found.shape != (n_rows,):
        raise InvalidInputError(
            f"{name} passed to {owner} must have one value for each row, shape ({n_rows},). Got {found.shape}."
        )
    return found


def check_same_kind(labels: Array, classes: Array, name: str, owner: str) -> None:
    """Raise if labels are strings and classes are numbers, or vice versa."""
    if (labels.dtype.kind in "US") != (classes.dtype.kind in "US") and labels.dtype.kind != "O":
        raise InvalidInputError(
            f"{name} passed to {owner} has type {labels.dtype}, but the classes have type {classes.dtype}, "
            "so no label can equal a prediction.\nHint: pass labels of the same type as in fit."
        )


def check_scores(scores: ArrayLike, name: str, owner: str, *, minimum: int = 1) -> FloatArray:
    """Return a 1-D float64 array without NaN; infinities are allowed because they have a rank."""
    values = np.asarray(as_column(scores, name, owner), dtype=np.float64)
    if values.ndim != 1:
        raise InvalidInputError(
            f"{name} passed to {owner} must be one-dimensional, one value per row. Got shape {values.shape}."
        )
    if len(values) < minimum:
        raise InvalidInputError(f"{name} passed to {owner} is empty; at least one value is needed.")
    if (missing := np.isnan(values)).any():
        raise InvalidInputError(
            f"{name} passed to {owner} contains NaN in {int(missing.sum())} of {len(values)} rows, first at "
            f"position {int(missing.argmax())}.\nHint: drop the rows without a score."
        )
    return values


def check_labels(y: ArrayLike, name: str, owner: str) -> Array:
    """Return class labels as a 1-D array."""
    labels = column_or_1d(as_column(y, name, owner), warn=True)
    if labels.dtype.kind == "O" and (missing := missing_mask(labels)).any():
        raise InvalidInputError(
            f"{name} passed to {owner} contains missing labels, first in row {int(missing.argmax())}.\n"
            "Hint: drop the rows without a label."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InvalidInputError(
            f"{name} passed to {owner} contains NaN or infinity.\nHint: drop the rows without a label."
        )
    with warnings.catch_warnings():
        # A batch to score or a small validation set may well have few rows and many classes.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        check_classification_targets(labels)
    return labels


def encode_labels(labels: Array, classes: Array, name: str, owner: str) -> IntArray:
    """Return the position of each label in the sorted `classes`."""
    kinds = {labels.dtype.kind, classes.dtype.kind}
    if len(labels) and len(kinds) > 1 and kinds & {*"OUS"}:
        # Numbers and strings cannot be compared, so searchsorted would fail.
        lookup = {label: i for i, label in enumerate(classes.tolist())}
        codes = np.array([lookup.get(label, -1) for label in labels.tolist()], dtype=np.intp)
    else:
        if kinds == {"i", "u"} and (labels >= 0).all():
            labels = labels.astype(classes.dtype)  # a common type would be float and lose digits
        codes = classes.searchsorted(labels)
        if (known := classes.take(codes, mode="clip") == labels).all():
            return codes
        codes[~known] = -1
    if (codes < 0).any():
        unseen = np.unique(labels[codes < 0]).tolist()
        shown = ", ".join(repr(label) for label in unseen[:5]) + (", …" if len(unseen) > 5 else "")
        raise InvalidInputError(
            f"{name} passed to {owner} contains labels that are not among the {len(classes)} known classes: "
            f"{shown}.\nHint: known classes are {_preview(classes)}."
        )
    return codes


def check_proba(
    proba: ArrayLike, name: str, owner: str, *, n_classes: int, n_rows: int | None = None
) -> FloatArray:
    """Return probabilities as a float64 array of shape (n, n_classes), with rows normalized to sum to one."""
    if _are_plain_probabilities(proba) and proba.shape == (
        len(proba) if n_rows is None else n_rows,
        n_classes,
    ):
        totals = proba.sum(axis=1, keepdims=True)
        if _are_near_one(totals):
            return proba / totals
    given = as_plain(proba, name, owner)
    values = check_array(given, dtype=np.float64, input_name=name, estimator=owner, ensure_min_samples=0)
    if values.shape[1] != n_classes:
        raise InvalidInputError(
            f"{name} passed to {owner} has {values.shape[1]} columns, but there are {n_classes} classes.\n"
            "Hint: columns must follow classes_, one per class, as predict_proba returns them."
        )
    if n_rows is not None and len(values) != n_rows:
        raise InvalidInputError(f"{name} passed to {owner} has {len(values)} rows, but X has {n_rows}.")
    if not len(values):
        return values
    if (smallest := float(values.min())) < -PROBABILITY_TOLERANCE:
        raise InvalidInputError(
            f"{name} passed to {owner} contains the negative value {smallest:.6g}.\n"
            "Hint: pass probabilities, not logits: scipy.special.softmax(logits, axis=1)."
        )
    if smallest < 0:
        values = np.maximum(values, 0.0)
    totals = values.sum(axis=1)
    off = np.abs(totals - 1.0)
    if off.max() > PROBABILITY_TOLERANCE:
        worst = off.argmax()
        raise InvalidInputError(
            f"Rows of {name} passed to {owner} must sum to 1. Row {worst} sums to {totals[worst]:.6g}.\n"
            "Hint: pass probabilities, not logits or votes."
        )
    return values / totals[:, None]


def _are_plain_probabilities(values: Any) -> TypeGuard[FloatArray]:
    """Whether this is a nonempty float64 array without negative values or NaN."""
    return (
        _is_plain(values) and values.dtype == PLAIN_TYPES[0] and len(values) > 0 and bool(values.min() >= 0.0)
    )


def _are_near_one(totals: FloatArray) -> bool:
    low, high = totals.min(), totals.max()
    return bool(low >= 1.0 - PROBABILITY_TOLERANCE and high <= 1.0 + PROBABILITY_TOLERANCE)


def _preview(classes: Array) -> str:
    shown = ", ".join(repr(label) for label in classes[:5].tolist())
    return shown + (", …" if len(classes) > 5 else "")


def check_outcomes(
    correct: ArrayLike, trust: ArrayLike, owner: str, *, probability: bool = False, minimum: int = 1
) -> tuple[BoolArray, NDArray[np.float64]]:
    """Return both as 1-D arrays of equal length; with `probability`, trust must be in [0, 1]."""
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
    """Return scores as a 1-D float64 array without NaN; infinities are allowed because they have a rank."""
    values = _one_dimensional(trust, name, owner, minimum)
    if values.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"{name} passed to {owner} must be numbers. Got dtype {values.dtype}.\n"
            "Hint: pass one float per row, higher for more trusted."
        )
    # Adding zero turns -0.0 into 0.0, so equal scores have equal bits.
    scores: NDArray[np.float64] = values.astype(np.float64) + 0.0
    if (missing := np.isnan(scores)).any():
        raise InvalidInputError(
            f"{name} passed to {owner} contains NaN, first in row {int(np.argmax(missing))}.\n"
            "Hint: drop rows without a score from both correct and trust."
        )
    return scores


def check_probability(trust: NDArray[np.float64], owner: str) -> None:
    """Raise unless every score is in [0, 1]."""
    if (outside := (trust < 0.0) | (trust > 1.0)).any():
        row = int(np.argmax(outside))
        raise InvalidInputError(
            f"trust passed to {owner} must be probabilities in [0, 1]. Row {row} is {trust[row]:.6g}.\n"
            "Hint: calibrate the score first, or use a metric that depends only on its order, e.g. auroc."
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
            f"{int(missing.argmax())}.\nHint: drop these rows from both correct and trust."
        )
    return array
