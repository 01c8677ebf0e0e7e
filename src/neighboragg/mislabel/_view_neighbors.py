"""Neighbors in each view of rows that have several vectors; one view is the usual case."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from neighboragg._progress import step
from neighboragg._typing import Array, BoolArray, FloatArray, IntArray
from neighboragg._views import LEARNED, learned, split_views
from neighboragg.exceptions import InvalidInputError
from neighboragg.mislabel._class_neighbors import UngroupedNeighbors, nearest_overall
from neighboragg.mislabel._learned_neighbors import LearnedNeighbors
from neighboragg.persistence import Stored

__all__ = ["Near", "ViewNeighbors"]


@dataclass(frozen=True)
class Near(Stored):
    """Distances and row numbers of the nearest rows of each class in one view, each of shape (n, C, K)."""

    distances: FloatArray
    rows: IntArray

    def nearest(self, n_neighbors: int) -> BoolArray:
        """Which of them are the nearest of all."""
        return nearest_overall(self.distances, self.rows, n_neighbors)


class ViewNeighbors(Stored):
    """The kept rows by class in each view, searched so that no row finds one of its own group.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        All views side by side.
    views : mapping of str to int
        Number of columns of each view.
    codes : ndarray of shape (n,)
    groups : ndarray of shape (n,)
    keep : ndarray of bool of shape (n,)
        Rows that may be found.
    n_classes, n_neighbors, seed : int
    n_jobs : int or None
    folds : ndarray of shape (n,) or None
        If given, rows are looked up in learned maps of each view too, which have not seen their fold.
    """

    def __init__(
        self,
        X: FloatArray,
        views: Mapping[str, int],
        codes: IntArray,
        groups: IntArray,
        keep: BoolArray,
        *,
        n_classes: int,
        n_neighbors: int,
        seed: int,
        n_jobs: int | None,
        folds: Array | None,
    ) -> None:
        for view in views:
            if view.endswith(LEARNED):
                raise InvalidInputError(
                    f"A view cannot be called {view!r}, as the learned metric of another could be.\n"
                    "Hint: give it another name."
                )
        self.widths = dict(views)
        parts = self._parts(X)
        size: dict[str, Any] = {"n_classes": n_classes, "n_neighbors": n_neighbors, "n_jobs": n_jobs}
        self.by_view = {
            view: UngroupedNeighbors(part, codes, groups, keep, **size) for view, part in parts.items()
        }
        self.learned: dict[str, LearnedNeighbors] = {}
        if folds is not None:
            self.learned = {
                view: LearnedNeighbors(part, codes, folds, keep, seed=seed, **size)
                for view, part in parts.items()
            }

    def of_own_rows(self) -> dict[str, Near]:
        """The nearest of each row in each view; (inf, -1) where there are fewer."""
        found = {}
        for view, neighbors in self.by_view.items():
            found[view] = Near(*neighbors.of_own_rows())
            step()
        return found | {
            learned(view): Near(*neighbors.of_own_rows()) for view, neighbors in self.learned.items()
        }

    def of_new_rows(self, X: FloatArray) -> dict[str, Near]:
        """The nearest of rows that belong to no group."""
        parts = self._parts(X)
        found = {view: Near(*self.by_view[view].of_new_rows(part)) for view, part in parts.items()}
        return found | {
            learned(view): Near(*neighbors.of_new_rows(parts[view]))
            for view, neighbors in self.learned.items()
        }

    @property
    def vectors(self) -> FloatArray:
        """All views side by side, as they were passed."""
        parts = [neighbors.X for neighbors in self.by_view.values()]
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def _parts(self, X: FloatArray) -> dict[str, FloatArray]:
        if len(self.widths) == 1:
            return dict.fromkeys(self.widths, X)
        return {view: np.ascontiguousarray(part) for view, part in split_views(X, self.widths).items()}
