"""The validation rows that a pool is fitted on, weighted to be neither easier nor harder than all labeled rows."""

import numpy as np
from scipy.special import chdtrc

from neighboragg._core.types import FloatArray, IntArray
from neighboragg._pool.evidence import FitData
from neighboragg.search import ClasswiseNeighbors, Exact

# Validation rows that a pool is fitted on, and classes times rows: with more than 300 classes, fewer rows.
MAX_POOL_ROWS, MAX_POOL_VALUES = 5000, 1_500_000
# Rows added to each stratum, so the weight of a handful of rows stays near one.
EXTRA_ROWS = 10
# Probability that rows drawn like the others differ this much. A network separates its training rows better than
# others, so that it takes less to doubt that neighbors agree with both as often.
CLASSES_BY_CHANCE, AGREEMENT_BY_CHANCE = 1e-3, 0.02
# Neighbors that are compared with a row's own class, and levels of how many agree.
N_NEIGHBORS, N_LEVELS = 20, 4
# Training rows looked at for each validation row: more say little more about all rows. So many validation rows are
# hardly easier or harder than others, and not worth a further search.
OTHERS_PER_ROW, ENOUGH_ROWS = 4, 5000


def choose_pool_rows(data: FitData, mapped: bool, *, limited: bool, seed: int) -> IntArray:
    """Validation rows to fit the aggregator on: half of shared rows if a map is learned from the others."""
    n = most = len(data.X_val)
    if data.shared and mapped and n >= 4:
        most = n // 2
    if limited:
        most = min(most, MAX_POOL_ROWS, max(1, MAX_POOL_VALUES // data.n_classes))
    return np.sort(np.random.default_rng(seed).permutation(n)[:most])


def sample_weights(
    data: FitData, pool_rows: IntArray, columns: slice, *, metric: str, n_jobs: int | None, seed: int
) -> FloatArray:
    """The weight of each validation row, given the training rows."""
    if data.shared:
        return np.ones(len(pool_rows))
    all_labels = data.codes if data.streamed is None else data.streamed.codes
    everybody = np.bincount(np.concatenate([all_labels, data.codes_val]), minlength=data.n_classes)
    weights = share_weights(data.codes_val[pool_rows], everybody, by_chance=CLASSES_BY_CHANCE)
    # A sample of training rows is drawn by class, and validation rows are not.
    # Neighbors in a row's own group would agree too often.
    if data.is_separate or len(all_labels) > len(data.codes) or len(pool_rows) >= ENOUGH_ROWS:
        return weights
    others = np.random.default_rng(seed).permutation(len(data.codes))[: OTHERS_PER_ROW * len(pool_rows)]
    others.sort()
    levels = _agreement(
        np.concatenate([data.X[others, columns], data.X_val[pool_rows, columns]]),
        np.concatenate([data.codes[others], data.codes_val[pool_rows]]),
        ClasswiseNeighbors(N_NEIGHBORS, search=Exact(metric), n_jobs=n_jobs),
    )
    everybody = np.bincount(levels, minlength=N_LEVELS)
    return share_weights(levels[len(others) :], everybody, by_chance=AGREEMENT_BY_CHANCE, given=weights)


def share_weights(
    strata: IntArray, everybody: IntArray, *, by_chance: float, given: FloatArray | None = None
) -> FloatArray:
    """Weights of rows under which their strata have nearly the shares that they have among all rows."""
    n, n_all = len(strata), int(everybody.sum())
    given = np.ones(n) if given is None else given
    counts, expected = np.bincount(strata, given, minlength=len(everybody)), n * everybody / max(n_all, 1)
    possible = expected > 0
    if n_all == n or possible.sum() < 2:
        return given
    distance = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    # These rows are included in all rows, so they are closer to all than to the others.
    if chdtrc(possible.sum() - 1, distance * (n_all - 1) / (n_all - n)) < by_chance:
        return given
    weights = given * ((expected + EXTRA_ROWS) / (counts + EXTRA_ROWS))[strata]
    return np.asarray(weights / weights.mean())


def _agreement(X: FloatArray, codes: IntArray, index: ClasswiseNeighbors) -> IntArray:
    """Level of how many of the nearest of the other rows are of the row's own class."""
    index.fit(X, np.zeros(len(X), dtype=np.intp))  # all as one class
    found = index.kneighbors(X, exclude=np.arange(len(X)))[1][:, 0]
    exists = found >= 0
    agrees = exists & (codes[found] == codes[:, None])
    share = agrees.sum(axis=1) / np.maximum(exists.sum(axis=1), 1)
    return np.minimum((share * N_LEVELS).astype(np.intp), N_LEVELS - 1)
