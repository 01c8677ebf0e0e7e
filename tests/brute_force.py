"""Neighbors in every class by looking at all distances, for searches to be compared with."""

import numpy as np


def nearest_by_class(every, y, k, n_classes, exclude=None):
    """Distances and ids by (distance, id), from the distances of queries to all rows."""
    if exclude is not None:
        every[np.flatnonzero(exclude >= 0), exclude[exclude >= 0]] = np.inf
    distances = np.full((len(every), n_classes, k), np.inf)
    indices = np.full(distances.shape, -1)
    for c in range(n_classes):
        members = np.flatnonzero(y == c)
        order = np.argsort(every[:, members], axis=1, kind="stable")[:, :k]
        found = np.take_along_axis(every[:, members], order, axis=1)
        distances[:, c, : order.shape[1]] = found
        indices[:, c, : order.shape[1]] = np.where(np.isinf(found), -1, members[order])
    return distances, indices
