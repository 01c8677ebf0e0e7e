"""Vectors that a network gives: the first layer as it is, the others reduced to their main directions."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from neighboragg._typing import FloatArray
from neighboragg._validation import check_rows
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
        parts: list[Any] = np.split(given, np.cumsum(list(self.widths.values()))[:-1], axis=1)
        for i, name in enumerate(self.widths):
            if name in self.directions:
                mean, directions = self.directions[name]
                # Row by row, so that a row has the same bits in any batch.
                parts[i] = np.einsum("nd,dr->nr", parts[i] - mean, directions)
        return parts[0] if len(parts) == 1 else np.hstack(parts)


def _main_directions(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    chosen = np.unique(np.linspace(0, len(vectors) - 1, MOST_ROWS).astype(int))
    rows = np.asarray(vectors[chosen], dtype=np.float64)
    mean = rows.mean(axis=0)
    rows -= mean
    _, directions = np.linalg.eigh(rows.T @ rows)
    kept = directions[:, ::-1][:, :MOST_DIMENSIONS]
    dtype = vectors.dtype
    return mean.astype(dtype), np.ascontiguousarray(kept, dtype=dtype)
