"""Small statistics on arrays: exact binomial limits, softmax and numbering by appearance."""

from typing import Any

import numpy as np
from scipy.stats import beta

from neighboragg._core.types import Array, FloatArray, IntArray


def lower_limit(successes: Any, trials: Any, tail: float) -> FloatArray:
    """Lower Clopper-Pearson limit: the proportion at which P(at least this many successes) equals `tail`."""
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    # Clipping only affects entries that np.where replaces.
    return np.where(k == 0, 0.0, beta.ppf(tail, np.maximum(k, 1.0), n - k + 1.0))


def upper_limit(successes: Any, trials: Any, tail: float) -> FloatArray:
    """Upper Clopper-Pearson limit: the proportion at which P(at most this many successes) equals `tail`."""
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    return np.where(k == n, 1.0, beta.isf(tail, k + 1.0, np.maximum(n - k, 1.0)))


def softmax(logits: FloatArray) -> FloatArray:
    """Softmax over the last axis."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def by_appearance(values: Array) -> IntArray:
    """Number the values in order of first appearance, so that their names do not matter."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse.ravel()])


def best_other_class(trust: FloatArray, codes: IntArray) -> IntArray:
    """The most trusted class other than the given one."""
    others = trust.copy()
    others[np.arange(len(codes)), codes] = -1.0
    return others.argmax(axis=1)
