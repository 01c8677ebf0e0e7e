"""Methods that read a network's logits next to its embedding."""

from typing import Any

import numpy as np
from scipy.special import softmax

from neighboragg._core.types import ArrayLike, FloatArray
from neighboragg._pool.evidence import FitData
from neighboragg.exceptions import InvalidInputError
from neighboragg.methods._method import TrustMethod

# Logits and probabilities may come in half precision.
TOLERANCE = 1e-2


class LogitMethod(TrustMethod):
    """A trust method that reads a network's logits next to its embedding."""

    def _check_fit(self, *arguments: Any) -> FitData:
        data = super()._check_fit(*arguments)
        self._check_logits(data.X_val, data.proba_val, "X" if data.shared else "X_val")
        return data

    def _check_query(self, X: ArrayLike, proba: ArrayLike) -> tuple[FloatArray, FloatArray]:
        rows, values = super()._check_query(X, proba)
        self._check_logits(rows, values, "X")
        return rows, values

    def _check_logits(self, X: FloatArray, proba: FloatArray, name: str) -> None:
        owner, n_classes = type(self).__name__, proba.shape[1]
        hint = (
            "\nHint: pass np.hstack([logits, embeddings]), the logits in the order of the probabilities and not "
            "scaled by a temperature."
        )
        if X.shape[1] < n_classes:
            raise InvalidInputError(
                f"{name} passed to {owner} must begin with the logits of {n_classes} classes, but has "
                f"{X.shape[1]} columns.{hint}"
            )
        gaps = np.abs(softmax(logits_of(X, n_classes), axis=1) - proba).max(axis=1, initial=0.0)
        if len(gaps) and gaps.max() > TOLERANCE:
            raise InvalidInputError(
                f"The first {n_classes} columns of {name} passed to {owner} are not the logits of the "
                f"probabilities: in row {int(gaps.argmax())} they differ by {gaps.max():.2g}.{hint}"
            )


def logits_of(X: FloatArray, n_classes: int) -> FloatArray:
    """The logits in front of the embedding, in double precision."""
    return X[:, :n_classes].astype(np.float64)
