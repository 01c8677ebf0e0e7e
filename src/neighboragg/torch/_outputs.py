"""What a network gives back, as probabilities with a column for each class."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from neighboragg._typing import Array, FloatArray
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

__all__ = ["OUTPUTS", "check_targets", "logits_of", "to_proba"]

OUTPUTS = ("logits", "probabilities", "log_probabilities")
# Probabilities in half precision sum to one no better than this.
SUM_TOLERANCE = 1e-2


def logits_of(output: Any, n_rows: int) -> torch.Tensor:
    """The tensor with a row for each row and a column for each class, in whatever it came."""
    found = output
    if hasattr(found, "logits"):
        found = found.logits
    elif isinstance(found, Mapping) and "logits" in found:
        found = found["logits"]
    elif isinstance(found, tuple | list) and len(found):
        found = found[0]
    if not isinstance(found, torch.Tensor):
        raise InvalidInputError(
            f"The network gives a {type(output).__name__}, in which no tensor of logits was found.\n"
            "Hint: wrap it in a module that returns a tensor of shape (n, n_classes), a tuple that begins with it, or "
            "an object with .logits."
        )
    if found.ndim != 2 or len(found) != n_rows or found.shape[1] < 2:
        raise InvalidInputError(
            f"The network gives a tensor of shape {tuple(found.shape)} for a batch of {n_rows} rows; (n, n_classes) "
            "with at least two classes is needed.\n"
            "Hint: wrap it in a module that gives a row for each row, e.g. torch.cat([-z, z], 1) / 2 for one logit z."
        )
    return found.float()


def to_proba(output: FloatArray, kind: str) -> FloatArray:
    """Probabilities from what the network gives."""
    if kind not in OUTPUTS:
        raise InvalidParameterError(
            f"The 'output' parameter must be one of {', '.join(map(repr, OUTPUTS))}. Got {kind!r} instead."
        )
    if not np.isfinite(output).all() and (kind != "log_probabilities" or np.isnan(output).any()):
        row = int(np.flatnonzero(~np.isfinite(output).all(axis=1))[0])
        raise InvalidInputError(
            f"The network's output for row {row} is not finite: {output[row].tolist()[:5]}.\n"
            "Hint: look for missing values or overflow in its inputs."
        )
    values = output.astype(np.float64)
    if kind == "logits":
        if len(values) and _sums_to_one(values):
            raise InvalidInputError(
                "The network's outputs look like probabilities: none is negative, and each row sums to one.\n"
                "Hint: pass output='probabilities', or leave out the softmax at its end."
            )
        values -= values.max(axis=1, keepdims=True)
        values = np.exp(values)
        return values / values.sum(axis=1, keepdims=True)
    proba = np.exp(values) if kind == "log_probabilities" else values
    if len(proba) and not _sums_to_one(proba):
        row = int(np.argmax(np.abs(proba.sum(axis=1) - 1)))
        raise InvalidInputError(
            f"With output={kind!r} each row must sum to one, but row {row} sums to {proba[row].sum():.4g}.\n"
            "Hint: output='logits', if the network ends without a softmax."
        )
    return proba / proba.sum(axis=1, keepdims=True)


def check_targets(labels: Array, n_classes: int) -> Array:
    """Labels as the network's column numbers."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise InvalidInputError(
            f"Labels must be one whole number per row. Got an array of {labels.dtype} with shape {labels.shape}.\n"
            "Hint: labels that come with a batch are the numbers of the network's outputs, from 0."
        )
    outside = np.flatnonzero((labels < 0) | (labels >= n_classes))
    if len(outside):
        raise InvalidInputError(
            f"Label {int(labels[outside[0]])} of row {int(outside[0])} is outside 0 to {n_classes - 1}: the network "
            f"has {n_classes} outputs.\nHint: number the classes from 0, or drop rows without a class."
        )
    return labels.astype(np.int64)


def _sums_to_one(values: FloatArray) -> bool:
    return bool((values >= 0).all() and (np.abs(values.sum(axis=1) - 1) < SUM_TOLERANCE).all())
