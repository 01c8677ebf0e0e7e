"""Small statistics on arrays: exact binomial limits, softmax, groups in order of appearance."""

from typing import Any

import numpy as np
from scipy.stats import beta

from neighboragg._core.types import Array, FloatArray, IntArray


def lower_limit(successes: Any, trials: Any, tail: float) -> FloatArray:
    """The proportion under which so many successes, or more, have the probability `tail`; 0 without any."""
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    # The clipped parameter belongs to an end that is replaced.
    return np.where(k == 0, 0.0, beta.ppf(tail, np.maximum(k, 1.0), n - k + 1.0))


def upper_limit(successes: Any, trials: Any, tail: float) -> FloatArray:
    """The proportion under which so few successes, or fewer, have the probability `tail`; 1 if all are."""
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    return np.where(k == n, 1.0, beta.isf(tail, k + 1.0, np.maximum(n - k, 1.0)))


def softmax(logits: FloatArray) -> FloatArray:
    """Softmax over the last axis."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def by_appearance(values: Array) -> IntArray:
    """Values numbered in the order in which they first appear, so that it does not matter what they are called."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse.ravel()])


def best_other_class(trust: FloatArray, codes: IntArray) -> IntArray:
    """The most trusted class but the given one."""
    others = trust.copy()
    others[np.arange(len(codes)), codes] = -1.0
    return others.argmax(axis=1)
