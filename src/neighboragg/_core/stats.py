"""Small statistics on arrays: exact binomial limits and tests, softmax, groups in order of appearance."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln
from scipy.stats import beta, binom

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


@dataclass(frozen=True)
class Agreement:
    """How many of `n_rows` predictions agree with the labels, and whether chance explains it."""

    n_rows: int
    n_agree: int
    by_chance: bool
    #: For each column of the probabilities the class under which far more rows agree; None if there is no such order.
    order: IntArray | None
    n_agree_in_order: int


def agreement_with_labels(proba: FloatArray, codes: IntArray, tail: float = 1e-3) -> Agreement:
    """Compare the most probable classes with labels.

    Agreement is by chance if independent labels agree as often with a probability above `tail`, and predictions half
    way from chance to perfect would agree as seldom with a probability below it: few rows prove nothing. Predictions
    of the most frequent class alone are not by chance, as a class may be too rare ever to be predicted.
    """
    n, n_classes = proba.shape
    predicted = proba.argmax(axis=1)
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (predicted, codes), 1)
    n_agree = int(np.trace(counts))
    plain = Agreement(n, n_agree, False, None, n_agree)
    by_class = counts.sum(axis=0)
    only_majority = len(np.unique(predicted)) < 2 and by_class.max(initial=0) == n_agree
    if np.count_nonzero(by_class) < 2 or only_majority:
        return plain
    chance = _chance_agreement(counts)
    if binom.sf(n_agree - 1, n, chance) <= tail or binom.cdf(n_agree, n, (1 + chance) / 2) >= tail:
        return plain
    order = linear_sum_assignment(-counts - 1e-6 * np.eye(n_classes))[
        1
    ]  # classes stay where nothing moves them
    n_in_order = int(counts[np.arange(n_classes), order].sum())
    # The best of all orders agrees well by chance too, so the bound is over all of them.
    log_p = binom.logsf(n_in_order - 1, n, _chance_agreement(counts[np.argsort(order)])) + gammaln(
        n_classes + 1
    )
    far_better = log_p < np.log(tail)
    return Agreement(n, n_agree, True, order if far_better else None, n_in_order if far_better else n_agree)


def _chance_agreement(counts: FloatArray) -> float:
    """Share of rows that agree if predictions (rows of the table) and labels (columns) are independent."""
    return float((counts.sum(axis=1) * counts.sum(axis=0)).sum() / counts.sum() ** 2)
