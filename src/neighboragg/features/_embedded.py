"""Vectors that a network gives: the first layer as it is, the others reduced to their main directions."""

from collections.abc import Mapping
from typing import Self

import numpy as np

from neighboragg._typing import FloatArray
from neighboragg._validation import check_rows
from neighboragg._views import split_views
from neighboragg.persistence import Stored

__all__ = ["EmbeddedFeatures"]

MOST_DIMENSIONS = 100
# More rows than this do not move the main directions.
MOST_ROWS = 10_000


class EmbeddedFeatures(Stored):
    """Views of a network as vectors of moderate length, side by side.

    Attributes
    ----------
    widths : dict of str to int
        Number of values that the network gives for each view.
    directions : dict of str to tuple of ndarray
        Mean and main directions of each view that is reduced.
    views : dict of str to int
        Number of features of each view.
    """

    def fit(self, views: Mapping[str, FloatArray]) -> Self:
        """Learn the main directions of all views but the first."""
        self.widths = {name: vectors.shape[1] for name, vectors in views.items()}
        wide = [name for name in list(views)[1:] if self.widths[name] > MOST_DIMENSIONS]
        self.directions = {name: _main_directions(views[name]) for name in wide}
        self.views = self.widths | dict.fromkeys(wide, MOST_DIMENSIONS)
        return self

    def transform(self, stacked: FloatArray) -> FloatArray:
        """Vectors of rows, from all that the network gives side by side."""
        given = check_rows(
            stacked, "the embeddings of the network", "features", n_features=sum(self.widths.values())
        )
        views = split_views(given, self.widths)
        for name, (mean, directions) in self.directions.items():
            # Row by row, so that a row has the same bits in any batch.
            views[name] = np.einsum("nd,dr->nr", views[name] - mean, directions)
        return given if len(views) == 1 else np.hstack(list(views.values()))


def _main_directions(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    chosen = np.unique(np.linspace(0, len(vectors) - 1, MOST_ROWS).astype(int))
    rows = np.asarray(vectors[chosen], dtype=np.float64)
    mean = rows.mean(axis=0)
    rows -= mean
    _, directions = np.linalg.eigh(rows.T @ rows)
    kept = directions[:, ::-1][:, :MOST_DIMENSIONS]
    dtype = vectors.dtype
    return mean.astype(dtype), np.ascontiguousarray(kept, dtype=dtype)
