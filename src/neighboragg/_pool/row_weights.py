"""Validation rows are a sample: weights under which they are neither easier nor harder than all labeled rows."""

import numpy as np
from scipy.special import chdtrc

from neighboragg._core.types import FloatArray, IntArray
from neighboragg._pool.evidence import FitData
from neighboragg.search import ClasswiseNeighbors

# Rows that each stratum is thought to have beside its own, so that the weight of a handful of rows stays near one.
EXTRA_ROWS = 10
# Rows drawn like the others are so unlike them less often than this. A network separates its training rows better than
# others, so that it takes less to doubt that neighbors agree with both as often.
CLASSES_BY_CHANCE, AGREEMENT_BY_CHANCE = 1e-3, 0.02
# Neighbors asked whether they are of a row's own class, and levels of how many are.
N_NEIGHBORS, N_LEVELS = 20, 4
# Training rows looked at for each validation row: more say little more about all rows. So many validation rows are
# hardly easier or harder than others, and not worth a further search.
OTHERS_PER_ROW, ENOUGH_ROWS = 4, 5000


def sample_weights(
    data: FitData, judged: IntArray, columns: slice, *, metric: str, n_jobs: int | None, seed: int
) -> FloatArray:
    """How much each validation row counts, given what is known about the training rows.

    Parameters
    ----------
    data : FitData
    judged : ndarray of int
        Positions of the validation rows that count.
    columns : slice
        Columns in which neighbors are looked for.
    metric, n_jobs
        As in :class:`~neighboragg.search.ClasswiseNeighbors`.
    seed : int
        Draws the training rows that are looked at, where there are more than four for each of these rows.

    Returns
    -------
    weights : ndarray of shape (len(judged),)
        With a mean of one; all one where training rows vouch for themselves.

    Notes
    -----
    How often a classifier is right depends on the class, and on whether a row lies among others of its class. A few
    hundred validation rows have too many of one kind and too few of another by chance, and trust learned from them
    would be too high or too low in the mean; how many there are among all rows is known much better. First classes get
    their shares among all labels, then rows with few, some, many or nearly all of their 20 nearest neighbors in their
    own class get theirs. This is post-stratification, as in surveys; no classifier has a say in it.
    """
    if data.shared:
        return np.ones(len(judged))
    all_labels = data.codes if data.streamed is None else data.streamed.codes
    everybody = np.bincount(np.concatenate([all_labels, data.codes_val]), minlength=data.n_classes)
    weights = share_weights(data.codes_val[judged], everybody, by_chance=CLASSES_BY_CHANCE)
    # A sample of training rows is drawn by class, and validation rows are not.
    if len(all_labels) > len(data.codes) or len(judged) >= ENOUGH_ROWS:
        return weights
    others = np.random.default_rng(seed).permutation(len(data.codes))[: OTHERS_PER_ROW * len(judged)]
    others.sort()
    levels = _agreement(
        np.concatenate([data.X[others, columns], data.X_val[judged, columns]]),
        np.concatenate([data.codes[others], data.codes_val[judged]]),
        ClasswiseNeighbors(N_NEIGHBORS, metric=metric, n_jobs=n_jobs),
    )
    everybody = np.bincount(levels, minlength=N_LEVELS)
    return share_weights(levels[len(others) :], everybody, by_chance=AGREEMENT_BY_CHANCE, given=weights)


def share_weights(
    strata: IntArray, everybody: IntArray, *, by_chance: float, given: FloatArray | None = None
) -> FloatArray:
    """Weights of rows under which their strata have nearly the shares that they have among all rows.

    Parameters
    ----------
    strata : ndarray of shape (n,)
        Stratum of each row.
    everybody : ndarray of int of shape (n_strata,)
        Number of rows in each stratum, of these and all others.
    by_chance : float
        If rows were drawn like the others, shares as different as theirs would have to be more probable than this.
    given : ndarray of shape (n,), default=None
        Weights that the rows have already, all one by default; they are changed no more than it takes.

    Returns
    -------
    weights : ndarray of shape (n,)
        With a mean of one. As given where strata differ by more than chance: such rows were not drawn as the others
        were, and then it is theirs that count.
    """
    n, n_all = len(strata), int(everybody.sum())
    given = np.ones(n) if given is None else given
    counts, expected = np.bincount(strata, given, minlength=len(everybody)), n * everybody / max(n_all, 1)
    possible = expected > 0
    if n_all == n or possible.sum() < 2:
        return given
    distance = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    # These rows are among all, so that they are nearer to them than to the others.
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
