"""Small statistics on arrays: exact binomial limits, softmax and numbering by appearance."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln
from scipy.stats import beta, binom

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


# Fewer rows cannot show whether two codings of them are related.
MIN_ROWS_TO_COMPARE = 100
BY_CHANCE = 1e-3


class Agreement(NamedTuple):
    """In how many rows two codings agree, in how many by chance, and an order of codes in which more would."""

    agreeing: int
    by_chance: float
    is_chance: bool
    order: IntArray | None
    """For each code of the second coding, the code of the first that it fits far better; None if it is its own."""
    reordered: int


def agreement(first: IntArray, second: IntArray, n_codes: int) -> Agreement:
    """Compare two codings of the same rows; few rows, or codings that could not show more, are not called chance."""
    n = len(first)
    counts = np.zeros((n_codes, n_codes), dtype=np.int64)
    np.add.at(counts, (first, second), 1)
    of_first, of_second = counts.sum(axis=1), counts.sum(axis=0)
    agreeing = int(np.trace(counts))
    rate = float(of_first @ of_second) / max(n, 1) ** 2
    found = Agreement(agreeing, rate * n, False, None, agreeing)
    if n < MIN_ROWS_TO_COMPARE:
        return found
    rows, columns = linear_sum_assignment(counts, maximize=True)
    order = np.empty(n_codes, dtype=np.intp)
    order[columns] = rows
    moved = order != np.arange(n_codes)
    gained, lost = int(counts[order, np.arange(n_codes)][moved].sum()), int(np.diag(counts)[moved].sum())
    # As many orders were compared as there are.
    log_chance = binom.logsf(gained - 1, gained + lost, 0.5) + gammaln(n_codes + 1)
    if gained >= 2 * lost and log_chance < np.log(BY_CHANCE):
        found = found._replace(order=order, reordered=agreeing + gained - lost)
    most = int(np.minimum(of_first, of_second).sum())
    could_show = binom.sf(most - 1, n, rate) < BY_CHANCE
    return found._replace(is_chance=bool(could_show and binom.sf(agreeing - 1, n, rate) >= BY_CHANCE))
