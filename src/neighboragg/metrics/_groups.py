"""Rows reduced to groups of equal trust: all that any metric needs, whatever the order of the rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neighboragg._typing import BoolArray

__all__ = ["TieGroups", "group_ties", "oracle_groups"]


@dataclass(frozen=True, eq=False)
class TieGroups:
    """Counts of correct and wrong rows for each distinct trust value, most trusted first.

    Counts are integers, so sums and comparisons of them are exact.
    """

    trust: NDArray[np.float64]
    successes: NDArray[np.int64]
    errors: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows in each group."""
        return self.successes + self.errors

    @property
    def n_rows(self) -> int:
        """Rows in all groups."""
        return self.n_successes + self.n_errors

    @property
    def n_successes(self) -> int:
        """Correct rows in all groups."""
        return int(self.successes.sum())

    @property
    def n_errors(self) -> int:
        """Wrong rows in all groups."""
        return int(self.errors.sum())


def group_ties(correct: BoolArray, trust: NDArray[np.float64]) -> TieGroups:
    """Group rows by trust."""
    # A stable sort takes linear time on rows that are already in order, as those of the bootstrap are.
    order = np.argsort(trust, kind="stable")
    ascending = trust[order]
    starts = np.concatenate(([0], np.flatnonzero(ascending[1:] != ascending[:-1]) + 1))
    sizes = np.diff(starts, append=len(trust))
    successes = np.add.reduceat(correct[order], starts, dtype=np.int64)
    return TieGroups(ascending[starts][::-1], successes[::-1], (sizes - successes)[::-1])


def oracle_groups(groups: TieGroups) -> TieGroups:
    """Return the groups of the best possible order: every correct row before every wrong one."""
    successes = np.array([groups.n_successes, 0], dtype=np.int64)
    errors = np.array([0, groups.n_errors], dtype=np.int64)
    present = successes + errors > 0
    return TieGroups(np.array([1.0, 0.0])[present], successes[present], errors[present])
