"""Which reference rows lie in the dense part of their class."""

import numpy as np

from neighboragg._typing import BoolArray, FloatArray, IntArray
from neighboragg.neighbors._classwise import ClasswiseNeighbors

__all__ = ["dense_rows"]


def dense_rows(
    X: FloatArray, codes: IntArray, *, share: float, n_neighbors: int = 10, n_jobs: int | None = None
) -> BoolArray:
    """Mask of rows to keep when the sparsest `share` of every class is dropped.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
        Integer class of each row.
    share : float
        Share of each class to drop, in [0, 1): its rows with the largest distance to their
        `n_neighbors`-th neighbor in the same class.
    n_neighbors : int, default=10
    n_jobs : int, default=None

    Returns
    -------
    keep : ndarray of bool of shape (n_samples,)
        At least one row of every class is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.neighbors import dense_rows
    >>> X = np.array([[0.0], [0.1], [0.2], [9.0]])
    >>> dense_rows(X, np.zeros(4, dtype=int), share=0.25, n_neighbors=1)
    array([ True,  True,  True, False])
    """
    keep = np.ones(len(X), dtype=bool)
    if share == 0:
        return keep
    for c in np.unique(codes):
        members = np.flatnonzero(codes == c)
        n_dropped = min(int(share * len(members)), len(members) - 1)
        if n_dropped == 0:
            continue
        k = min(n_neighbors, len(members) - 1)
        index = ClasswiseNeighbors(k, n_jobs=n_jobs).fit(X[members], codes[members])
        radius = index.kneighbors()[0][:, 0, -1]
        keep[members[np.argsort(-radius, kind="stable")[:n_dropped]]] = False
    return keep
