"""Rows in groups: validation rows from separate groups, and signs of groups that were not passed."""

import warnings
from dataclasses import replace

import numpy as np
from scipy.stats import binom

from neighboragg._core.types import FloatArray, IntArray
from neighboragg._pool.evidence import FitData
from neighboragg.exceptions import InvalidInputError, TrustWarning
from neighboragg.search import ClasswiseNeighbors

# Share of the groups that validation rows are taken from, where all rows have probabilities.
VALIDATION_SHARE = 0.3
# Validation rows that are enough to see whether they come in groups.
MAX_COMPARED = 1000
# Neighbors often are neighbors of each other, so a share varies more than that of independent rows; and groups that
# matter show more clearly than by chance.
LEVEL, DEPENDENCE, MIN_EXCESS = 1e-4, 2.0, 0.15


def without_own_groups(
    data: FitData, columns: slice, *, indexes_validation: bool, owner: str, n_jobs: int | None, seed: int
) -> tuple[FitData, IntArray | None]:
    """Validation rows of other groups than the training rows, if groups are known or look likely."""
    if data.groups is not None:
        if data.streamed is not None:
            raise InvalidInputError(
                "Groups cannot be combined with Streamed.\nHint: search=None, or no groups."
            )
        return separate_groups(data, *data.groups, seed)
    if not indexes_validation or data.shared:
        return data, None
    share, is_grouped = share_among_themselves(data, columns, n_jobs=n_jobs, seed=seed)
    if not is_grouped:
        return data, None
    warnings.warn(
        f"{share:.0%} of the validation rows passed to {owner} are nearer to another validation row "
        "than to any of as many training rows (50% if both were drawn alike). They seem to come in groups, such "
        "as users, pages, or days, or from another source. Trust is learned from their distances to training "
        "rows only.\n"
        "Hint: pass groups= and groups_val= if rows come in groups and new rows will be of other groups.",
        TrustWarning,
        stacklevel=4,
    )
    return replace(data, is_separate=True), None


def separate_groups(
    data: FitData, groups: IntArray, groups_val: IntArray, seed: int
) -> tuple[FitData, IntArray]:
    """Validation rows from groups without training rows, and the positions of the remaining training rows.

    Where the training rows are their own validation rows, or share groups with them, some groups are drawn.
    """
    chosen = np.unique(groups_val)
    if data.shared or 3 * np.isin(groups, chosen).sum() > len(groups):
        drawn = np.random.default_rng(seed).permutation(chosen)
        chosen = drawn[: max(1, round(VALIDATION_SHARE * len(drawn)))]
    train, val = np.flatnonzero(~np.isin(groups, chosen)), np.flatnonzero(np.isin(groups_val, chosen))
    separated = replace(
        data,
        X=data.X[train],
        codes=data.codes[train],
        X_val=data.X_val[val],
        codes_val=data.codes_val[val],
        proba_val=data.proba_val[val],
        is_separate=True,
    )
    return separated, train


def share_among_themselves(
    data: FitData, columns: slice, *, n_jobs: int | None, seed: int
) -> tuple[float, bool]:
    """Share of the validation rows that are nearer to another one than to any of as many training rows.

    And whether that is more than chance explains. It is a half for rows drawn at random, and more for a few groups.
    """
    rng = np.random.default_rng(seed)
    n = min(len(data.X_val), len(data.X) + 1, MAX_COMPARED)
    if data.shared or n < 20:
        return 0.5, False
    val = data.X_val[rng.permutation(len(data.X_val))[:n], columns]
    train = data.X[rng.permutation(len(data.X))[: n - 1], columns]
    among = _nearest(val, val, exclude=np.arange(n), n_jobs=n_jobs)
    outside = _nearest(train, val, exclude=None, n_jobs=n_jobs)
    nearer = float((among < outside).sum() + (among == outside).sum() / 2)
    limit = binom.isf(LEVEL, max(1, int(n / DEPENDENCE)), 0.5) / max(1, int(n / DEPENDENCE))
    return nearer / n, nearer / n > max(limit, 0.5 + MIN_EXCESS)


def _nearest(
    rows: FloatArray, queries: FloatArray, *, exclude: IntArray | None, n_jobs: int | None
) -> FloatArray:
    index = ClasswiseNeighbors(1, n_jobs=n_jobs).fit(rows, np.zeros(len(rows), dtype=np.intp))
    return index.kneighbors(queries, exclude=exclude)[0][:, 0, 0]
